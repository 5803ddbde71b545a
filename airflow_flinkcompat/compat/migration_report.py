"""Report on the state that a rewritten savepoint keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.migration import (
    NEEDLESS,
    UNREMARKABLE,
    Migration,
    MigrationExtent,
    OperatorMigration,
)
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind
from airflow_flinkcompat.secrets import mask_secrets

_HEADLINES = {
    MigrationExtent.WHOLE: "MIGRATABLE: a rewritten savepoint keeps all of the state",
    MigrationExtent.PARTIAL: "PARTLY MIGRATABLE: a rewritten savepoint keeps some of the state",
    MigrationExtent.NONE: "NOT MIGRATABLE: no rewritten savepoint keeps the state of any operator",
}
_REFUSED = "NOT MIGRATABLE: the state of one operator cannot be kept, so no savepoint is written"
_KINDS = {StateKind.POSITIONS: "source", StateKind.SINK: "sink"}
SEEN_RULES = frozenset(
    {
        "aggregate-added", "aggregate-added-and-deleted", "aggregate-deleted", "aggregate-input-changed",
        "aggregate-modified", "aggregate-reordered", "aggregates-replaced", "all-aggregates-deleted",
        "distinct-aggregate-changed", "first-aggregate-added", "group-key-changed", "group-key-reordered",
        "insert-added-or-removed", "insert-columns-changed", "insert-order-changed", "interval-join-changed",
        "metric-written-twice",
        "no-aggregates", "only-aggregate-changed", "operators-added-or-removed", "output-changed", "over-changed",
        "plan-differs", "rank-order-changed", "rank-range-changed", "ranked-row-changed", "ranked-window-key-reordered",
        "regular-join-changed", "temporal-join-changed", "window-join-changed",
        "shared-operator-changed", "sink-table-changed", "source-renamed", "source-table-changed", "union-changed",
        "unread-metric-changed", "view-rewritten", "window-changed", "window-key-reordered",
    }
)  # fmt: skip
"""Rules about changes that a migration detects; changed functions and settings are not among them."""
MIGRATED_LINES = ("1.20", "2.3")
"""The lines of Flink with measured migrations (``dev/measure/results/migrations``)."""
SETTING_RULE = "setting-changed"
"""The rule about settings. A plan shows mini-batch, for example, but not the session time zone."""
CONDITION_RULE = "filter-below-state"
"""The rule about a condition on an aggregation's input. A migration keeps the state only on request."""
COMPUTED_RULES = frozenset({CONDITION_RULE, "rank-partition-changed", "rank-partition-reordered"})
"""Rules about stored rows; a migration covers the change if all state is kept or is from history."""
_MORE = ("computed", "null_columns", "null_outputs")
"""Lists of an operator that the JSON omits if they are empty."""
_LOST = frozenset({RestoreEffect.NOT_MIGRATABLE, RestoreEffect.DROPPED, RestoreEffect.EMPTY})
_DEFAULT = "`default_catalog`.`default_database`."


@dataclass(frozen=True)
class MigratedOperator:
    """A migration's effect on the state of one operator.

    Attributes:
        operator: A source or sink with its table; any other operator by its name in Flink's plan.
        effect: The effect on the state.
        reason: The reason for the effect, as a clause.
        keeps: The metrics that keep their stored values, as SQL.
        begins: The metrics that start empty.
        gone: The metrics that are dropped.
        computed: The metrics that are computed from past rows.
        null_columns: The columns that are NULL in rows stored before the migration.
        null_outputs: The sink columns that are computed from ``null_columns``.
        stored: The numbers of the stored state, if some of it is lost and a savepoint was read.
        id: The id under which a savepoint stores the state; "" if unknown. The JSON does not contain it.
        key: The columns of the key. The JSON does not contain them.
    """

    operator: str
    effect: RestoreEffect
    reason: str
    keeps: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    null_columns: tuple[str, ...] = ()
    null_outputs: tuple[str, ...] = ()
    stored: str = field(default="", kw_only=True)
    id: str = field(default="", compare=False, kw_only=True)
    key: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    @classmethod
    def of(cls, line: OperatorMigration) -> MigratedOperator:
        """Convert a migration's entry for one operator."""
        lists = (
            _kept_metrics(line),
            line.new_fields,
            line.dropped_fields,
            line.computed,
            line.null_columns,
            line.null_outputs,
        )
        metrics = (tuple(map(mask_secrets, found)) for found in lists)
        old = line.old
        key = tuple(each.words for each in old.layout.key) if old and isinstance(old.layout, StateLayout) else ()
        return cls(
            mask_secrets(_name(line)),
            line.effect,
            mask_secrets(line.reason),
            *metrics,
            id=old.id if old else "",
            key=tuple(map(mask_secrets, filter(None, key))),
        )

    @property
    def loses(self) -> bool:
        """True if stored state is lost."""
        return (self.effect in _LOST and self.reason != NEEDLESS) or bool(self.gone)

    @property
    def state(self) -> str:
        """The effect on the state, with the reason, NULL columns and numbers if there are any."""
        reason = "" if self.reason in UNREMARKABLE else self.reason
        stored = f"stored: {self.stored}" if self.stored else ""
        remarks = "; ".join(filter(None, (reason, self.null, stored)))
        return f"{self.effect}: {remarks}" if remarks else self.effect

    @property
    def null(self) -> str:
        """Clause about columns that are NULL in stored rows, and about output computed from them; "" if none."""
        if not self.null_columns:
            return ""
        outputs = f" (output columns: {', '.join(self.null_outputs)})" if self.null_outputs else ""
        return f"rows stored earlier have NULL in {', '.join(self.null_columns)}{outputs}"


