"""Measured restores: pairs of scripts, their outcomes, and their compiled plans.

``tests/fixtures/measured/flink-*-restores*.json`` hold what was run on a real Flink: table DDL, set-up statements,
settings, old and new SQL, outcome. ``flink-1.20-outcomes.json`` holds how the pairs of the first file ended on the
older version. The ``*.json.gz`` of :data:`CONNECTORS` are pairs over Kafka, JDBC, asynchronous lookups and CDC, and
unchanged scripts that go from an older Flink to 2.3; their new side is left out where it is the old one.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.exec_graph import model
from airflow_flinkcompat.exec_graph.diff import diff_jobs
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import PlanFacts, job_graphs

FOLDER = Path(__file__).parents[2] / "tests" / "fixtures" / "measured"
CONNECTORS = ("flink-2.3-connectors.json.gz", "flink-1.20-cdc.json.gz", "flink-2.3-upgrades.json.gz")
WIDE = "flink-2.3-restores-wide.json"
"""Operators of every kind on 2.3."""
_NARROW = "flink-2.3-restores.json"
_PLANS = FOLDER / "flink-2.3-plans.json.gz"
"""Compiled plans of both files, as Flink 2.3.0 wrote them."""
AS_RUN = {"parallelism.default": "1"}
"""Settings of the session for every restore, unless the pair overrides them."""
RIGHT = "restored_right"
"""The only outcome that makes ``compatible`` right; "right on this data" does not."""


@dataclass(frozen=True, eq=False)
class Restore:
    """One pair: both complete scripts with tables, the settings, and the restore's outcome on ``version``.

    ``old_version`` is the Flink that took the savepoint, where that is another one. ``rows`` contains the input rows
    of tables, if a pair was not measured with the rows of ``rows.json``: by table, and by ``before`` or ``after`` the
    savepoint.
    """

    id: str
    version: str
    outcome: str
    old: str
    new: str
    settings_old: Mapping[str, str] = field(default_factory=dict)
    settings_new: Mapping[str, str] = field(default_factory=dict)
    old_version: str = ""
    rows: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.version}/{self.id}"

    @property
    def is_unchanged(self) -> bool:
        """True if nothing changed, except possibly the version."""
        return (self.old, self.settings_old) == (self.new, self.settings_new)

    def sides(self, engine: str = "flink") -> tuple[Side, Side]:
        old, new = (self.old_version or self.version, self.version) if engine == "flink" else (None, None)
        return (
            Side(self.old, self.settings_old, engine=engine, engine_version=old, source="old.sql"),
            Side(self.new, self.settings_new, engine=engine, engine_version=new, source="new.sql"),
        )


def load(name: str, wrap: bool = False, only: Container[str] | None = None) -> list[Restore]:
    """The pairs of a file; with ``wrap``, bare queries write into a declared print sink, as in the run."""
    data = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    pairs = [pair for pair in data["pairs"] if only is None or pair["id"] in only]
    return [
        replace(_restore(pair, data, data["flink"], pair["outcome"], wrap), old_version=pair.get("flink_old", ""))
        for pair in pairs
    ]


@cache
def narrow() -> tuple[Restore, ...]:
    """The window family on 2.3: bare queries."""
    return tuple(load(_NARROW))


@cache
def everything() -> tuple[Restore, ...]:
    """All pairs on both versions; on 2.3 those of the window family both bare and in front of a sink."""
    older = json.loads((FOLDER / "flink-1.20-outcomes.json").read_text(encoding="utf-8"))
    outcomes = older["outcomes"]
    on_older = (replace(pair, version=older["flink"], outcome=outcomes[pair.id]) for pair in narrow())
    wrapped = (replace(pair, id=f"{pair.id} into a sink") for pair in load(_NARROW, wrap=True))
    return (*narrow(), *wrapped, *load(WIDE, wrap=True), *on_older)


@cache
def connectors() -> tuple[Restore, ...]:
    """Restores over connectors of every kind, and from an older version of Flink."""
    return tuple(pair for name in CONNECTORS for pair in _packed(name))


def _packed(name: str) -> Iterator[Restore]:
    data = json.loads(gzip.decompress((FOLDER / name).read_bytes()))
    for pair in data["pairs"]:
        whole = {"new": pair["old"], "setup_new": pair["setup_old"], **pair, "statements_are_dml": True}
        restore = _restore(whole, {"tables": {}}, data["flink"], pair["outcome"], wrap=False)
        yield replace(restore, old_version=pair.get("flink_old", ""))


def _restore(pair: Mapping[str, Any], data: Mapping[str, Any], version: str, outcome: str, wrap: bool) -> Restore:
    scripts = [_script(pair, data, side, wrap) for side in ("old", "new")]
    settings = [AS_RUN | pair.get(f"settings_{side}", {}) for side in ("old", "new")]
    rows = pair.get("data", data.get("data", {}))
    return Restore(pair["id"], version, outcome, scripts[0], scripts[1], settings[0], settings[1], rows=rows)


def _script(pair: Mapping[str, Any], data: Mapping[str, Any], side: str, wrap: bool) -> str:
    tables = {name: ddl for name, ddl in data["tables"].items() if name in pair.get("tables", data["tables"])}
    tables |= pair.get(f"ddl_{side}", {})
    setup = [*tables.values(), *pair.get("setup", pair.get(f"setup_{side}", []))]
    sink = pair.get("sink")
    if pair.get("statements_are_dml") or not (wrap or sink):
        return ";\n".join([*setup, pair[side]]) + ";\n"
    script = ";\n".join([*setup, pair[side]]) + ";\n"
    keys = sink[side] if sink else ()
    # Hundreds of scripts declare the same tables, so they are parsed only once.
    tables_alone = _declared(";\n".join(data["tables"].values()))
    query = Side(script, engine="flink", beside=tables_alone)
    types = _types(query)
    if not all(types) or not types:
        types = _planned_types(pair["id"], 0 if side == "old" else -1) or types
    out = _sink(types, keys, sink["connector"] if sink else "print")
    return ";\n".join([*setup, out, f"INSERT INTO Result\n{pair[side]}"]) + ";\n"


@cache
def _declared(ddl: str) -> Side:
    return Side(ddl, engine="flink")


def _types(query: Side) -> list[str]:
    """Types of a query's columns; "" for a type that is unknown without Flink."""
    schema = query.program.pipelines[0].sink.schema
    return [str(c.type).replace(" NOT NULL", "") if c.type.is_known else "" for c in schema]


