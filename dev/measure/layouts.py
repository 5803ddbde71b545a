"""Layouts derived from drawn queries, compared with Flink's compiled plans.

``python -m dev.measure layouts`` draws pairs of aggregations, and of queries whose operator stores rows, from a seed,
has a real Flink compile each side, and compares fields, order, types, keys and names of every state. It prints what it
came to, and fails where any differs. With ``--write`` it keeps the result, and a part of the plans for
``tests/unit/exec_graph/test_layouts.py``, which needs no Flink.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from unittest.mock import patch

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import DeployError, SqlGatewayPlanner
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state
from airflow_flinkcompat.exec_graph.from_script import query_state
from airflow_flinkcompat.exec_graph.layout import StateLayout, Unknown
from airflow_flinkcompat.exec_graph.model import StateKind
from airflow_flinkcompat.exec_graph.nodes import layout
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.plan.operators import operators
from dev.measure.drawn_rows import DrawnRows, drawn_pairs, row_pairs

ROOT = Path(__file__).parents[2]
PLANS = ROOT / "tests" / "fixtures" / "measured" / "drawn-aggregations.json.gz"
PLANS_OF_ROWS = PLANS.with_name("drawn-rows.json.gz")
RESULTS = ROOT / "dev" / "benchmarks" / "results"
KEPT = 8
"""Of so many drawn sides one is kept for the tests."""
COLUMNS = {
    "a": "STRING", "b": "BIGINT", "c": "INT NOT NULL", "d": "DECIMAL(10, 2)", "e": "DOUBLE", "f": "VARCHAR(20)",
    "g": "BOOLEAN", "h": "DATE", "i": "SMALLINT", "j": "CHAR(3) NOT NULL", "k": "TIMESTAMP(6)", "l": "FLOAT",
    "m": "DECIMAL(20, 0) NOT NULL", "n": "TINYINT", "o": "STRING NOT NULL", "p": "BYTES",
}  # fmt: skip
NUMBERS, TEXTS, KEYS = "bcdeilmn", "afjo", "abcdefghijkmo"
ORDERED = "abcdefghijklmno"
WINDOWS = {
    "": (),
    "TUMBLE": ("INTERVAL '1' MINUTE",),
    "HOP": ("INTERVAL '1' MINUTE", "INTERVAL '5' MINUTE"),
    "CUMULATE": ("INTERVAL '1' MINUTE", "INTERVAL '10' MINUTE"),
    "SESSION": ("INTERVAL '3' MINUTE",),
    "group TUMBLE": ("INTERVAL '1' MINUTE",),
    "group HOP": ("INTERVAL '1' MINUTE", "INTERVAL '5' MINUTE"),
    "group SESSION": ("INTERVAL '3' MINUTE",),
}


@dataclass(frozen=True)
class Drawn:
    """One aggregation."""

    keys: tuple[str, ...]
    calls: tuple[str, ...]
    window: str
    time: str
    condition: str
    time_to_live: bool

    @property
    def script(self) -> str:
        """The query over its table."""
        columns = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())
        table = (
            f"CREATE TABLE t ({columns}, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH "
            "('connector' = 'filesystem', 'path' = 'file:///t', 'format' = 'csv', 'source.monitor-interval' = '1 s');\n"
        )
        lengths = ", ".join(WINDOWS[self.window])
        source, grouped = "t", list(self.keys)
        if self.window.startswith("group "):
            grouped.append(f"{self.window.removeprefix('group ')}({self.time}, {lengths})")
        elif self.window:
            partition = f" PARTITION BY {', '.join(self.keys)}" if self.window == "SESSION" and self.keys else ""
            source = f"TABLE({self.window}(TABLE t{partition}, DESCRIPTOR({self.time}), {lengths}))"
            grouped += ["window_start", "window_end"]
        shown = ", ".join((*self.keys, *self.calls))
        group = f" GROUP BY {', '.join(grouped)}" if grouped else ""
        return f"{table}SELECT {shown} FROM {source}{self.condition}{group};\n"

    @property
    def settings(self) -> dict[str, str]:
        """The job's."""
        return {"table.exec.state.ttl": "1 h"} if self.time_to_live else {}


