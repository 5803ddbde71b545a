"""The history of a deployment: entries in a store, each created once, and what the steps among them say."""
