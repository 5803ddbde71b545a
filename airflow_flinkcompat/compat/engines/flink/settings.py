"""Engine ``flink``: effects of changed settings on a restore, by key (measured on 2.3.0 and 1.20.3).

The first row of a key whose condition holds decides; without one, the change was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.query_form import OPTIONS
from airflow_flinkcompat.compat.changes.settings import TTL
from airflow_flinkcompat.compat.engines.flink.sinks import declared, materializers
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import REQUIRED, Materializer
from airflow_flinkcompat.compat.evidence import restores
from airflow_flinkcompat.compat.verdict import Verdict, inferred, refused, refused_at_submit, right, unknown, wrong
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import SourceState
from airflow_flinkcompat.connectors.flink_options import setting
from airflow_flinkcompat.connectors.registry import is_stateless_sink
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    Operator,
    Output,
    OverOperator,
    RankKind,
    operators,
    sources,
)
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.program import Program

MINI_BATCH = "table.exec.mini-batch.enabled"
_ZONE = "table.local-time-zone"
KEY_GROUPS_BY_DEFAULT = 85
"""Up to this parallelism Flink divides keyed state into the same 128 groups."""


@dataclass(frozen=True)
class Changed:
    """One setting that differs: its effective values, None if it is left out and no default is known."""

    old: str | None
    new: str | None
    change: Change

    @property
    def values(self) -> tuple[str | None, str | None]:
        return self.old, self.new

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(output for pair in self.change.pipelines for output in (pair.old, pair.new))

    @property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(operator for output in self.outputs for operator in operators(output))

    @property
    def aggregations(self) -> tuple[AggregateOperator, ...]:
        return tuple(operator for operator in self.operators if isinstance(operator, AggregateOperator))

    @property
    def materializers(self) -> frozenset[Materializer]:
        """The operators that settle rows of one key in front of a sink, over all sinks and sides."""
        return frozenset(side for pair in self.change.pipelines for side in materializers(pair))

    def source_with_key(self) -> bool:
        """Return whether a source declares a primary key, so that Flink may normalize its changes with state."""
        return any(
            table.primary_key
            for output, table in declared(self.change)
            if table.name in {source.table for source in sources(output)}
        )


Condition = Callable[[Changed], bool]


def anything(_: Changed) -> bool:
    return True


def _kinds(changed: Changed) -> frozenset[str]:
    return frozenset(operator.kind for operator in changed.operators)


def _only_windowed(changed: Changed) -> bool:
    """True if only windowed aggregations keep state.

    A legacy group window takes a time to live for its lateness.
    """
    return _kinds(changed) == {"window aggregation"}


def _plain_aggregation(changed: Changed) -> bool:
    return AggregateKind.GROUP in _kinds(changed)


def _only_plain_aggregations(changed: Changed) -> bool:
    plain = _kinds(changed) == {AggregateKind.GROUP}
    return plain and not any(call.distinct for side in changed.aggregations for call in side.aggregates)


def _lives(value: str | None) -> bool:
    return value is not None and value.isdecimal() and int(value) > 0


def _ttl_out_of_reach(changed: Changed) -> bool:
    """Windowed aggregations clean up by themselves; nothing else is there that could keep state."""
    quiet = changed.materializers == {Materializer.NONE} and not changed.source_with_key()
    return _only_windowed(changed) and quiet


TTL_TAKEN = frozenset(
    {
        AggregateKind.GROUP,
        OverOperator.KIND,
        AggregateKind.WINDOW,
        JoinForm.REGULAR,
        RankKind.TOP_N,
        RankKind.DEDUPLICATION,
    }
)
"""Operators over whose state a time to live was set or taken away on 2.3 and restored right."""


def _ttl_taken(changed: Changed) -> bool:
    return _kinds(changed) <= TTL_TAKEN and changed.materializers == {Materializer.NONE}


def _ttl_lengthened(changed: Changed) -> bool:
    """A time to live on both sides, of another length."""
    return all(map(_lives, changed.values)) and _kinds(changed) <= {AggregateKind.GROUP, AggregateKind.WINDOW}


def _ttl_on_materialized(changed: Changed) -> bool:
    return not all(map(_lives, changed.values)) and Materializer.UPSERT in changed.materializers


def _ttl_on_older(changed: Changed) -> bool:
    """Check if a state TTL on one side changes the stored values of a group aggregation (older lines)."""
    one_sided = not all(map(_lives, changed.values))
    ended = restores()["u-ttl-add"].get(changed.change.new.version)
    return ended == "refused_at_restore" and one_sided and _plain_aggregation(changed)


def _ttl_of_aggregations(changed: Changed) -> bool:
    return _ttl_taken(changed) and _kinds(changed) == {AggregateKind.GROUP}


READ_IN_PARALLEL = (SourceState.PARTITIONS, SourceState.FILES)
"""Sources that run in as many subtasks as the job, whose positions are spread over any number of them."""


def _free_to_rescale(changed: Changed) -> bool:
    """True if every table is declared, sinks keep no state, and nothing has a parallelism of its own."""
    small = all(v is None or (v.isdecimal() and 1 <= int(v) <= KEY_GROUPS_BY_DEFAULT) for v in changed.values)
    known = {table.name for _, table in declared(changed.change)}
    own = any("parallelism" in key for _, table in declared(changed.change) for key, _ in table.options)
    quiet = all(
        is_stateless_sink(table.option("connector"))
        for output, table in declared(changed.change)
        if table.name == output.sink
    )
    whole = changed.change.used_tables - {""} <= known
    # A source of one subtask alone is chained to what follows only where the job has no more.
    parallel = all(
        registry.source(table.option("connector")).positions in READ_IN_PARALLEL
        for output, table in declared(changed.change)
        if table.name in {source.table for source in sources(output)}
    )
    return small and quiet and whole and parallel and not own and changed.materializers == {Materializer.NONE}


def _rescaled(changed: Changed) -> bool:
    """Aggregations into sinks without state, nothing with a parallelism of its own."""
    aggregated = bool(_kinds(changed)) and _kinds(changed) <= {"window aggregation", AggregateKind.GROUP}
    return aggregated and _free_to_rescale(changed)


def _rescaled_without_state(changed: Changed) -> bool:
    """Queries that keep nothing themselves, between Kafka and sinks without state."""
    read = {source.table for output in changed.outputs for source in sources(output)}
    from_kafka = {t.name for _, t in declared(changed.change) if t.option("connector") == "kafka"}
    return not changed.operators and read <= from_kafka and _free_to_rescale(changed)


ZONE_FREE = frozenset({"sum", "count", "min", "max", "avg", "+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">="})
"""Functions with the same result in every time zone for arguments that hold no instant."""


HOLDS_NO_INSTANT = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN"})
"""Types of metadata columns into which no instant is cast."""


def _casts_instants(program: Program) -> bool:
    """Check if a cast of an instant from a connector, such as Kafka's timestamp, may depend on the zone."""
    return any(
        column.type.name not in HOLDS_NO_INSTANT
        for table in program.tables
        for column in table.columns
        if column.name in {name for name, _, _ in table.metadata}
    )