def _planned_types(name: str, side: int) -> list[str]:
    """Types of a query's columns, from its compiled plan; none without a plan, or for nested types."""
    if name not in _stored()["pairs"]:
        return []
    columns = written(name)[side][0]["nodes"][-1]["outputType"]
    types = re.findall(r"`\w+` (\w+(?:\([\d, ]*\))?)", columns) if isinstance(columns, str) else []
    return types if len(types) == str(columns).count("`") // 2 else []


def _sink(types: Sequence[str], keys: tuple[int, ...], connector: str) -> str:
    """A sink with the query's own schema, as in the measured restores."""
    columns = [f"f{i} {each or 'STRING'}" for i, each in enumerate(types or [""])]
    if keys:
        columns.append(f"PRIMARY KEY ({', '.join(f'f{i}' for i in keys)}) NOT ENFORCED")
    return f"CREATE TABLE Result ({', '.join(columns)}) WITH ('connector' = '{connector}')"


@cache
def pairs() -> dict[str, Restore]:
    """Every measured pair on 2.3, bare queries as they are."""
    return {pair.id: pair for name in (_NARROW, WIDE) for pair in load(name)}


@cache
def _stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(_PLANS.read_bytes()))
    return found


@cache
def planned() -> dict[str, Plans]:
    """Plans of both sides by pair. Pairs over connectors outside of Flink are in :func:`unplanned`."""
    texts, every = _stored()["texts"], _stored()["pairs"]
    return {
        name: tuple(tuple(read_plan(json.dumps(texts[i])) for i in side) for side in sides)  # type: ignore[misc]
        for name, sides in every.items()
    }


def written(name: str) -> list[list[dict[str, Any]]]:
    """The plans of both sides of a pair as Flink wrote them."""
    return [[deepcopy(_stored()["texts"][i]) for i in side] for side in _stored()["pairs"][name]]


def unplanned() -> dict[str, str]:
    """Reason for a pair's missing plans."""
    found: dict[str, str] = _stored()["unplanned"]
    return found


def diff_plans(
    old: Sequence[CompiledPlan], new: Sequence[CompiledPlan], facts: PlanFacts | None = None, *, restored: bool = False
) -> model.Restore:
    return diff_jobs(job_graphs(old, new, facts), (len(old), len(new)), restored=restored)
