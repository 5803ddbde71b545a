"""Programs beside what real PyFlink makes of them: its compiled plans, kept in ``flink-2.3-plans.json.gz``.

``python -m tests.scenarios.frontends.oracle`` asks PyFlink anew (``make pyflink``; a few minutes) and writes the file.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from airflow_flinkcompat.compat import Side
from dev.measure.pairs import PROGRAMS as PAIRS
from dev.measure.pairs import load_pairs
from dev.measure.pyflink import VERSION, PyFlink
from tests.scenarios.frontends.flink_plans import Told, of_each_sink, of_ours

FOLDER = Path(__file__).parents[2] / "fixtures" / "table_api" / "oracle"
FILE = FOLDER / "flink-2.3-plans.json.gz"
Sinks = dict[str, tuple[Told, ...]]
"""Operators by the table they write to, nearest the sink first."""


@cache
def programs() -> Mapping[str, str]:
    """Texts by name: those of this folder, and those of the measured restores, each text once."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
    for pair in load_pairs("2.3", folder=PAIRS):
        for name, side in (("old", pair.old), ("new", pair.new)):
            if side.language == "python" and side.script not in found.values():
                found[f"{pair.id}-{name}"] = side.script
    return found


def read(name: str) -> Sinks:
    """Our plan of a program. Raises AssertionError where it is not read whole."""
    side = Side(programs()[name], engine="flink", language="python", source=name)
    assert (side.parsed.unread, side.program.problems) == ((), ())
    outputs, failures = side.outputs
    assert not failures
    pipelines = side.program.pipelines
    return {output.sink: of_ours(output, not pipelines[i].steps) for i, output in outputs.items()}


def planned(pyflink: PyFlink, name: str) -> list[str]:
    """PyFlink's plans of a program's jobs, as it writes them."""
    text = programs()[name].replace("file://DATA", "file:///in").replace("file://OUT", "file:///out")
    return pyflink.plan(text, f"{name}.py")


def told(plans: Iterable[str]) -> Sinks:
    """What they say."""
    return {sink: each for plan in plans for sink, each in of_each_sink(json.loads(plan)).items()}


@cache
def kept() -> Mapping[str, list[str]]:
    """The plans PyFlink made of every program when it was asked last."""
    found: dict[str, list[str]] = json.loads(gzip.decompress(FILE.read_bytes()))
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, PyFlink(Path(folder)) as pyflink:
        found = {name: planned(pyflink, name) for name in programs()}
    FILE.write_bytes(gzip.compress(json.dumps(found, sort_keys=True).encode(), mtime=0))
    print(f"{len(found)} programs planned by PyFlink {VERSION}")


if __name__ == "__main__":
    main()
