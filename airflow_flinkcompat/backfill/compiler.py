"""From a program's plan to the steps of its backfill; whatever is not exact is refused here, before Spark starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable, combined
from airflow_flinkcompat.backfill.expressions import aggregate, aggregate_references, converted, references, scalar
from airflow_flinkcompat.backfill.formats import decode, format_of
from airflow_flinkcompat.backfill.places import Places, nested
from airflow_flinkcompat.backfill.sinking import sink_columns
from airflow_flinkcompat.backfill.steps import Assign, Group, Read, Select, Step, Together, Where, Work, Write
from airflow_flinkcompat.backfill.windows import Tumbling
from airflow_flinkcompat.plan.expressions import Expression, InputRef
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Opaque,
    Project,
    Scan,
    Union,
    Window,
    WindowAggregate,
    WindowAssign,
    WindowField,
    WindowKind,
    walk_nodes,
)
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import TimeAttribute

_UTC = (
    "UTC",
    "GMT",
    "Z",
    "UTC+00:00",
    "GMT+00:00",
    "+00:00",
    "Etc/UTC",
    "Etc/GMT",
    "Etc/UCT",
    "UCT",
    "Zulu",
    "Etc/Zulu",
)
_FLINK_BATCH = "compute these rows with Flink in batch mode"
# Settings that change values; what they ask for is done by nobody here.
_REFUSED_SETTINGS = {
    "table.exec.legacy-cast-behaviour": ("disabled", "casts follow older rules"),
    "table.exec.sink.type-length-enforcer": ("ignore", "texts are cut or padded when written"),
}
_CONSTRUCTS = {
    "Join": "a join",
    "Over": "an OVER aggregation or ranking",
    "Sort": "ORDER BY or LIMIT",
    "Values": "VALUES or a SELECT without FROM",
    "Correlate": "a table function",
    "Aggregate": "a group aggregation without both window_start and window_end among its keys",
}


@dataclass(frozen=True)
class Range:
    """Bounds of the published windows, None where open."""

    from_: datetime | None = None
    to: datetime | None = None

    @property
    def bounded(self) -> bool:
        return self.from_ is not None or self.to is not None


def compile_program(program: Program, places: Places, bounds: Range) -> Work:
    """The work of a backfill. Raises :class:`BackfillError` that names every construct it cannot do exactly."""
    _check_program(program)
    sinks = [pipeline.sink.table for pipeline in program.pipelines if pipeline.sink.table is not None]
    scans = [node for pipeline in program.pipelines for node in walk_nodes(pipeline.sink) if isinstance(node, Scan)]
    places.check((scan.table for scan in scans), sinks)
    errors: list[BackfillError] = []
    writes: dict[tuple[str, str, str], Write] = {}
    for pipeline in program.pipelines:
        try:
            write = _Compiler(places, bounds, pipeline).write()
        except BackfillError as error:
            errors.append(error)
            continue
        assert pipeline.sink.table is not None  # write() has refused a nameless sink
        path = pipeline.sink.table.path
        known = writes.get(path)
        writes[path] = write if known is None else replace(known, inputs=known.inputs + write.inputs)
    if errors:
        raise combined(errors)
    work = Work(tuple(writes.values()))
    _check_places(work)
    return work


def _check_program(program: Program) -> None:
    if program.problems:
        raise combined([Untranslatable(f"{problem.message}", problem.span) for problem in program.problems])
    for fact in program.facts:
        if fact.kind.startswith("Alter"):
            raise Untranslatable(
                f"{fact.text[:80]}: a backfill does not follow ALTER; declare the table as it is now", fact.span
            )
    if not program.pipelines:
        raise BackfillError("the script writes nothing; a backfill runs its INSERT INTO statements")


def _check_places(work: Work) -> None:
    reads = {(read.place, read.table) for write in work.writes for step in write.inputs for read in reads_of(step)}
    for position, write in enumerate(work.writes):
        for place, table in sorted(reads):
            if nested(write.place, place):
                raise BackfillError(
                    f"sink {write.table} would be written to {write.place}, where table {table} is read ({place}); "
                    f"give another place with --sink {write.table}=URI"
                )
        for other in work.writes[:position]:
            if nested(write.place, other.place):
                raise BackfillError(
                    f"sinks {other.table} and {write.table} would be written to the same place {write.place}; "
                    "give each a place of its own with --sink NAME=URI"
                )


def reads_of(step: Step) -> tuple[Read, ...]:
    """The table reads below a step."""
    if isinstance(step, Read):
        return (step,)
    inputs = step.inputs if isinstance(step, Together) else (step.input,)
    return tuple(read for inner in inputs for read in reads_of(inner))


def _windowed(node: Node) -> bool:
    """True when every row of a node belongs to a window."""
    if isinstance(node, WindowAssign | GroupWindowAggregate):
        return True
    return bool(node.inputs) and all(_windowed(below) for below in node.inputs)


class _Compiler:
    """Compiles one pipeline. Every method takes the positions its reader needs and leaves the others out."""

    def __init__(self, places: Places, bounds: Range, pipeline: Pipeline) -> None:
        self.places = places
        self.bounds = bounds
        self.pipeline = pipeline
        self.settings = dict(pipeline.settings)

    def write(self) -> Write:
        sink = self.pipeline.sink
        table = sink.table
        if table is None:
            raise Untranslatable("a bare SELECT has no sink to write to; write INSERT INTO … SELECT", sink.span)
        for setting, (harmless, effect) in _REFUSED_SETTINGS.items():
            if self.settings.get(setting, harmless).lower() != harmless:
                raise Untranslatable(f"with {setting} = '{self.settings[setting]}' {effect}; {_FLINK_BATCH}", sink.span)
        if sink.hints:
            raise Untranslatable(
                f"sink {table.name}: hints are not understood by a backfill; write options into WITH", sink.span
            )
        place, given = self.places.sink(table)
        if sink.overwrite and not given:
            raise Untranslatable(
                f"INSERT OVERWRITE {table.name} would replace everything at {place}; "
                f"say where to write with --sink {table.path[2]}=URI",
                sink.span,
            )
        if table.partitioned_by or sink.partition:
            raise Untranslatable(f"sink {table.name} is partitioned; a backfill writes plain folders only", sink.span)
        if self.bounds.bounded and not _windowed(sink.input):
            raise Untranslatable(
                f"the rows written to {table.name} belong to no window, so no time range can be applied; "
                "leave out --from and --to to recompute everything",
                sink.span,
            )
        try:
            columns, values, condition = sink_columns(sink, self.settings)
        except BackfillError:
            # What lies below may be the cause, and says more.
            self.node(sink.input, frozenset(range(len(sink.schema))))
            raise
        body = self.node(sink.input, references(values.sources))
        if condition:
            body = Where(body, condition)
        step = Select(body, tuple(enumerate(values.sql)))
        return Write(table.name, place, format_of(table), columns, (step,), given)

    def node(self, node: Node, needed: frozenset[int]) -> Step:
        match node:
            case Scan():
                return self.scan(node, needed)
            case Project():
                return self.project(node, needed)
            case Filter():
                below = self.node(node.input, needed | references([node.condition]))
                return Where(below, scalar(node.condition))
            case Union():
                positions = tuple(sorted(needed)) or (0,)
                inputs = tuple(self.branch(branch, node, positions) for branch in node.branches)
                return Together(inputs, positions)
            case WindowAssign():
                return self.assign(node.input, node.window, node.time, node.time_attribute, needed, node)
            case WindowAggregate():
                return self.group(node, self.node(node.input, _read_by(node)))
            case GroupWindowAggregate():
                return self.group_window(node)
            case Opaque():
                raise Untranslatable(
                    f"{node.kind} cannot be recomputed in Spark: {node.reason or node.text[:80]}", node.span
                )
        what = _CONSTRUCTS.get(type(node).__name__, type(node).__name__)
        if isinstance(node, Join):
            what = f"a {node.kind} join"
        raise Untranslatable(f"{what} is not recomputed by a backfill yet; {_FLINK_BATCH}", node.span)

    def branch(self, branch: Node, union: Union, positions: tuple[int, ...]) -> Step:
        """A branch of a UNION ALL, its columns brought to the common types."""
        body = self.node(branch, frozenset(positions))
        return Select(
            body,
            tuple(
                (i, converted(InputRef(i, branch.schema[i].type, branch.span), union.schema[i].type)) for i in positions
            ),
        )

    def scan(self, node: Scan, needed: frozenset[int]) -> Read:
        table = node.table
        place = self.places.source(table)
        if node.hints:
            raise Untranslatable(
                f"table {table.name}: hint {node.hints[0][0]} is not understood by a backfill; write options into WITH",
                node.span,
            )
        if table.partitioned_by:
            raise Untranslatable(f"table {table.name} is partitioned; a backfill reads plain folders only", node.span)
        format = format_of(table)
        if len(table.physical) == 1 and format.name == "csv":
            raise Untranslatable(
                f"table {table.name} has one column only: a blank line is a row to Flink and nothing to Spark; "
                "declare it with format json",
                node.span,
            )
        computed, metadata = dict(table.computed), {name for name, _, _ in table.metadata}
        wanted = set(needed)
        for position in needed:
            expression = computed.get(table.columns[position].name)
            wanted |= references([expression]) if expression is not None else set()
        columns: list[tuple[int, str]] = []
        later: list[tuple[int, str]] = []
        for position in sorted(wanted):
            column = table.columns[position]
            if column.name in computed:
                later.append((position, scalar(computed[column.name])))
            elif column.name in metadata:
                raise Untranslatable(
                    f"table {table.name}: metadata column {column.name} is not read by a backfill; {_FLINK_BATCH}",
                    node.span,
                )
            else:
                field = table.physical.index(column.name)
                columns.append((position, decode(format, column, f"f{field}", replace(table, span=node.span))))
        return Read(table.name, place, format, table.physical, tuple(columns), tuple(later))

    def project(self, node: Project, needed: frozenset[int]) -> Step:
        chosen = [(i, node.expressions[i]) for i in sorted(needed)]
        below = self.node(node.input, references([expression for _, expression in chosen]))
        return Select(below, tuple((i, scalar(expression)) for i, expression in chosen))

    def assign(
        self,
        below: Node,
        window: Window,
        time: Expression,
        attribute: TimeAttribute | None,
        needed: frozenset[int],
        node: WindowAssign | GroupWindowAggregate,
    ) -> Assign:
        if window.kind is not WindowKind.TUMBLE or not window.size:
            raise Untranslatable(
                f"a {window.kind} window is not recomputed by a backfill yet, only TUMBLE is; {_FLINK_BATCH}", node.span
            )
        if attribute is TimeAttribute.PROCTIME:
            raise Untranslatable(
                "a window on processing time depends on when the job ran; history cannot be recomputed", node.span
            )
        if not isinstance(time, InputRef):
            raise Untranslatable(
                "a window on a computed time is not recomputed; compute it in the table's DDL", node.span
            )
        if any(isinstance(inner, WindowAssign | GroupWindowAggregate) for inner in walk_nodes(below)):
            raise Untranslatable(
                f"a window over windowed rows is not recomputed by a backfill yet; {_FLINK_BATCH}", node.span
            )
        self.check_clock(below, time, node)
        width = len(below.schema)
        tumbling = Tumbling.of(window)
        first, last = tumbling.span(self.bounds.from_, self.bounds.to)
        body = self.node(below, frozenset(i for i in needed if i < width) | {time.index})
        instant = below.schema[time.index].type.name == "TIMESTAMP_LTZ"
        return Assign(body, time.index, width, tumbling.size, tumbling.offset, first, last, instant)

    def check_clock(self, below: Node, time: InputRef, node: Node) -> None:
        kind = below.schema[time.index].type
        if kind.name == "TIMESTAMP_LTZ":
            zone = self.settings.get("table.local-time-zone")
            if zone not in _UTC:
                said = f"is {zone}" if zone else "is not set, so Flink takes that of its machine"
                raise Untranslatable(
                    f"windows on {kind} are cut in table.local-time-zone, which {said}; a backfill cuts in UTC only: "
                    "SET 'table.local-time-zone' = 'UTC', or declare the time as TIMESTAMP",
                    node.span,
                )
        elif kind.name != "TIMESTAMP":
            raise Untranslatable(
                f"a window needs an event time of type TIMESTAMP or TIMESTAMP_LTZ, not {kind}", node.span
            )

    def group(self, node: Aggregate, below: Step) -> Group:
        if node.grouping_sets is not None:
            raise Untranslatable(
                f"GROUPING SETS, CUBE and ROLLUP are not recomputed by a backfill yet; {_FLINK_BATCH}", node.span
            )
        keys = tuple(scalar(key) for key in node.keys)
        calls = tuple((len(keys) + i, aggregate(call, node.aggregates)) for i, call in enumerate(node.aggregates))
        return Group(below, keys, calls)

    def group_window(self, node: GroupWindowAggregate) -> Step:
        """The legacy group window is the same window, with its start as one more key."""
        if node.grouping_sets is not None:
            raise Untranslatable(
                f"GROUPING SETS, CUBE and ROLLUP are not recomputed by a backfill yet; {_FLINK_BATCH}", node.span
            )
        below = self.assign(node.input, node.window, node.time, node.time_attribute, _read_by(node), node)
        width, count = len(node.input.schema), len(node.keys)
        keys = (*(scalar(key) for key in node.keys), f"c{width}", f"c{width + 1}", f"c{width + 2}")
        calls = tuple((len(keys) + i, aggregate(call, node.aggregates)) for i, call in enumerate(node.aggregates))
        fields = {WindowField.START: 0, WindowField.END: 1, WindowField.TIME: 2}
        outputs = [*range(count), *(position for position, _ in calls)]
        for property in node.properties:
            if property not in fields:
                raise Untranslatable("a processing-time field of a window cannot be recomputed", node.span)
            outputs.append(count + fields[property])
        return Select(Group(below, keys, calls), tuple((i, f"c{position}") for i, position in enumerate(outputs)))


def _read_by(node: Aggregate | GroupWindowAggregate) -> frozenset[int]:
    return references(node.keys).union(*(aggregate_references(call) for call in node.aggregates))