def _no_zone(changed: Changed) -> bool:
    """True if no column holds an instant and no call makes one: the zone has no effect."""
    columns = (c for program in changed.change.programs for table in program.tables for c in table.columns)
    whole = all(table.declared for program in changed.change.programs for table in program.tables)
    plain = whole and not any("LTZ" in str(c.type) or not c.type.is_known for c in columns)
    return (
        plain
        and not any(map(_casts_instants, changed.change.programs))
        and changed.change.used_functions <= ZONE_FREE
        and not changed.change.opaque
    )


def _windows_move(changed: Changed) -> bool:
    """True if another clock cuts windows over instants: their ends are stored in local time."""
    columns = {(column.name, column.type.name) for _, table in declared(changed.change) for column in table.columns}
    instants = {name for name, type in columns if type == "TIMESTAMP_LTZ"} - {
        name for name, type in columns if type != "TIMESTAMP_LTZ"
    }
    windows = [each.window for each in changed.aggregations if each.windowed and each.window is not None]
    times = (window.time for window in windows if window.notation == "tvf" and window.window.gap is None)
    return _clocks_differ(changed) and any(isinstance(time, SourceColumn) and time.column in instants for time in times)


def _clocks_differ(changed: Changed) -> bool:
    """Return whether both time zones are known, and differ in winter or summer."""
    try:
        zones = [ZoneInfo(value or "") for value in changed.values]
    except (ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return False
    moments = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 7))
    return any(len({moment.astimezone(zone).utcoffset() for zone in zones}) > 1 for moment in moments)


