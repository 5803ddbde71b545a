"""The folders and files of one demo: scripts, arriving orders, archive, results, ledger."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from string import Template

from dev.demo.orders import START, Arrived, Row, read_rows

DEPLOYMENT = "orders"
DAG_ID = "flink_gated_deploy"
DAGS = Path(__file__).resolve().parents[2] / "dags"
VERSIONS = (1, 2, 3, 4, 5, 6)
# Hand-over: the backfill publishes the windows that end up to this time, and the job the later windows.
BOUNDARY = START.replace(minute=10)
_SCRIPTS = Path(__file__).resolve().parent / "scripts"
_BACKFILL_FILES = "backfill-"
# Arguments that a team adds to its DAG for shadow runs.
_DEPLOY = "deploy=json.loads"
_SHADOW_RUN = f'start_mode="shadow",\n            shadow={{"duration": "5s"}},\n            {_DEPLOY}'


@dataclass(frozen=True)
class World:
    """Folders of one demo, below ``root``."""

    root: Path

    @property
    def live(self) -> Path:
        """Folder in which orders arrive; the job reads it."""
        return self.root / "orders" / "live"

    @property
    def archive(self) -> Path:
        """Folder of old orders; only the backfill reads it."""
        return self.root / "orders" / "archive"

    @property
    def totals(self) -> Path:
        """Results by the minute (v1 to v3)."""
        return self.root / "totals"

    @property
    def totals_5_minutes(self) -> Path:
        """Results by five minutes (v4 to v6): of the live jobs and of the backfill."""
        return self.root / "totals_5_minutes"

    @property
    def from_scratch(self) -> Path:
        """Folder of the result that Flink computes from all orders, for the comparison."""
        return self.root / "from_scratch"

    @property
    def results(self) -> tuple[Path, ...]:
        """All folders of results."""
        return self.totals, self.totals_5_minutes, self.from_scratch

    @property
    def dags(self) -> Path:
        """Copies of the DAG files, because a story edits one of them."""
        return self.root / "dags"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger"

    @property
    def script(self) -> Path:
        """The script that the DAG watches."""
        return self.root / "orders.sql"

    def make(self) -> None:
        """Create the folders, with all versions of the script next to them for own experiments."""
        for folder in (
            self.live,
            self.archive,
            self.totals,
            self.totals_5_minutes,
            self.ledger,
            self.root / "versions",
        ):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(DAGS, self.dags, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        for number in VERSIONS:
            self.version_file(number).write_text(self.version(number), encoding="utf-8")

    def version(self, number: int) -> str:
        """The text of version ``number`` for this world's folders."""
        places = {"LIVE": self.live, "TOTALS": self.totals, "TOTALS_5_MINUTES": self.totals_5_minutes}
        template = Template((_SCRIPTS / f"orders_v{number}.sql").read_text(encoding="utf-8"))
        return template.substitute({name: place.as_uri() for name, place in places.items()})

    def version_file(self, number: int) -> Path:
        return self.root / "versions" / f"orders_v{number}.sql"

    def propose(self, number: int) -> None:
        """Write version ``number`` to the DAG's script with one rename, so that no reader sees half a script."""
        new = self.script.with_suffix(".new")
        new.write_text(self.version(number), encoding="utf-8")
        new.replace(self.script)

    def add_shadow_run(self) -> None:
        """Add a shadow run to the DAG file, with one rename."""
        file = self.dags / f"{DAG_ID}.py"
        new = file.with_suffix(".new")
        new.write_text(file.read_text(encoding="utf-8").replace(_DEPLOY, _SHADOW_RUN), encoding="utf-8")
        new.replace(file)

    def move_to_archive(self, arrived: Iterable[Arrived], before: datetime) -> int:
        """Move files with orders before ``before`` from the live folder to the archive; returns their number."""
        old = [file.path for file in arrived if file.slice_start < before]
        for path in old:
            path.rename(self.archive / path.name)
        return len(old)

    def environment(self, gateway_url: str, jobmanager_url: str) -> Mapping[str, str]:
        """The variables that the DAG and its operators read; the same names as in compose.env."""
        backfill = {"tables": {"orders": self.archive.as_uri()}, "from_": START.isoformat(), "to": BOUNDARY.isoformat()}
        return {
            "FLINKCOMPAT_GATEWAY_URL": gateway_url,
            "FLINKCOMPAT_JOBMANAGER_URL": jobmanager_url,
            "FLINKCOMPAT_LEDGER": self.ledger.as_uri(),
            "FLINKCOMPAT_DATA": str(self.root),
            "FLINKCOMPAT_DEPLOYMENT": DEPLOYMENT,
            "FLINKCOMPAT_SCRIPT": str(self.script),
            "FLINKCOMPAT_BACKFILL": json.dumps(backfill),
            "FLINKCOMPAT_PLANNER": "auto",
            "FLINKCOMPAT_MIGRATE": json.dumps(True),  # Gateway and tasks share this machine
        }


def result_rows(folder: Path, *, by: str = "all") -> list[Row]:
    """Sorted committed rows of a result folder: of ``all``, the ``job`` alone, or the ``backfill`` alone."""
    # Flink and Spark write under hidden names until a file is complete.
    files = [path for path in folder.glob("*") if path.is_file() and path.name[0] not in "._"]
    wanted = {
        "all": files,
        "job": [path for path in files if not path.name.startswith(_BACKFILL_FILES)],
        "backfill": [path for path in files if path.name.startswith(_BACKFILL_FILES)],
    }
    return read_rows(wanted[by])