def _call(draw: random.Random, windowed: bool) -> str:
    functions = ["SUM", "AVG", "MIN", "MAX", "COUNT", "COUNT(*)", "COUNT DISTINCT", "SUM DISTINCT", "MAX DISTINCT"]
    function = draw.choice(functions + ([] if windowed else ["LISTAGG", "FIRST_VALUE", "LAST_VALUE"]))
    name, _, distinct = function.partition(" ")
    if function == "COUNT(*)":
        call = function
    else:
        among = NUMBERS if name in ("SUM", "AVG") else TEXTS if name == "LISTAGG" else ORDERED
        call = f"{name}({distinct} {draw.choice(among)})".replace("( ", "(")
    return f"{call} FILTER (WHERE b > {draw.randint(1, 3)})" if draw.random() < 0.15 else call


def _drawn(draw: random.Random) -> Drawn:
    window = draw.choice(list(WINDOWS))
    calls = tuple(dict.fromkeys(_call(draw, bool(window)) for _ in range(draw.randint(1, 4))))
    return Drawn(
        tuple(draw.sample(KEYS, draw.randint(0 if window else 1, 3))),
        calls,
        window,
        draw.choice(["ts", "pt"]),
        draw.choice(["", "", " WHERE c > 3", " WHERE b IS NOT NULL", " WHERE a = 'x'"]),
        draw.random() < 0.2,
    )


def _changed(draw: random.Random, old: Drawn) -> Drawn:
    match draw.randint(0, 5):
        case 0:
            return replace(old, calls=tuple(dict.fromkeys((*old.calls, _call(draw, bool(old.window))))))
        case 1:
            return replace(old, calls=old.calls[::-1])
        case 2:
            return replace(old, keys=old.keys[::-1])
        case 3:
            return replace(old, calls=(_call(draw, bool(old.window)), *old.calls[1:]))
        case 4:
            return replace(old, time_to_live=not old.time_to_live)
    return replace(old, keys=tuple(draw.sample(KEYS, max(1, len(old.keys)))))


def pairs(count: int, seed: int) -> Iterator[tuple[Drawn, Drawn]]:
    """Pairs of aggregations, as :func:`drawn_pairs` draws them."""
    return drawn_pairs(count, seed, _drawn, _changed)


def told(side: Side) -> StateLayout | Unknown | None:
    """What a script's own plan tells.

    Args:
        side: A script of one query.

    Returns:
        The layout of its operator, or why it is not told; None of a query with no operator, or several.
    """
    outputs, _ = side.outputs
    program = side.program
    if len(program.pipelines) != 1 or 0 not in outputs or len(operators(outputs[0])) != 1:
        return None
    state = query_state(outputs[0], program.pipelines[0], program, Symbols())
    if isinstance(state, Unknown):
        return state
    return next(spec.layout for spec in state.specs if spec.kind is StateKind.OPERATOR)


def compiled(plan: CompiledPlan) -> list[StateLayout | Unknown]:
    """What Flink's plan of one query tells.

    Args:
        plan: The plan.

    Returns:
        The layout of each operator that keeps something by key, rows held in front of a sink aside.
    """
    symbols = Symbols()
    made = (
        layout(each.node, each.inputs, symbols)
        for _, each in compiled_state(plan, symbols, {}, frozenset()).operators
        if each.node.kind != "sink"
    )
    return [each for each in made if each is not None]


def verdict(side: Side, plan: CompiledPlan) -> str:
    """Whether both tell the same.

    Args:
        side: A script of one query.
        plan: Its plan.

    Returns:
        "equal", "different", or which of the two does not tell.
    """
    own, others = told(side), compiled(plan)
    if not isinstance(own, StateLayout):
        return f"not told: {own.reason if own else 'no operator alone'}"
    if len(others) != 1:
        return "different"
    if isinstance(others[0], Unknown):
        return f"told by the script alone: {others[0].reason}"
    return "equal" if own.stored == others[0].stored else "different"