def _without_options(changed: Changed) -> bool:
    """True if no query has an OPTIONS hint, which the option forbids."""
    written = (output.hints for output in changed.outputs)
    read = (source.hints for output in changed.outputs for source in sources(output))
    return not any(name == OPTIONS for hints in (*written, *read) for name, _ in hints)


def _given(changed: Changed) -> bool:
    return None not in changed.values


def _value(*values: str) -> Condition:
    """One of the values on either side."""
    return lambda changed: bool({*changed.values} & {*values})


def _to_or_from_batch(changed: Changed) -> bool:
    return {(value or "").upper() for value in changed.values} == {"STREAMING", "BATCH"}


def _within(*values: str | None) -> Condition:
    """Both sides among the values."""
    return lambda changed: {*changed.values} <= {*values}


def _positive(changed: Changed) -> bool:
    """True if both sides set a number greater than zero, as Flink requires with mini-batch on."""
    return all(map(_lives, changed.values))


def _aggregated_only(changed: Changed) -> bool:
    return _kinds(changed) <= {AggregateKind.GROUP, AggregateKind.WINDOW}


def _stateful(changed: Changed) -> bool:
    return bool(changed.operators)


def _all_of(*conditions: Condition) -> Condition:
    return lambda changed: all(condition(changed) for condition in conditions)


def _aggregated(changed: Changed) -> bool:
    return bool(changed.aggregations)


def _one_phase_already(changed: Changed) -> bool:
    """True if plain group aggregations have one phase, because mini-batch is off."""
    return _only_plain_aggregations(changed) and _switched(MINI_BATCH, "false")(changed)


def _distinct(changed: Changed) -> bool:
    return any(call.distinct for side in changed.aggregations for call in side.aggregates)


def _three_joined(changed: Changed) -> bool:
    return any(sum("join" in operator.kind for operator in operators(output)) > 1 for output in changed.outputs)


def _materialized(changed: Changed) -> bool:
    return Materializer.UPSERT in changed.materializers


def _materialized_alike(changed: Changed) -> bool:
    """True if every sink has the same materializer, or none, in front of it on both sides."""
    planned = [materializers(pair) for pair in changed.change.pipelines]
    return all(old is new and old is not Materializer.NOT_KNOWN for old, new in planned)


def _never_zero(changed: Changed) -> bool:
    return all(value is None or _lives(value) for value in changed.values)


def _switched(key: str, value: str) -> Condition:
    """True if this option has this value for every query of both sides."""

    def switched(changed: Changed) -> bool:
        given = (dict(p.settings) for program in changed.change.programs for p in program.pipelines)
        return all(settings.effective(each, key, "flink") == value for each in given)

    return switched


