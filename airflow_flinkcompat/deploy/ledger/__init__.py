"""The history of a deployment: entries in a store, each created once, and the state that they imply."""
