"""The connectors of the catalogue, a module with ``CONNECTORS`` for each family, listed nowhere else."""
