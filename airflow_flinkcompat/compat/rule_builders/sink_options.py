"""Verdicts on changed options of sink tables and lookup tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink import lookups, sinks
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode
from airflow_flinkcompat.compat.engines.flink.sinks import surely_projected
from airflow_flinkcompat.compat.evidence import restores
from airflow_flinkcompat.compat.rule_builders.part_rules import has_state_above
from airflow_flinkcompat.compat.rule_builders.table_options import (
    OptionChange,
    OptionVerdict,
    append_only,
    effect_clause,
    formats,
    harmless,
    members,
    not_measured,
    parallelism,
    selects_format,
    unmeasured_effect,
)
from airflow_flinkcompat.compat.verdict import combined, inferred, right, unknown, wrong
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import OptionEffect, OptionFact, SinkState, TableUse
from airflow_flinkcompat.connectors.registry import format_option
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.operators import Source

NOTHING_KEPT = ("sk-stateless-jdbc-table", "sk-stateless-jdbc-buffer", "sk-group-jdbc-retries", "sinks-print-option")
"""Restores with changed options of sinks without state."""
PRINTED = ("sinks-print-option",)
"""Restores of print sinks on more Flink minor versions."""
NOT_IN_WRITERS = ("sk-stateless-kafka-properties", "sk-group-upsert-buffer-removed", "sk-stateless-filesystem-rolling")
"""Restores with changed options that tune a stateful sink but are not in its state."""
SPREAD = ("sk-tumble-print-parallelism-2", "sk-group-jdbc-parallelism-2")
"""Restores with a separate parallelism of a stateless sink after a Calc."""
SPREAD_AS_THE_JOB = ("x-sink-option",)
WRITTEN_WHOLE = frozenset({"csv", "avro", "parquet", "orc"})
"""Formats whose files the filesystem sink completes at every checkpoint (BulkWriterFormatFactory).

