"""Engine ``flink``: effects of changed settings on a restore (measured on 2.3.0 and 1.20.3).

Each key has a list of measured verdicts with conditions. The first verdict with a true condition applies. If no
condition is true, the change was not measured.
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
"""Up to this parallelism, Flink divides keyed state into the same 128 key groups."""


@dataclass(frozen=True)
class Changed:
    """A setting that differs, with its effective values: None if it is not set and its default is unknown."""

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
        """The materializers before all sinks on both sides."""
        return frozenset(side for pair in self.change.pipelines for side in materializers(pair))

    def source_with_key(self) -> bool:
        """True if a source declares a primary key, so that Flink may normalize its changes with state."""
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
    """True if only windowed aggregations keep state."""
    return _kinds(changed) == {"window aggregation"}


def _plain_aggregation(changed: Changed) -> bool:
    return AggregateKind.GROUP in _kinds(changed)


def _only_plain_aggregations(changed: Changed) -> bool:
    plain = _kinds(changed) == {AggregateKind.GROUP}
    return plain and not any(call.distinct for side in changed.aggregations for call in side.aggregates)


def _lives(value: str | None) -> bool:
    return value is not None and value.isdecimal() and int(value) > 0


def _ttl_out_of_reach(changed: Changed) -> bool:
    """True if only windowed aggregations keep state, which a state TTL does not affect."""
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
"""Operators for which a state TTL was added or removed on 2.3 with a correct restore."""


def _ttl_taken(changed: Changed) -> bool:
    return _kinds(changed) <= TTL_TAKEN and changed.materializers == {Materializer.NONE}


def _ttl_lengthened(changed: Changed) -> bool:
    """True if both sides set a state TTL for measured operators."""
    return all(map(_lives, changed.values)) and _kinds(changed) <= {AggregateKind.GROUP, AggregateKind.WINDOW}


def _ttl_on_materialized(changed: Changed) -> bool:
    return not all(map(_lives, changed.values)) and Materializer.UPSERT in changed.materializers


def _ttl_on_older(changed: Changed) -> bool:
    """True if, on older lines, a TTL on one side changes only the stored values of group aggregations."""
    one_sided = not all(map(_lives, changed.values))
    ended = restores()["u-ttl-add"].get(changed.change.new.version)
    return ended == "refused_at_restore" and one_sided and _plain_aggregation(changed)


def _ttl_of_aggregations(changed: Changed) -> bool:
    return _ttl_taken(changed) and _kinds(changed) == {AggregateKind.GROUP}


READ_IN_PARALLEL = (SourceState.PARTITIONS, SourceState.FILES)
"""Sources with the job's parallelism, whose positions Flink spreads over any number of subtasks."""


def _free_to_rescale(changed: Changed) -> bool:
    """True if all tables are declared, sinks keep no state, and no table sets a separate parallelism."""
    small = all(v is None or (v.isdecimal() and 1 <= int(v) <= KEY_GROUPS_BY_DEFAULT) for v in changed.values)
    known = {table.name for _, table in declared(changed.change)}
    own = any("parallelism" in key for _, table in declared(changed.change) for key, _ in table.options)
    quiet = all(
        is_stateless_sink(table.option("connector"))
        for output, table in declared(changed.change)
        if table.name == output.sink
    )
    whole = changed.change.used_tables - {""} <= known
    # A source with a single subtask is chained to the next operator only if the job's parallelism is 1.
    parallel = all(
        registry.source(table.option("connector")).positions in READ_IN_PARALLEL
        for output, table in declared(changed.change)
        if table.name in {source.table for source in sources(output)}
    )
    return small and quiet and whole and parallel and not own and changed.materializers == {Materializer.NONE}


def _rescaled(changed: Changed) -> bool:
    """True for aggregations into sinks without state, if no table sets a separate parallelism."""
    aggregated = bool(_kinds(changed)) and _kinds(changed) <= {"window aggregation", AggregateKind.GROUP}
    return aggregated and _free_to_rescale(changed)


def _rescaled_without_state(changed: Changed) -> bool:
    """True for stateless queries between Kafka and sinks without state."""
    read = {source.table for output in changed.outputs for source in sources(output)}
    from_kafka = {t.name for _, t in declared(changed.change) if t.option("connector") == "kafka"}
    return not changed.operators and read <= from_kafka and _free_to_rescale(changed)


