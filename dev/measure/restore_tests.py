"""Flink's own restore tests as a conformance suite for predicted state layouts.

The tests' jar of Flink's planner holds compiled plans and the savepoints that older and newer versions took of them.
``python -m dev.measure restore-tests`` compares what each plan is predicted to store with the headers of its savepoint,
migrates each savepoint to the same plan, at its own and at another maximum parallelism, and reads states as tables.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from airflow_flinkcompat.exec_graph.exec_node import ExecNode, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.from_savepoint import layout_difference, operator_layouts
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.migration import Migration, migration
from airflow_flinkcompat.exec_graph.model import StateKind, StateSpec
from airflow_flinkcompat.exec_graph.operator_ids import murmur3_128
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.local_flink.jars import fetch, pinned
from airflow_flinkcompat.migration import NotMigratable, migrate_savepoint
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_state import open_keyed, read_entries
from airflow_flinkcompat.savepoint.metadata import OperatorState, SavepointMetadata, parse_metadata
from airflow_flinkcompat.savepoint.store import METADATA, read_metadata
from airflow_flinkcompat.state import open_savepoint
from dev.measure.stored_state import rows_of, slow_rows, written_again

JARS = ("flink-table-planner-tests", "flink-table-planner-tests-2.1")
"""The newest line, and the only older line with savepoints that the newest line lacks."""
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
_TESTS = "restore-tests"
_TRANSFORMATIONS = {
    "limit": ("rank",),
    "lookup-join": ("lookup-join-materialize",),
    "sink": ("upsert-materialize",),
    "sort-limit": ("rank",),
    "table-source-scan": ("source",),
    "temporal-sort": ("sort", "temporal-sort"),
    "window-table-function": ("window",),
}
"""Names of operators with state in Flink's uids, if they differ from the kind of the exec node."""
_MAX_PARALLELISM, _OTHER_MAX_PARALLELISM = 128, 200


@dataclass(frozen=True)
class RestoreTest:
    """One compiled plan and a savepoint of it.

    Attributes:
        name: Kind and version of the node under test, and the test's own name.
        plan: The JSON of the plan.
        metadata: The content of the savepoint's ``_metadata``, which holds all of its state.
    """

    name: str
    plan: str
    metadata: bytes


class Verdict(StrEnum):
    """Result of comparing an operator's predicted layout with the stored one."""

    EXACT = "exact"
    WRONG = "wrong"
    NOT_TOLD = "not told"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Compared:
    """One operator of a restore test.

    Attributes:
        test: The name of the test.
        kind: The kind of the operator.
        keyed: Whether it stores state by key.
        verdict: How the predicted layout compares with the stored one.
        detail: What differs, or why nothing was predicted.
    """

    test: str
    kind: str
    keyed: bool
    verdict: Verdict
    detail: str = ""


def distinct_tests(jars: Iterable[Path]) -> list[RestoreTest]:
    """The tests of several jars, each savepoint once."""
    tests = {test.metadata: test for jar in jars for test in _tests_of(jar)}
    return list(tests.values())


def _tests_of(jar: Path) -> Iterator[RestoreTest]:
    """The tests that have a savepoint."""
    with ZipFile(jar) as archive:
        names = sorted(name for name in archive.namelist() if name.startswith(f"{_TESTS}/"))
        plans = {str(PurePosixPath(name).parents[1]): name for name in names if name.endswith(".json")}
        for name in names:
            if name.endswith(f"/savepoint/{METADATA}"):
                folder = PurePosixPath(name).parents[1]
                plan = next(plans[str(each)] for each in (folder, *folder.parents) if str(each) in plans)
                title = str(folder.relative_to(_TESTS)).removeprefix("stream-exec-")
                yield RestoreTest(title, archive.read(plan).decode(), archive.read(name))