def main(arguments: list[str] | None = None) -> int:
    """Draw, compile, compare.

    Args:
        arguments: Of the command line.

    Returns:
        1 where any layout differs.
    """
    parser = argparse.ArgumentParser(prog="python -m dev.measure layouts", description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--row-pairs", type=int, default=1000, help="of queries whose operator stores rows")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--write", action="store_true", help="keep the result, and plans for the tests")
    given = parser.parse_args(arguments)
    found: Counter[str] = Counter()
    kept: dict[Path, list[dict[str, object]]] = {PLANS: [], PLANS_OF_ROWS: []}
    seen: set[tuple[str, bool]] = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalFlink(f"{folder}/client", gateway_only=True) as client,
        SqlGatewayPlanner(client.gateway_url) as planner,
    ):
        every: Iterator[tuple[Drawn, Drawn] | tuple[DrawnRows, DrawnRows]] = chain(
            pairs(given.pairs, given.seed), row_pairs(given.row_pairs, given.seed)
        )
        for drawn in (each for pair in every for each in pair):
            side = Side(drawn.script, drawn.settings, engine="flink", source="drawn.sql")
            if (drawn.script, drawn.time_to_live) in seen:
                found["drawn before"] += 1
                continue
            seen.add((drawn.script, drawn.time_to_live))
            texts: list[str] = []
            with patch("airflow_flinkcompat.deploy.flink.compiled_plans.read_plan", _kept_in(texts)):
                try:
                    (plan,) = planner.compile_plans(side, folder)
                except DeployError as error:
                    found[f"refused by Flink: {str(error)[:90]}"] += 1
                    continue
            result = verdict(side, plan)
            found[result] += 1
            if result == "different":
                print(side.script, *map(_shown, (told(side), *compiled(plan))), sep="\n", end="\n\n", file=sys.stderr)
            if len(seen) % KEPT == 0:
                row = {"script": side.script, "settings": drawn.settings, "plan": json.loads(texts[0])}
                kept[PLANS_OF_ROWS if isinstance(drawn, DrawnRows) else PLANS].append(row)
    lines = [f"| {count} | {words} |" for words, count in found.most_common()]
    text = "\n".join(["| sides | both plans |", "|---|---|", *lines])
    print(text)
    if given.write:
        for path, rows in kept.items():
            if rows:
                packed = json.dumps(rows, separators=(",", ":"), sort_keys=True).encode()
                path.write_bytes(gzip.compress(packed, mtime=0))
        today = datetime.now(UTC).date()
        head = (
            f"# Layouts told by a script and by its compiled plan, {today}\n\n{given.pairs} pairs of aggregations and "
            f"{given.row_pairs} of queries whose operator stores rows, drawn from seed {given.seed}, compiled by "
            "Flink 2.3.0 (`python -m dev.measure layouts --write`).\n\n"
        )
        (RESULTS / f"layouts-{today}.md").write_text(f"{head}{text}\n", encoding="utf-8")
    return int(bool(found["different"]))


def _shown(found: StateLayout | Unknown | None) -> str:
    if not isinstance(found, StateLayout):
        return str(found)
    states = (
        f"{state.name}{' (time to live)' if state.time_to_live else ''}: "
        + ", ".join(f"{field.words} {field.type}" for field in state.value.fields)
        for state in found.states
    )
    return f"  by {', '.join(f'{key.words} {key.type}' for key in found.key)}; {'; '.join(states)}; {found.timers}"


def _kept_in(texts: list[str]) -> Callable[[str], CompiledPlan]:
    def kept(text: str) -> CompiledPlan:
        texts.append(text)
        return read_plan(text)

    return kept


if __name__ == "__main__":
    sys.exit(main())
