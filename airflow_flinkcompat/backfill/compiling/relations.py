"""The nodes of a plan as steps: each method takes the positions its reader needs and leaves the others out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_flinkcompat.backfill.compiling import along, lateness, ranking, windowing
from airflow_flinkcompat.backfill.compiling.ranking import Kept
from airflow_flinkcompat.backfill.compiling.sharing import Columns
from airflow_flinkcompat.backfill.compiling.steps import Read, Select, Step, Together, Where
from airflow_flinkcompat.backfill.connectors.base import Metadata, Range, Source
from airflow_flinkcompat.backfill.connectors.places import Places
from airflow_flinkcompat.backfill.errors import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import converted, references, scalar
from airflow_flinkcompat.backfill.spark_sql.windows import Demand
from airflow_flinkcompat.plan.expressions import InputRef
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Opaque,
    Over,
    Project,
    Scan,
    Table,
    Union,
    WindowAssign,
)
from airflow_flinkcompat.plan.types import TIMESTAMPS, Column

_CONSTRUCTS = {
    "Join": "a join",
    "Sort": "ORDER BY or LIMIT",
    "Values": "VALUES or a SELECT without FROM",
    "Correlate": "a table function",
}


@dataclass(frozen=True)
class Relations:
    """Compiles the relations of one pipeline: where tables lie, which windows are published, the settings in force."""

    places: Places
    bounds: Range
    settings: Mapping[str, str]
    drop_late: bool = False
    written: bool = False
    """Whether the pipeline is a program's, which can say what SQL cannot."""
    columns: Columns = field(default_factory=Columns)
    asked: Mapping[int, Demand] | None = None
    """Under a window: what it asks of the windows below, by node; those it does not ask of are all computed."""
    arriving: bool = False
    """Under what goes by the order in which rows arrive."""

    @property
    def batch(self) -> bool:
        """Whether the script runs in batch mode, where there are no time attributes."""
        return self.settings.get("execution.runtime-mode", "streaming").lower() == "batch"

    def demand(self, node: WindowAssign | GroupWindowAggregate) -> Demand:
        """Which windows of a windowing node are computed."""
        if self.asked is None:
            return self.own
        asked = self.asked.get(id(node), Demand())
        # Late rows are counted for all windows of the range, whether or not windows above hold them.
        return asked.covering(self.own) if self.drop_late else asked

    @property
    def own(self) -> Demand:
        """The windows wholly inside the range, and of the chunk."""
        return Demand.inside(self.bounds.from_, self.bounds.to, self.bounds.after)

    def under(self, asked: Mapping[int, Demand]) -> Relations:
        """For what lies below a window."""
        return replace(self, asked=asked)

    def following_arrival(self, arriving: bool) -> Relations:
        """For what lies below an operator that goes by the order of arrival, or does not."""
        return replace(self, arriving=arriving)

    def node(self, node: Node, needed: frozenset[int], kept: Kept | None = None) -> Step:
        """The steps of a relation; ``kept`` says what stands above it where that is filters and projections."""
        kept = kept if ranking.numbered(node) else None
        needed = self.columns.of_all(node, needed, self.asked, (kept, self.arriving))
        match node:
            case Scan():
                return self.scan(node, needed)
            case Project():
                return self.project(node, needed, kept)
            case Filter():
                wanted = needed | references([node.condition])
                below = self.node(node.input, wanted, Kept.under(node, needed, kept))
                return Where(below, scalar(node.condition))
            case Union():
                positions = tuple(sorted(needed)) or (0,)
                inputs = tuple(self.branch(branch, node, positions) for branch in node.branches)
                return Together(inputs, positions)
            case WindowAssign():
                return windowing.assign(self, node, node.window, node.time, node.time_attribute, needed)
            case Aggregate():
                return windowing.aggregate_rows(self, node)
            case GroupWindowAggregate():
                return windowing.group_window(self, node)
            case Over() if along.aggregates(node):
                return along.over_rows(self, node, needed)
            case Over():
                return ranking.rank(self, node, needed, kept)
            case Opaque():
                raise Untranslatable(
                    f"{node.kind} cannot be recomputed in Spark: {node.reason or str(node.text)[:80]}", node.span
                )
        what = _CONSTRUCTS.get(type(node).__name__, type(node).__name__)
        if isinstance(node, Join):
            what = f"a {node.kind} join"
        raise Untranslatable(f"{what} is not recomputed by a backfill yet; {FLINK_BATCH}", node.span)

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
        source = self.places.source(table)
        if node.hints:
            raise Untranslatable(
                f"table {table.name}: hint {node.hints[0][0]} is not understood by a backfill; write options into WITH",
                node.span,
            )
        _check_watermark(table)
        computed, metadata = dict(table.computed), {name: key for name, key, _ in table.metadata}
        wanted = set(needed)
        late = self.drop_late and table.watermark is not None
        if late and table.watermark is not None:
            wanted |= references([table.watermark.expression])
        order = self.places.order(table) if late or self.arriving else ()
        wanted |= set(order)
        for position in tuple(wanted):
            expression = computed.get(table.columns[position].name)
            wanted |= references([expression]) if expression is not None else set()
        columns: list[tuple[int, str]] = []
        fields: list[tuple[int, int]] = []
        later: list[tuple[int, str]] = []
        for position in sorted(wanted):
            column = table.columns[position]
            if column.name in computed:
                later.append((position, scalar(computed[column.name])))
            elif column.name in metadata:
                columns.append((position, self.metadata(node, source, column, metadata[column.name])))
            else:
                field = table.physical.index(column.name)
                columns.append((position, source.decode(column, f"f{field}", replace(table, span=node.span))))
                fields.append((position, field))
        watermark = lateness.watermark(node, source, bool(order)) if self.drop_late else None
        arrival = tuple(f"c{position}" for position in order) if order or self.arriving else None
        return Read(table.name, source, tuple(columns), tuple(later), tuple(fields), watermark, arrival=arrival)

    def metadata(self, node: Scan, source: Source, column: Column, key: str) -> str:
        """A column METADATA FROM ``key``, cast to the type it is declared with."""
        found = source.metadata(key) if isinstance(source, Metadata) else None
        if found is None:
            raise Untranslatable(
                f"table {node.table.name}: metadata column {column.name} is not read by a backfill; {FLINK_BATCH}",
                node.span,
            )
        kind, sql = found
        plain = replace(column.type, nullable=True)
        if plain == kind:
            return sql
        if (kind.name, plain.name) == ("TIMESTAMP_LTZ", "TIMESTAMP") and plain.parameters >= kind.parameters:
            zone = self.settings.get("table.local-time-zone", "default")
            if zone == "UTC":
                return f"CAST({sql} AS TIMESTAMP_NTZ)"
            raise Untranslatable(
                f"table {node.table.name}: metadata column {column.name} is the local time in table.local-time-zone, "
                f"which is {zone}; SET 'table.local-time-zone' = 'UTC', or declare the column as {kind}",
                node.span,
            )
        raise Untranslatable(
            f"table {node.table.name}: metadata {key} is {kind}, column {column.name} is {column.type}, which is not "
            f"read exactly; declare it as {kind}",
            node.span,
        )

    def project(self, node: Project, needed: frozenset[int], kept: Kept | None) -> Step:
        chosen = [(i, node.expressions[i]) for i in sorted(needed)]
        wanted = references([expression for _, expression in chosen])
        below = self.node(node.input, wanted, None if kept is None else kept.through(node))
        return Select(below, tuple((i, scalar(expression)) for i, expression in chosen))


def _check_watermark(table: Table) -> None:
    """Raises :class:`Untranslatable` for a watermark Flink refuses, in its words."""
    for column in table.columns:
        precision = column.type.parameters[:1] if column.type.name in TIMESTAMPS else ()
        if table.watermark is not None and column.name == table.watermark.column and precision > (3,):
            raise Untranslatable(
                f"table {table.name}: Flink refuses this watermark: the supported precision 'p' is from 0 to 3, but "
                f"the time field type is {column.type}",
                table.span,
            )