Rows = tuple[tuple[Condition, Verdict], ...]
IDLE_OPTION: Rows = (
    (
        _switched(MINI_BATCH, "false"),
        inferred(Outcome.COMPATIBLE, "read only if mini-batch is on", ids=("settings-mini-batch-latency",)),
    ),
)
BATCHED_ON = _all_of(_switched(MINI_BATCH, "true"), _positive)
BATCH_SIZES = ("ps-group-minibatch-size", "ps-tumble-minibatch-size")
BATCH_TIMES = ("ps-tumble-minibatch-latency", "settings-mini-batch-latency")
BATCHED = "how many rows or how long an operator buffers; the buffer is emptied before every savepoint"
_NOT_STORED = ("settings-restart-strategy", "settings-checkpointing", "settings-unaligned")
HARMLESS = inferred(
    Outcome.COMPATIBLE, "affects neither the plan nor the stored state, like these settings", ids=_NOT_STORED
)
_OF_THE_JOB = "execution."
"""Prefix of keys that only Flink's classes declare; others are of the SQL client's old settings file."""
NO_OPTION = inferred(
    Outcome.COMPATIBLE,
    "no class of these lines of Flink declares the key, so nothing reads it",
    ids=_NOT_STORED,
)
TABLE: Mapping[str, Rows] = {
    "execution.runtime-mode": (
        (
            _to_or_from_batch,
            inferred(
                Outcome.INCOMPATIBLE, "Flink's page on execution modes: a batch job takes no savepoint and reads none"
            ),
        ),
    ),
    "table.dynamic-table-options.enabled": (
        (_without_options, HARMLESS),
        (_within("true"), HARMLESS),
    ),
    "pipeline.name": ((anything, right("x-pipeline-name")),),
    "pipeline.object-reuse": ((anything, right("x-objectreuse")),),
    "pipeline.auto-watermark-interval": (
        (_never_zero, right("settings-watermark-interval")),
        (anything, unknown("0 turns watermarks off, so no event-time window would end")),
    ),
    "execution.checkpointing.unaligned.enabled": ((anything, right("settings-unaligned")),),
    "table.exec.source.idle-timeout": ((anything, right("x-idle-timeout-added")),),
    "execution.checkpointing.mode": ((anything, right("ps-group-checkpoint", "ps-tumble-checkpoint")),),
    "execution.checkpointing.incremental": ((anything, right("ps-tumble-rocksdb-both")),),
    "table.exec.sink.not-null-enforcer": ((_within("ERROR", "DROP"), right("ps-group-not-null")),),
    "state.backend.type": (
        (
            _within("hashmap", "rocksdb", None),
            right("settings-backend-rocksdb", "settings-backend-hashmap", note="canonical savepoint"),
        ),
    ),
    "parallelism.default": (
        (_rescaled, right("x-parallelism-1to2-idle")),
        (
            _rescaled_without_state,
            right("ps-stateless-par-1-2", "ps-stateless-par-2-3", "ps-stateless-par-1-2-one-partition"),
        ),
    ),
    TTL: (
        (_ttl_on_materialized, refused("sm-ttl-set", "sm-ttl-unset", note="the sink's materializer")),
        (_ttl_out_of_reach, right("x-ttl-set")),
        (_ttl_lengthened, right("settings-ttl-group-longer")),
        (_ttl_on_older, refused("u-ttl-add", note="another value serializer on older lines")),
        (
            _ttl_of_aggregations,
            right("ga-ttl-set", "ga-ttl-unset", "settings-ttl-group-added", "settings-ttl-group-removed"),
        ),
        (
            _ttl_taken,
            right("ga-ttl-set", "ga-ttl-unset", "oa-ttl-set", "rj-ttl-unset", "tn-ttl-unset", "dd-rd-ttl-set"),
        ),
    ),
    _ZONE: (
        (_no_zone, right("settings-time-zone")),
        (_windows_move, wrong("settings-time-zone-windows", "settings-time-zone-windows-half")),
    ),
    "pipeline.max-parallelism": ((_given, refused_at_submit("x-maxparallelism-change")),),
    "pipeline.operator-chaining.enabled": ((anything, refused_at_submit("settings-chaining-off")),),
    MINI_BATCH: ((_stateful, refused_at_submit("u-minibatch", "ga-minibatch-on")),),
    "table.exec.mini-batch.size": (
        *IDLE_OPTION,
        (_all_of(BATCHED_ON, _aggregated_only), right(*BATCH_SIZES)),
        (BATCHED_ON, inferred(Outcome.COMPATIBLE, BATCHED, ids=BATCH_SIZES)),
    ),
    "table.exec.mini-batch.allow-latency": (
        *IDLE_OPTION,
        (_all_of(_switched(MINI_BATCH, "true"), _only_plain_aggregations), right("settings-mini-batch-latency")),
        (_all_of(BATCHED_ON, _aggregated_only), right(*BATCH_TIMES)),
        (BATCHED_ON, inferred(Outcome.COMPATIBLE, BATCHED, ids=BATCH_TIMES)),
    ),
    "table.optimizer.agg-phase-strategy": (
        (_all_of(_within("AUTO", "ONE_PHASE"), _one_phase_already), right("settings-one-phase-group")),
        (_all_of(_value("ONE_PHASE"), _aggregated), refused_at_submit("x-onephase", "ga-twophase-to-onephase")),
    ),
    "table.optimizer.distinct-agg.split.enabled": ((_distinct, refused_at_submit("w-distinct-split-setting")),),
    "table.optimizer.multi-join.enabled": ((_three_joined, refused_at_submit("rj-multijoin-on")),),
    "table.exec.uid.generation": (
        (_value("ALWAYS"), refused_at_submit("ks-stateless-uid-always", note="ids come from a counter")),
    ),
    "table.exec.async-state.enabled": ((_only_plain_aggregations, right("ga-async-state-on")),),
    "table.exec.source.cdc-events-duplicate": ((Changed.source_with_key, refused_at_submit("cd-normalize-on")),),
    "table.exec.sink.upsert-materialize": ((_all_of(_value("NONE"), _materialized), refused_at_submit("sm-none")),),
    "table.exec.sink.upsert-materialize-strategy.type": (
        (
            _materialized,
            wrong("sm-strategy-value", "sm-strategy-map", "sm-strategy-adaptive", note="the stored rows are ignored"),
        ),
    ),
    REQUIRED: (
        (_materialized_alike, right("sm-clause-dropped", note="it decides only whether Flink requires ON CONFLICT")),
        (
            anything,
            unknown("it may decide whether a materializer stores rows before the sink"),
        ),
    ),
}
"""Measured verdicts by key: conditions in order, each with its verdict."""

