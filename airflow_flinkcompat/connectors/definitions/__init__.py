"""The connectors of the catalogue: one module with ``CONNECTORS`` for each family."""
