"""The project file ``flinkcompat.toml``: one schema and one reader for the command line and for DAGs.

This package imports only the package ``model``, so that DAG files and the bare install load it cheaply.
"""
