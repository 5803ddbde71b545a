"""Stand-ins for sinks that accept only upserts, in a jar of this package.

``scripts/build_jars.py`` builds the jar reproducibly from ``upserts/Upserts.java``. Its connector discards rows, and
its format stores them. The planner adds a materializer before both, and admits ``ON CONFLICT``, as for the real sink.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.savepoint.store import place

UPSERTS = "flinkcompat-upserts"
"""Name of the connector and of the format."""


def upserts_jar() -> Traversable:
    """The jar in this package."""
    return files(__package__).joinpath("upserts", f"{UPSERTS}.jar")


def copy_jar(folder: str) -> str:
    """Copy the jar into a folder that the cluster can read. Return its path or URI. Raises DeployError."""
    copy = f"{folder}/{UPSERTS}.jar"
    try:
        place(copy).write_bytes(upserts_jar().read_bytes())
    except Exception as error:  # a store raises errors of its own library
        raise DeployError(f"{copy} cannot be written ({type(error).__name__}): {error}") from None
    return copy