With other formats, a restored sink continues an unfinished file at its old location (measured:
open-files-stateless-path).
"""
TEXT_FORMATS = frozenset({"json", "csv", "raw"})
"""Formats with one line per row; a sink may continue an unfinished file in a different text format."""
BROKERS = "properties.bootstrap.servers"
GUARANTEES = ("sink.delivery-guarantee", "sink.semantic")


def judge_sink_option(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    facts = registry.sink(change.connector)
    if facts.state is SinkState.NOT_KNOWN:
        return OptionVerdict(
            sinks.only_the_sink(change.connector), unknown(f"the state of sink {change.connector} is unknown")
        )
    nothing = {facts.state_with(options) for options in (change.before, change.after)} == {SinkState.NONE}
    if change.key == sinks.PARALLELISM:
        return _judge_parallelism(pair) if nothing else parallelism(change, fact, pair, facts.ids)
    if fact.effect is OptionEffect.STATE and fact.ids:
        (outcome, *_) = restores()[fact.ids[0]].values()
        return OptionVerdict(fact.note, wrong(*fact.ids, consequence=_ENDINGS.get(outcome)))
    if fact.effect in (OptionEffect.STATE, OptionEffect.KEY):
        return not_measured(
            change, fact, f"{fact.note or effect_clause(fact)}; no restore shows the effect of a different value"
        )
    if fact.effect is OptionEffect.DECODING and selects_format(change):
        return _judge_format(change, fact)
    if fact.effect is OptionEffect.TARGET and (kept := _unfinished_results(change)):
        return not_measured(change, fact, kept)
    sentence = fact.note or _SINK_NOTES.get(
        fact.effect, (f"{effect_clause(fact)}; no state of the sink contains the option")
    )
    if nothing:
        if fact.effect is not OptionEffect.TARGET:
            sentence = f"{effect_clause(fact)}; the sink stores nothing"
        return harmless(fact, sentence, NOTHING_KEPT, PRINTED if change.connector == "print" else ())
    if fact == format_option(change.key):
        return harmless(fact, sentence, _FORMATS_OF_SINKS.get(change.connector or "", NOT_IN_WRITERS))
    if fact.ids or fact.effect in (OptionEffect.TUNES, OptionEffect.CREDENTIALS):
        return harmless(fact, sentence, NOT_IN_WRITERS, facts.ids)
    return not_measured(
        change,
        fact,
        fact.note or f"{effect_clause(fact)}; its effect on the sink `{change.connector}` was not measured",
    )


def _judge_parallelism(pair: PipelinePair) -> OptionVerdict:
    """Verdict on an added or removed separate parallelism of a stateless sink."""
    given = (pair.old_pipeline.settings, pair.new_pipeline.settings)
    jobs = [settings.effective(dict(each), "parallelism.default", "flink") for each in given]
    # Measured only after a Calc, and with a known parallelism of the job.
    projected = None not in jobs and all(map(surely_projected, (pair.old, pair.new)))
    if reason := sinks.front_stays(pair, at_any_parallelism=projected):
        return OptionVerdict(reason, unknown(reason))
    return OptionVerdict("the operators before it stay the same", right(*(SPREAD if projected else SPREAD_AS_THE_JOB)))


def _unfinished_results(change: OptionChange) -> str:
    """Reason why a sink cannot finish its unfinished results at a different location; "" if there is none."""
    if change.connector == "filesystem" and not set(formats(change)) <= WRITTEN_WHOLE:
        return "the sink completes an unfinished file at the old location and writes new rows into that file (measured)"
    exactly_once = "exactly-once" in (change.before.get(key, "").lower() for key in GUARANTEES)
    if change.key == BROKERS and exactly_once and not set.intersection(*map(members, change.values)):
        return "the sink would look for uncommitted transactions at brokers that do not have them"
    return ""


_SINK_NOTES = {
    OptionEffect.TARGET: "new results go to the new location; earlier results stay at the old one",
    OptionEffect.DELIVERY_GUARANTEE: "the stored state of the sink can be restored with the new value",
}


def _judge_format(change: OptionChange, fact: OptionFact) -> OptionVerdict:
    old, new = formats(change)
    ids = _FORMATS_OF_SINKS.get(change.connector or "", ())
    appending = append_only(old, new)
    in_files = registry.sink(change.connector).state is SinkState.WRITER
    if ids and appending and (not in_files or {old, new} <= TEXT_FORMATS):
        return OptionVerdict(
            "the state of the sink contains no format: new results are written in the new format"
            + (", including the rest of an unfinished file" if in_files and old not in WRITTEN_WHOLE else ""),
            right(*ids),
        )
    return not_measured(change, fact, "a change between these formats of a sink was not measured")


_FORMATS_OF_SINKS = {
    "kafka": ("sk-group-upsert-format",),
    "upsert-kafka": ("sk-group-upsert-format",),
    "filesystem": ("sk-stateless-filesystem-format", "sk-tumble-filesystem-format"),
}
LOOKED_UP_OTHERWISE = ("sk-stateless-lookup-retries", "sk-group-lookup-retries", "sk-group-lookup-cache")
LOOKED_UP_ELSEWHERE = ("sk-stateless-lookup-table",)
GATHERED_FROM_ELSEWHERE = ("sk-group-lookup-table",)
ASKED_AGAIN = ("al-stateless-pending-capacity", "al-stateless-idle-lookup-column")
BECAME_ASYNCHRONOUS = ("al-stateless-idle-from-sync", "al-stateless-pending-from-sync", "al-group-pending-from-sync")
BECAME_SYNCHRONOUS = ("al-stateless-pending-hint-sync", "al-group-pending-hint-sync")
_ENDINGS = {
    "not_planned": Consequence.REFUSED_AT_SUBMIT,
    "refused_at_submit": Consequence.REFUSED_AT_SUBMIT,
    "refused_at_restore": Consequence.REFUSED_AT_RESTORE,
    "restored_WRONG": Consequence.SILENTLY_WRONG,
}
"""The consequence of a changed option, by the outcome of its failed restore."""
_FUNCTIONS = "LookupFunction, AsyncLookupFunction: Flink stores neither in a savepoint"
_EITHER_WAY = "a lookup stores at most the input rows that wait for an answer, and looks them up again"
_PURPOSES: Mapping[OptionEffect, frozenset[str]] = {
    OptionEffect.ADDRESS: frozenset({"url", "uri", "host", "hosts", "hostname", "port", "nodes", "quorum"}),
    OptionEffect.READ: frozenset(
        {"database", "schema", "table", "tablename", "collection", "index", "path", "keyspace"}
    ),
    OptionEffect.CREDENTIALS: frozenset({"user", "username", "password"}),
    OptionEffect.TUNES: frozenset({"cache", "ttl", "expire", "timeout", "retry", "retries"}),
    OptionEffect.DECODING: frozenset({"format", "charset", "encoding", "delimiter", "literal", "key"}),
}  # fmt: skip
"""Words in option names, by effect; no option of any connector with such a name sets the lookup mode."""
_WHOLE_TABLE = frozenset({"all", "full"})
"""Cache values that load the whole table, so that no row waits for an answer in any lookup mode."""
_MAY_SAY_HOW = frozenset(
    {"async", "asynchronous", "sync", "mode", "type", "strategy", "thread", "threads", "batch", "class"}
)


def effect_by_name(change: OptionChange) -> OptionFact | None:
    """Effect of a lookup option by the words in its name; None if the catalogue lists the options."""
    words = frozenset(re.split(r"[^a-z0-9]+", change.key.lower()))
    found = [effect for effect, names in _PURPOSES.items() if words & names]
    facts = registry.catalogue().get(change.connector or "")
    listed = facts is not None and bool(facts.options.get(TableUse.LOOKUP))
    if change.connector is None or listed or not found or words & _MAY_SAY_HOW:
        return None
    if any(value is not None and value.lower() in _WHOLE_TABLE for value in change.values):
        return None
    # Tuning words override other words: options for a table cache or a host timeout only tune the connector.
    effect = next(
        each for each in (OptionEffect.TUNES, OptionEffect.CREDENTIALS, OptionEffect.DECODING, *found) if each in found
    )
    return OptionFact(change.key, effect, document=_FUNCTIONS)


def judge_lookup_option(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    found = [each for each in pair.operators if lookups.is_lookup(each.new) and _looks_up(each, change.table)]
    if not found or pair.removed or pair.added:
        return not_measured(change, fact, "the lookup join was added or removed, or is now a different join")
    return max((_judge_one_lookup(change, fact, each) for each in found), key=lambda each: each.verdict.outcome.rank)


def _looks_up(pair: OperatorPair, table: str) -> bool:
    origins = (side.segments[1].origin for side in (pair.old, pair.new) if len(side.segments) > 1)
    return any(isinstance(origin, Source) and origin.table == table for origin in origins)


def _judge_one_lookup(change: OptionChange, fact: OptionFact, pair: OperatorPair) -> OptionVerdict:
    possible = lookups.possible_modes(pair) or (lookups.modes(pair),)
    found = [_judge_in_modes(change, fact, pair, modes) for modes in possible]
    if len(found) > 1 and all(each.verdict.outcome is Outcome.COMPATIBLE for each in found):
        return OptionVerdict(_EITHER_WAY, combined(each.verdict for each in found))
    return max(found, key=lambda each: each.verdict.outcome.rank)


def _judge_in_modes(
    change: OptionChange, fact: OptionFact, pair: OperatorPair, modes: tuple[LookupMode, LookupMode]
) -> OptionVerdict:
    if change.key == "lookup.async":
        return _judge_mode(modes)
    another_system = fact.effect is OptionEffect.ADDRESS and not set.intersection(*map(members, change.values))
    elsewhere = another_system or fact.effect is OptionEffect.READ
    if elsewhere and has_state_above(pair):
        sentence = "new lookups find different rows, but downstream operators have stored values of the old rows"
        return OptionVerdict(sentence, wrong(*GATHERED_FROM_ELSEWHERE))
    if set(modes) == {LookupMode.ASYNCHRONOUS}:
        return _judge_waiting_rows(change, fact, pair)
    if set(modes) != {LookupMode.SYNCHRONOUS}:
        return OptionVerdict(lookups.MAY_WAIT, unknown(f"'{change.key}' of a lookup that may be asynchronous"))
    if elsewhere:
        sentence = "a synchronous lookup stores nothing: new rows are enriched from the new location"
        return harmless(fact, sentence, LOOKED_UP_ELSEWHERE)
    if fact.effect in (OptionEffect.TUNES, OptionEffect.CREDENTIALS, OptionEffect.ADDRESS) or _decodes(fact, pair):
        return harmless(fact, f"{effect_clause(fact)}; a synchronous lookup stores nothing", LOOKED_UP_OTHERWISE)
    return not_measured(change, fact, unmeasured_effect(fact))


def _decodes(fact: OptionFact, pair: OperatorPair) -> bool:
    """True if the option affects only the decoding of rows that no downstream operator stores."""
    return fact.effect is OptionEffect.DECODING and not has_state_above(pair)


def _judge_waiting_rows(change: OptionChange, fact: OptionFact, pair: OperatorPair) -> OptionVerdict:
    """Verdict for an asynchronous lookup, which stores waiting input rows and looks them up again."""
    harmless_here = fact.effect in (
        OptionEffect.TUNES,
        OptionEffect.CREDENTIALS,
        OptionEffect.READ,
        OptionEffect.ADDRESS,
    )
    if harmless_here or _decodes(fact, pair):
        sentence = "the lookup stores waiting rows as input rows and looks them up again"
        return OptionVerdict(sentence, inferred(Outcome.COMPATIBLE, fact.document, ids=ASKED_AGAIN))
    return not_measured(change, fact, unmeasured_effect(fact))


def _judge_mode(modes: tuple[LookupMode, LookupMode]) -> OptionVerdict:
    match modes:
        case (LookupMode.SYNCHRONOUS, LookupMode.ASYNCHRONOUS):
            return OptionVerdict("a synchronous lookup had stored nothing", right(*BECAME_ASYNCHRONOUS))
        case (LookupMode.ASYNCHRONOUS, LookupMode.SYNCHRONOUS):
            return OptionVerdict("rows that wait for an answer are lost", wrong(*BECAME_SYNCHRONOUS))
        case (old, new) if old is new is not LookupMode.NOT_KNOWN:
            return OptionVerdict(f"the lookup stays {new.value}", right(*LOOKED_UP_OTHERWISE))
    return OptionVerdict(lookups.MAY_WAIT, unknown("lookup.async"))
