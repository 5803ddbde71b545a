"""The ledger of a deployment: entries in a store, each created once, and the resulting status."""