ZONE_FREE = frozenset({"sum", "count", "min", "max", "avg", "+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">="})
"""Functions with the same result in every time zone, if no argument contains an instant."""


HOLDS_NO_INSTANT = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN"})
"""Types of metadata columns that never contain a converted instant."""


def _casts_instants(program: Program) -> bool:
    """True if the zone may affect the cast of a metadata instant, such as Kafka's timestamp."""
    return any(
        column.type.name not in HOLDS_NO_INSTANT
        for table in program.tables
        for column in table.columns
        if column.name in {name for name, _, _ in table.metadata}
    )


def _no_zone(changed: Changed) -> bool:
    """True if no column contains an instant and no call creates one, so that the zone has no effect."""
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
    """True if the zone changes the ends of windows over instants, which are stored in local time."""
    columns = {(column.name, column.type.name) for _, table in declared(changed.change) for column in table.columns}
    instants = {name for name, type in columns if type == "TIMESTAMP_LTZ"} - {
        name for name, type in columns if type != "TIMESTAMP_LTZ"
    }
    windows = [each.window for each in changed.aggregations if each.windowed and each.window is not None]
    times = (window.time for window in windows if window.notation == "tvf" and window.window.gap is None)
    return _clocks_differ(changed) and any(isinstance(time, SourceColumn) and time.column in instants for time in times)


def _clocks_differ(changed: Changed) -> bool:
    """True if both time zones are known, and their offsets differ in winter or summer."""
    try:
        zones = [ZoneInfo(value or "") for value in changed.values]
    except (ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return False
    moments = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 7))
    return any(len({moment.astimezone(zone).utcoffset() for zone in zones}) > 1 for moment in moments)


def _without_options(changed: Changed) -> bool:
    """True if no query has an OPTIONS hint, which the setting may forbid."""
    written = (output.hints for output in changed.outputs)
    read = (source.hints for output in changed.outputs for source in sources(output))
    return not any(name == OPTIONS for hints in (*written, *read) for name, _ in hints)


def _both_set(changed: Changed) -> bool:
    return None not in changed.values


def _value(*values: str) -> Condition:
    """Condition: at least one side has one of these values."""
    return lambda changed: bool({*changed.values} & {*values})


def _to_or_from_batch(changed: Changed) -> bool:
    return {(value or "").upper() for value in changed.values} == {"STREAMING", "BATCH"}


def _within(*values: str | None) -> Condition:
    """Condition: both sides have one of these values."""
    return lambda changed: {*changed.values} <= {*values}


def _positive(changed: Changed) -> bool:
    """True if both sides set a number greater than zero, as Flink requires for mini-batch."""
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
    """True if each sink has the same known materializer, or none, on both sides."""
    planned = [materializers(pair) for pair in changed.change.pipelines]
    return all(old is new and old is not Materializer.NOT_KNOWN for old, new in planned)


def _never_zero(changed: Changed) -> bool:
    return all(value is None or _lives(value) for value in changed.values)


def _switched(key: str, value: str) -> Condition:
    """Condition: this setting has this value for every query of both sides."""

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
BATCHED = "the setting limits a buffer by rows or time, and Flink empties the buffer before every savepoint"
_NOT_STORED = ("settings-restart-strategy", "settings-checkpointing", "settings-unaligned")
HARMLESS = inferred(
    Outcome.COMPATIBLE,
    "the setting affects neither the plan nor stored state, like the measured settings",
    ids=_NOT_STORED,
)
_OF_THE_JOB = "execution."
"""Prefix of keys that only Flink's classes declare. A different key may be an old SQL client setting."""
NO_OPTION = inferred(
    Outcome.COMPATIBLE,
    "no class in these lines of Flink declares the key, so the setting has no effect",
    ids=_NOT_STORED,
)
TABLE: Mapping[str, Rows] = {
    "execution.runtime-mode": (
        (
            _to_or_from_batch,
            inferred(
                Outcome.INCOMPATIBLE, "Flink's page on execution modes: a batch job neither writes nor reads savepoints"
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
        (anything, unknown("the value 0 disables watermarks, so no event-time window would end")),
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
        (_ttl_on_older, refused("u-ttl-add", note="the value serializer differs on older lines")),
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
    "pipeline.max-parallelism": ((_both_set, refused_at_submit("x-maxparallelism-change")),),
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
        (
            _materialized_alike,
            right("sm-clause-dropped", note="the setting affects only the requirement of ON CONFLICT"),
        ),
        (
            anything,
            unknown("a materializer that stores rows before the sink may depend on the setting"),
        ),
    ),
}
"""Measured verdicts by key. The first verdict with a true condition applies."""

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
"""Prefixes of keys that, by inference, have no effect on state.

The keys concern only times and locations of snapshots, retries, the location and user of a job, a client's display, or
a different engine.
"""


INDEPENDENT_OF_TABLES = (
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
"""Prefixes of keys whose verdict does not depend on the declarations of tables."""


def depends_on_tables(key: str) -> bool:
    """True if the verdict on a changed setting may depend on table declarations."""
    return not key.startswith(INDEPENDENT_OF_TABLES)


def verdict(key: str, old: str | None, new: str | None, change: Change) -> Verdict | None:
    """Verdict on a changed setting with the values in the scripts; None if the change was not measured."""
    before, after = (settings.effective({} if text is None else {key: text}, key, "flink") for text in (old, new))
    changed = Changed(before, after, change)
    found = next((answer for condition, answer in TABLE.get(key, ()) if condition(changed)), None)
    if found is None and key.startswith(_OF_THE_JOB) and not any(setting(key, line) for line in change.versions):
        return NO_OPTION
    return HARMLESS if found is None and key.startswith(INFERRED) else found


def zone_matters(change: Change) -> bool:
    """True if the session's time zone changed and may affect the conversion of values."""
    zones = (part for part in change.parts("setting") if part.key == f"setting/{_ZONE}")
    found = (verdict(_ZONE, part.before, part.after, change) for part in zones)
    return any(each is None or each.outcome is not Outcome.COMPATIBLE for each in found)
