"""Steps are run on Spark, and what they met is counted."""
