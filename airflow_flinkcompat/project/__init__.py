"""The project file ``flinkcompat.toml``: one schema and one reader for the command line and for DAGs.

It imports the model alone, and so remains cheap for DAG files and the bare install.
"""
