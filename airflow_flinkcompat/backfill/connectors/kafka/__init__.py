"""The kafka connector: topics read as history, upsert-kafka topics kept by key."""
