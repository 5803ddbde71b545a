"""The connectors of the catalogue, a module for each family, with its ``CONNECTORS``; nothing lists the modules."""
