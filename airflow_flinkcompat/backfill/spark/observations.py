"""Counts by Spark during a run."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.sql import Observation


def counted(seen: Observation, name: str) -> int:
    """A count once its action has run; 0 if Spark saw beforehand that there is nothing to do."""
    try:
        return int(seen.get[name])
    except Py4JJavaError:
        return 0