class _Planned:
    """The operators of a restore test: those of its plan, and those of its savepoint."""

    def __init__(self, test: RestoreTest) -> None:
        self.savepoint = parse_metadata(test.metadata)
        symbols = Symbols()
        compiled = compiled_state(read_plan(test.plan), symbols, {}, frozenset())
        self.state = job_state(compiled, symbols)
        self.nodes = [operator.node for _, operator in compiled.operators]
        self._plan_ids = [row["id"] for row in json.loads(test.plan)["nodes"]]
        self._stored = {each.id: each for each in self.savepoint.operators}

    @property
    def specs(self) -> list[StateSpec]:
        """The predicted states, under the ids that the savepoint has."""
        stored = map(self.stored, self.nodes)
        return [
            replace(spec, id=each.id) for spec, each in zip(self.state.specs, stored, strict=True) if each is not None
        ]

    def stored(self, node: ExecNode) -> OperatorState | None:
        """The operator of the savepoint that keeps the state of a node, the one with keyed state first."""
        names = (node.kind, *_TRANSFORMATIONS.get(node.kind, ()))
        ids = [self.id_of(node, name) for name in names]
        if node.config.get("uid"):
            ids.append(_id(node.config["uid"]))
        found = [self._stored.get(id) for id in ids]
        known = [each for each in found if each is not None]
        return next(filter(_keyed, known), known[0] if known else None)

    def id_of(self, node: ExecNode, transformation: str) -> str:
        """The id of an operator of a node: that of the uid that Flink makes for jobs of compiled plans."""
        return _id(f"{self._plan_ids[node.place]}_{transformation}")


def _id(uid: str) -> str:
    return murmur3_128(uid.encode()).hex()


def _keyed(operator: OperatorState) -> bool:
    return any(each.keyed is not None for each in operator.subtasks or ())


def compared(test: RestoreTest) -> Iterator[Compared]:
    """The predicted layouts of a test's operators compared with its savepoint."""
    planned = _Planned(test)
    seen = set()
    for spec, node in zip(planned.state.specs, planned.nodes, strict=True):
        stored = planned.stored(node)
        keyed = stored is not None and _keyed(stored)
        if spec.layout is None and spec.kind is not StateKind.OPERATOR and not keyed:
            continue
        if stored is not None:
            seen.add(stored.id)
            if not any(each.index >= 0 for each in stored.subtasks or ()):
                continue  # it had finished
        yield Compared(test.name, node.kind, keyed, *_verdict(spec, stored))
    for each in planned.savepoint.operators:
        if _keyed(each) and each.id not in seen:
            reason = f"no node of the plan is known to store {each.name or each.id}"
            yield Compared(test.name, "", True, Verdict.WRONG, reason)


def _verdict(spec: StateSpec, stored: OperatorState | None) -> tuple[Verdict, str]:
    if isinstance(spec.layout, Unknown):
        try:
            list(operator_layouts(stored, "")) if stored is not None else ()
        except SavepointUnreadable as error:
            return Verdict.UNREADABLE, str(error)
        return Verdict.NOT_TOLD, spec.layout.reason
    if stored is None:
        return (Verdict.EXACT, "") if spec.layout is None else (Verdict.WRONG, "nothing is stored")
    try:
        found = layout_difference(spec, stored, "")
    except SavepointUnreadable as error:
        return Verdict.UNREADABLE, str(error)
    if found is None:
        return Verdict.EXACT, ""
    return Verdict.WRONG, f"{found.predicted} predicted, {found.stored} stored"


def carried(test: RestoreTest, max_parallelism: int | None = None) -> str:
    """Migrate the savepoint of a test to its own plan: ``equal state``, or the reason for a refusal."""
    planned = _Planned(test)
    metadata = planned.savepoint
    template = replace(
        metadata,
        operators=tuple(
            replace(each, max_parallelism=max_parallelism)
            if max_parallelism is not None and each.max_parallelism == _MAX_PARALLELISM
            else each
            for each in metadata.operators
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, name) for name in ("source", "template", "target")]
        for place, content in zip(places, (metadata, template), strict=False):
            place.mkdir()
            (place / METADATA).write_bytes(content.to_bytes())
        source, made_of, target = map(str, places)
        try:
            migrate_savepoint(source, made_of, target, _identity(planned), now=0)
        except (NotMigratable, SavepointUnreadable) as error:
            return _NUMBERS.sub("", str(error).replace(f"{source}/", ""))
        written = read_metadata(target)
        assert _content(metadata, source) == _content(written, target), f"{test.name}: other state was written"
    return EQUAL


