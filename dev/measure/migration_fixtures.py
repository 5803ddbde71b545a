"""Write the savepoints, templates and compiled plans that migration tests use.

``python -m dev.measure migration-fixtures [TITLE …]`` writes those of ``tests/fixtures/migrations.sql`` into
``tests/fixtures/migrations`` anew, taken by a real Flink of the newest line.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack, closing
from pathlib import Path

from airflow_flinkcompat.local_flink import LocalFlink
from dev.measure.flink_versions import CACHE, home
from dev.measure.kept_state import load_cases
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.savepoints import keep

FOLDER = Path(__file__).parents[2] / "tests" / "fixtures" / "migrations"
_NEWEST = "2.3"


def main() -> None:
    """Start Flink and write the savepoints of the named changes, or of all that have a fixture."""
    titles = set(sys.argv[1:]) or {path.name.replace("-", " ") for path in FOLDER.iterdir()}
    work = CACHE / "migrations"
    shutil.rmtree(work, ignore_errors=True)
    with ExitStack() as stack:
        flink = stack.enter_context(LocalFlink(work / "flink", home=home(_NEWEST), slots=4, config=CLUSTER, log=print))
        bench = stack.enter_context(closing(PairRunner(flink, work / "data")))
        (work / "data").mkdir(parents=True, exist_ok=True)
        for case in load_cases():
            if case.title not in titles:
                continue
            target = FOLDER / case.title.replace(" ", "-")
            shutil.rmtree(target, ignore_errors=True)
            old, new = bench.complete(case.old), bench.complete(case.new)
            for name, path in (("old", bench.savepoint(old).path), ("template", bench.template(new))):
                keep(path, target / name)
            for name, side in (("old", old), ("new", new)):
                (target / f"{name}.json").write_text(bench.compiled(side))
                (target / f"{name}.sql").write_text(side.script)
            print(target.name, sum(file.stat().st_size for file in target.rglob("*") if file.is_file()), "bytes")


if __name__ == "__main__":
    main()
