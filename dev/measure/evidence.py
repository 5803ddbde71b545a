"""Write the table of evidence of the package from all committed results."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import evidence
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import results
from dev.measure.measured import CONNECTORS
from dev.measure.measured import FOLDER as MEASURED
from dev.measure.pairs import RELEASES

TABLE = Path(evidence.__file__).parent / evidence.FILE


def sources() -> tuple[Path, ...]:
    """The files that hold results."""
    newest = (results.newest(line, name) for line in sorted(RELEASES) for name in results.NAMES)
    elsewhere = (*sorted(MEASURED.glob("flink-*.json")), *(MEASURED / name for name in CONNECTORS))
    return (*elsewhere, *(path for path in newest if path is not None), *results.upgrades())


def build(paths: Iterable[Path]) -> dict[str, dict[str, str]]:
    """The outcome of every restore."""
    found: dict[str, dict[str, str]] = {}
    for path in paths:
        for name, line, outcome in _outcomes(path):
            said = found.setdefault(name, {}).setdefault(line, outcome)
            if said != outcome:
                raise FixtureError(f"{path.name}: {name} on {line} is {outcome}, but {said} in another file")
    return {name: dict(sorted(found[name].items())) for name in sorted(found)}


def _outcomes(path: Path) -> Iterator[tuple[str, str, str]]:
    """Id, line and outcome of every restore of a file."""
    read = path.read_bytes()
    data: Mapping[str, Any] = json.loads(gzip.decompress(read) if path.suffix == ".gz" else read)
    line = _line(data["flink"])
    if "pairs" not in data:
        yield from ((name, line, outcome) for name, outcome in data["outcomes"].items())
    for pair in data.get("pairs", ()):
        taken = pair.get("flink_old")
        yield pair["id"], f"{_line(taken)} to {line}" if taken else line, pair["outcome"]


def text(table: Mapping[str, Mapping[str, str]]) -> str:
    """The shipped table."""
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(table[name])}" for name in table) + "\n}\n"


def write() -> Path:
    """Write the shipped table again."""
    TABLE.write_text(text(build(sources())), encoding="utf-8")
    return TABLE


def _line(version: str) -> str:
    return ".".join(version.split(".")[:2])