EQUAL = "equal state"
_NUMBERS = re.compile(r"\[\d+\]| [0-9a-f]{32}\b")
"""Counters and ids of operators, in which equal refusals differ."""


def _identity(planned: _Planned) -> Migration:
    """The migration of a job to itself, under the ids that its savepoint has."""
    stored = (planned.stored(node) for node in planned.nodes)
    ids = {spec.id: each.id for spec, each in zip(planned.state.specs, stored, strict=True) if each is not None}
    further = {
        spec.id: (planned.id_of(node, "sink"),)
        for spec, node in zip(planned.state.specs, planned.nodes, strict=True)
        if node.kind == "sink" and spec.layout is not None
    }

    def known(spec: StateSpec | None) -> StateSpec | None:
        return spec and replace(spec, id=ids[spec.id], further_ids=further.get(spec.id, ()))

    lines = migration(planned.state, planned.state).operators
    told = (line for line in lines if line.new is not None and line.new.id in ids)
    return Migration(tuple(replace(line, old=known(line.old), new=known(line.new)) for line in told))


def _content(metadata: SavepointMetadata, path: str) -> Counter[object]:
    """All entries of keyed state without their key groups, and all lists."""
    found: Counter[object] = Counter()
    for operator in metadata.operators:
        prefix = 1 if operator.max_parallelism <= 128 else 2
        for subtask in operator.subtasks or ():
            if subtask.managed is not None:
                found[operator.id, subtask.managed] += 1
            if subtask.keyed is not None:
                with open_keyed(subtask.keyed, path) as file:
                    for _, group in file.groups():
                        for entry in read_entries(group):
                            name = file.header.states[entry.state].name
                            found[operator.id, name, entry.key[prefix:], entry.value] += 1
    return found


@dataclass(frozen=True)
class ReadState:
    """One state that was read as a table.

    Attributes:
        state: The name of the state.
        rows: The number of its rows.
        equal: True if all rows are those of the slow reader.
        unnamed: Why columns have no names of SQL; "" if all have.
        bytes: The columns that are bytes.
    """

    state: str
    rows: int
    equal: bool
    unnamed: str
    bytes: tuple[str, ...]


def read_states(test: RestoreTest) -> Iterator[ReadState]:
    """Read each state of a test, under the names of its plan, with both readers."""
    specs = _Planned(test).specs
    layouts = {spec.id: spec.layout for spec in specs}
    with _stored(test) as path:
        savepoint = open_savepoint(path, specs)
        assert not savepoint.unreadable, f"{test.name}: {savepoint.unreadable}"
        for each in savepoint.tables:
            rows, layout = list(rows_of(each)), layouts.get(each.operator_id)
            unnamed = layout.reason if isinstance(layout, Unknown) else "" if layout else "no node stores the state"
            if not unnamed and any(_POSITION.fullmatch(name) for name in each.schema.names):
                unnamed = "the plan names no column for a stored field"
            as_bytes = tuple(column.name for column in each.form.columns if column.type == "BYTES")
            equal = list(map(repr, rows)) == list(map(repr, slow_rows(each)))
            yield ReadState(each.state, len(rows), equal, unnamed, as_bytes)


_POSITION = re.compile(r"(key|map_key|field)_\d+")


def rewritten_otherwise(test: RestoreTest) -> list[str]:
    """Differences of a savepoint that is written from what was read of it."""
    with _stored(test) as path:
        return list(written_again(path))


