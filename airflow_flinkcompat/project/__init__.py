"""The project file ``flinkcompat.toml``: one schema and one reader for the command line and for DAGs.

It knows the model alone, so that a DAG file and the bare install can afford it.
"""
