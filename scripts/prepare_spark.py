"""First start of Spark for ``make setup``: compile PySpark to bytecode, and check that Spark runs."""

from __future__ import annotations

import time

from airflow_flinkcompat.backfill.spark import Effort, spark_session


def main() -> None:
    """Run one query in a local session, and print its cost."""
    began = time.monotonic()
    with spark_session("local[1]", effort=Effort.TINY, say=print) as session:
        rows = session.range(3).count()
    print(f"Spark {session.version} runs ({rows} rows in {time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