@contextmanager
def _stored(test: RestoreTest) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, METADATA).write_bytes(test.metadata)
        yield folder


def _tables(tests: Sequence[RestoreTest]) -> str:
    found = [each for test in tests for each in read_states(test)]
    equal = sum(each.equal for each in found)
    reasons = Counter(each.unnamed for each in found if each.unnamed)
    as_bytes = Counter((each.state, column) for each in found for column in each.bytes)
    same = sum(not rewritten_otherwise(test) for test in tests)
    return "\n\n".join(
        [
            f"Read as tables: {len(found)} states with {sum(each.rows for each in found)} rows. In {equal} states, all "
            f"columns of all rows equal those of a reader of single entries. {len(found) - reasons.total()} states "
            "have only columns with names of SQL. In the others, some or all columns have names by position:",
            "\n".join(["| states | reason |", "|---|---|", *(f"| {n} | {why} |" for why, n in reasons.most_common())]),
            "Columns that are bytes:",
            "\n".join(
                ["| states | state | column |", "|---|---|---|"]
                + [f"| {n} | {state} | {column} |" for (state, column), n in as_bytes.most_common()]
            ),
            f"Written again from what was read: the same bytes in {same} of {len(tests)} savepoints.",
        ]
    )


def table(found: Sequence[Compared]) -> str:
    """The verdicts by kind of operator, as a table in Markdown."""
    kinds: dict[str, Counter[Verdict]] = {}
    for each in found:
        kinds.setdefault(each.kind, Counter())[each.verdict] += 1
    rows = (f"| {kind} | {' | '.join(str(kinds[kind][each]) for each in Verdict)} |" for kind in sorted(kinds))
    return "\n".join([f"| operator | {' | '.join(Verdict)} |", "|---" * (len(Verdict) + 1) + "|", *rows])


def summary(found: Sequence[Compared]) -> str:
    """The last line of the output."""
    counts = Counter(each.verdict for each in found)
    exact, *others = Verdict
    rest = ", ".join(f"{each} {counts[each]}" for each in others)
    return f"{exact} {counts[exact]} of {len(found)}, {rest}"


def _migrations(counts: Counter[str]) -> str:
    rows = (f"| {count} | {result} |" for result, count in counts.most_common())
    return "\n".join(["| savepoints | result |", "|---|---|", *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, migrate, count."""
    parser = argparse.ArgumentParser(prog="python -m dev.measure restore-tests", description=__doc__)
    own = " and ".join(pinned()[name].coordinates for name in JARS)
    parser.add_argument("--jar", type=Path, action="append", help=f"instead of {own} from Maven Central")
    parser.add_argument("--write", action="store_true", help="write the result into dev/benchmarks/results")
    options = parser.parse_args(arguments)
    tests = distinct_tests(options.jar or map(fetch, JARS))
    found = [each for test in tests for each in compared(test)]
    for each in found:
        if each.verdict is not Verdict.EXACT:
            print(f"{each.verdict}: {each.test} {each.kind}: {each.detail}")
    lines = [table(found)]
    for title, limit in (("the same", None), (f"{_OTHER_MAX_PARALLELISM} as", _OTHER_MAX_PARALLELISM)):
        counts = Counter(carried(test, limit) for test in tests)
        lines += [f"Migrated to the same plan, with {title} maximum parallelism:", _migrations(counts)]
    lines += [f"Those that store state by key: {summary([each for each in found if each.keyed])}.", summary(found)]
    text = "\n\n".join([*lines, _tables(tests)])
    print(f"\n{text}")
    if options.write:
        today = datetime.now(UTC).date()
        head = f"# Flink's restore tests, {today}\n\n{len(tests)} different savepoints of {own}."
        (RESULTS / f"restore-tests-{today}.md").write_text(f"{head}\n\n{text}\n", encoding="utf-8")
    return int(any(each.verdict in (Verdict.WRONG, Verdict.UNREADABLE) for each in found))


if __name__ == "__main__":
    sys.exit(main())