@dataclass(frozen=True)
class MigrationReport:
    """The job state that a rewritten savepoint keeps: its extent, and an entry for each operator."""

    kept: MigrationExtent
    operators: tuple[MigratedOperator, ...]

    @classmethod
    def of(cls, migration: Migration) -> MigrationReport:
        """Convert a migration."""
        return cls(migration.kept, tuple(map(MigratedOperator.of, migration.operators)))

    @property
    def computes_all(self) -> bool:
        """True if all state is kept, and some of it is computed from past rows."""
        return self.kept is MigrationExtent.WHOLE and any(
            each.effect is RestoreEffect.COMPUTED for each in self.operators
        )

    @property
    def only_carries(self) -> bool:
        """True if the migration changes no state, so that the rewritten savepoint equals the old one."""
        return all(each.effect is RestoreEffect.RIGHT for each in self.operators)

    @property
    def headline(self) -> str:
        """A sentence about the extent of the kept state; the sentence begins with words in capitals."""
        keeps_other_state = any(
            each.effect in (RestoreEffect.REWRITTEN, RestoreEffect.MOVED, RestoreEffect.COMPUTED)
            for each in self.operators
        )
        return _REFUSED if self.kept is MigrationExtent.NONE and keeps_other_state else _HEADLINES[self.kept]

    def lines(self) -> Iterator[str]:
        """Lines about the state of each operator."""
        for each in self.operators:
            yield f"  {each.operator}: {each.state}"
            lists = (
                ("keeps", each.keeps),
                ("computed", each.computed),
                ("begins now", each.begins),
                ("dropped", each.gone),
            )
            for word, metrics in lists:
                if metrics:
                    yield f"    {word:<10} {', '.join(metrics)}"

    def to_dict(self) -> dict[str, Any]:
        """Convert the report to JSON values; :meth:`from_dict` is the inverse."""
        return {
            "kept": self.kept.value,
            "operators": [
                {
                    "operator": each.operator,
                    "state": each.effect.value,
                    "reason": each.reason,
                    "keeps": list(each.keeps),
                    "begins": list(each.begins),
                    "gone": list(each.gone),
                    **{part: list(found) for part in _MORE if (found := getattr(each, part))},
                    **({"stored": each.stored} if each.stored else {}),
                }
                for each in self.operators
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MigrationReport:
        """Read a report that :meth:`to_dict` wrote."""
        rows = (
            MigratedOperator(
                row["operator"],
                RestoreEffect(row["state"]),
                row["reason"],
                *(tuple(row.get(part, ())) for part in ("keeps", "begins", "gone", *_MORE)),
                stored=row.get("stored", ""),
            )
            for row in data["operators"]
        )
        return cls(MigrationExtent(data["kept"]), tuple(rows))


def _name(line: OperatorMigration) -> str:
    spec = line.new or line.old
    assert spec is not None
    if spec.kind is StateKind.OPERATOR:
        return spec.name
    return f"{_KINDS[spec.kind]} {spec.name.removeprefix(_DEFAULT).replace('`', '')}"


def _kept_metrics(line: OperatorMigration) -> tuple[str, ...]:
    """The metrics that keep their stored values, as SQL; empty if the operator's fields are unknown."""
    if line.effect is RestoreEffect.REWRITTEN:
        found = (
            field.words
            for state in line.states
            for field, source in zip(state.new.row, state.fields, strict=True)
            if source is not None and not field.hidden
        )
        return tuple(each for each in dict.fromkeys(found) if each and each not in (*line.new_fields, *line.computed))
    if (
        line.effect in (RestoreEffect.RIGHT, RestoreEffect.MOVED)
        and line.new is not None
        and isinstance(line.new.layout, StateLayout)
    ):
        found = (field.words for state in line.new.layout.states for field in state.row if not field.hidden)
        return tuple(each for each in dict.fromkeys(found) if each)
    return ()