INFERRED: tuple[str, ...] = (
    "restart-strategy",
    "execution.checkpointing.dir",
    "execution.checkpointing.externalized-checkpoint-retention",
    "execution.checkpointing.interval",
    "execution.checkpointing.max-concurrent-checkpoints",
    "execution.checkpointing.min-pause",
    "execution.checkpointing.num-retained",
    "execution.checkpointing.savepoint-dir",
    "execution.checkpointing.storage",
    "execution.checkpointing.timeout",
    "execution.checkpointing.tolerable-failed-checkpoints",
    "execution.attached",
    "execution.target",
    "kubernetes.",
    "metrics.",
    "rest.",
    "sql-client.",
    "table.display.",
    "table.dml-sync",
    "table.optimizer.state-compatibility.",
    "yarn.",
)
"""Prefixes of keys without an effect on state, as inferred.

They are about times and places of snapshots, retries, the place and user of a job, a client's display, or another
engine alone.
"""


WHATEVER_THE_TABLES = (
    *INFERRED,
    "execution.checkpointing.",
    "pipeline.auto-watermark-interval",
    "pipeline.name",
    "pipeline.object-reuse",
    "state.backend.type",
    "table.exec.mini-batch.allow-latency",
    "table.exec.mini-batch.size",
    "table.dynamic-table-options.enabled",
    "table.exec.source.idle-timeout",
    "table.sql-dialect",
)
"""Beginnings of keys whose verdict holds whatever the tables are that the queries read and write."""


def asks_for_tables(key: str) -> bool:
    """Return whether the effect of a setting's change may depend on table declarations."""
    return not key.startswith(WHATEVER_THE_TABLES)


def verdict(key: str, old: str | None, new: str | None, change: Change) -> Verdict | None:
    """Verdict on a changed setting; None if it was not measured. ``old`` and ``new`` are as written."""
    before, after = (settings.effective({} if text is None else {key: text}, key, "flink") for text in (old, new))
    changed = Changed(before, after, change)
    found = next((answer for condition, answer in TABLE.get(key, ()) if condition(changed)), None)
    if found is None and key.startswith(_OF_THE_JOB) and not any(setting(key, line) for line in change.versions):
        return NO_OPTION
    return HARMLESS if found is None and key.startswith(INFERRED) else found


def zone_matters(change: Change) -> bool:
    """Return whether the session's time zone changed and values may be converted in it."""
    zones = (part for part in change.parts("setting") if part.key == f"setting/{_ZONE}")
    found = (verdict(_ZONE, part.before, part.after, change) for part in zones)
    return any(each is None or each.outcome is not Outcome.COMPATIBLE for each in found)
