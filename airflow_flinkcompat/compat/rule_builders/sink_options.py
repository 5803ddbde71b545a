"""Options of sink tables and of lookup tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink import lookups, sinks
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode
from airflow_flinkcompat.compat.engines.flink.sinks import surely_projected
from airflow_flinkcompat.compat.engines.flink.upgrade import ENDINGS
from airflow_flinkcompat.compat.evidence import restores
from airflow_flinkcompat.compat.rule_builders.part_rules import gathered_above
from airflow_flinkcompat.compat.rule_builders.table_options import (
    OptionChange,
    OptionVerdict,
    append_only,
    decides,
    formats,
    harmless,
    members,
    names_a_format,
    not_measured,
    not_with_this_connector,
    parallelism,
)
from airflow_flinkcompat.compat.verdict import combined, inferred, right, unknown, wrong
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import OptionEffect, OptionFact, SinkState, TableUse
from airflow_flinkcompat.connectors.registry import format_option
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import Source

NOTHING_KEPT = ("sk-stateless-jdbc-table", "sk-stateless-jdbc-buffer", "sk-group-jdbc-retries", "sinks-print-option")
"""Options of sinks that keep nothing."""
PRINTED = ("sinks-print-option",)
"""Another option of sinks that print, on more lines of Flink."""
NOT_IN_WRITERS = ("sk-stateless-kafka-properties", "sk-group-upsert-buffer-removed", "sk-stateless-filesystem-rolling")
"""Options that tune sinks with state, and are in no state of them."""
SPREAD = ("sk-tumble-print-parallelism-2", "sk-group-jdbc-parallelism-2")
"""Verdict on a parallelism of its own for a stateless sink after a Calc."""
SPREAD_AS_THE_JOB = ("x-sink-option",)
WRITTEN_WHOLE = frozenset({"csv", "avro", "parquet", "orc"})
"""Formats whose files a sink completes at every checkpoint (BulkWriterFormatFactory).

With others it continues a file after a restore, in the place where it was begun (measured: open-files-stateless-path).
"""
TEXT_FORMATS = frozenset({"json", "csv", "raw"})
"""Formats with a line for a row: a file that is not finished may go on in another of them."""
BROKERS = "properties.bootstrap.servers"
GUARANTEES = ("sink.delivery-guarantee", "sink.semantic")


def on_sink(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    facts = registry.sink(change.connector)
    if facts.state is SinkState.NOT_KNOWN:
        return OptionVerdict(
            sinks.only_the_sink(change.connector), unknown(f"the state of sink {change.connector} is unknown")
        )
    nothing = {facts.state_with(options) for options in (change.before, change.after)} == {SinkState.NONE}
    if change.key == sinks.PARALLELISM:
        return _spread(pair) if nothing else parallelism(change, fact, pair, facts.ids)
    if fact.effect is OptionEffect.STATE and fact.ids:
        (outcome, *_) = restores()[fact.ids[0]].values()
        return OptionVerdict(fact.note, wrong(*fact.ids, consequence=ENDINGS.get(outcome)))
    if fact.effect in (OptionEffect.STATE, OptionEffect.KEY):
        return not_measured(change, fact, f"{fact.note or decides(fact)}; no restore shows what another value does")
    if fact.effect is OptionEffect.DECODING and names_a_format(change):
        return _format_of_sink(change, fact)
    if fact.effect is OptionEffect.TARGET and (kept := _unfinished_elsewhere(change)):
        return not_measured(change, fact, kept)
    says = fact.note or _SINK_NOTES.get(fact.effect, f"{decides(fact)}; no state of the sink contains it")
    if nothing:
        if fact.effect is not OptionEffect.TARGET:
            says = f"{decides(fact)}; the sink stores nothing"
        return harmless(fact, says, NOTHING_KEPT, PRINTED if change.connector == "print" else ())
    if fact == format_option(change.key):
        return harmless(fact, says, _FORMATS_OF_SINKS.get(change.connector or "", NOT_IN_WRITERS))
    if fact.ids or fact.effect in (OptionEffect.TUNES, OptionEffect.CREDENTIALS):
        return harmless(fact, says, NOT_IN_WRITERS, facts.ids)
    return not_measured(
        change, fact, fact.note or f"{decides(fact)}; its effect on the sink `{change.connector}` was not measured"
    )


def _spread(pair: PipelinePair) -> OptionVerdict:
    """A sink that keeps nothing got a parallelism of its own, or lost it, by its table or by a hint."""
    given = (pair.old_pipeline.settings, pair.new_pipeline.settings)
    jobs = [settings.effective(dict(each), "parallelism.default", "flink") for each in given]
    # Behind a Calc alone, and measured where the job's own parallelism was known.
    projected = None not in jobs and all(map(surely_projected, (pair.old, pair.new)))
    if reason := sinks.front_stays(pair, at_any_parallelism=projected):
        return OptionVerdict(reason, unknown(reason))
    return OptionVerdict("the operators before it stay the same", right(*(SPREAD if projected else SPREAD_AS_THE_JOB)))


def _unfinished_elsewhere(change: OptionChange) -> str:
    """Stored results that a sink has begun to write and cannot continue elsewhere; "" if none."""
    if change.connector == "filesystem" and not set(formats(change)) <= WRITTEN_WHOLE:
        return "an unfinished file is completed at the old location, with new rows in it (measured)"
    exactly_once = "exactly-once" in (change.before.get(key, "").lower() for key in GUARANTEES)
    if change.key == BROKERS and exactly_once and not set.intersection(*map(members, change.values)):
        return "uncommitted transactions would be looked for at brokers that have never seen them"
    return ""


_SINK_NOTES = {
    OptionEffect.TARGET: "new results go to the new location; earlier results stay at the old one",
    OptionEffect.DELIVERY_GUARANTEE: "the stored state of the sink can be restored with the new value",
}


def _format_of_sink(change: OptionChange, fact: OptionFact) -> OptionVerdict:
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
"""Words for the purpose of an option, whatever the connector: none of them sets the lookup mode."""
_WHOLE_TABLE = frozenset({"all", "full"})
"""Cache values for the whole table: no row waits for it, whatever the lookup mode."""
_MAY_SAY_HOW = frozenset(
    {"async", "asynchronous", "sync", "mode", "type", "strategy", "thread", "threads", "batch", "class"}
)


def unlisted(change: OptionChange) -> OptionFact | None:
    """Purpose of a lookup's option by its name, if the connector's options are not listed."""
    words = frozenset(re.split(r"[^a-z0-9]+", change.key.lower()))
    found = [effect for effect, names in _PURPOSES.items() if words & names]
    facts = registry.catalogue().get(change.connector or "")
    listed = facts is not None and bool(facts.options.get(TableUse.LOOKUP))
    if change.connector is None or listed or not found or words & _MAY_SAY_HOW:
        return None
    if any(value is not None and value.lower() in _WHOLE_TABLE for value in change.values):
        return None
    # A cache of a table, and the patience with a host, tune; a table's schema is what is read.
    effect = next(
        each for each in (OptionEffect.TUNES, OptionEffect.CREDENTIALS, OptionEffect.DECODING, *found) if each in found
    )
    return OptionFact(change.key, effect, document=_FUNCTIONS)


def on_lookup(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    found = [each for each in pair.operators if lookups.is_lookup(each.new) and _looks_up(each, change.table)]
    if not found or pair.removed or pair.added:
        return not_measured(change, fact, "the lookup was added or removed, or may be a different join")
    return max((_on_one_lookup(change, fact, each) for each in found), key=lambda each: each.verdict.outcome.rank)


def _looks_up(pair: OperatorPair, table: str) -> bool:
    origins = (side.segments[1].origin for side in (pair.old, pair.new) if len(side.segments) > 1)
    return any(isinstance(origin, Source) and origin.table == table for origin in origins)


def _on_one_lookup(change: OptionChange, fact: OptionFact, pair: OperatorPair) -> OptionVerdict:
    possible = lookups.possible_modes(pair) or (lookups.modes(pair),)
    found = [_in_modes(change, fact, pair, modes) for modes in possible]
    if len(found) > 1 and all(each.verdict.outcome is Outcome.COMPATIBLE for each in found):
        return OptionVerdict(_EITHER_WAY, combined(each.verdict for each in found))
    return max(found, key=lambda each: each.verdict.outcome.rank)


def _in_modes(
    change: OptionChange, fact: OptionFact, pair: OperatorPair, modes: tuple[LookupMode, LookupMode]
) -> OptionVerdict:
    if change.key == "lookup.async":
        return _mode(modes)
    another_system = fact.effect is OptionEffect.ADDRESS and not set.intersection(*map(members, change.values))
    elsewhere = another_system or fact.effect is OptionEffect.READ
    if elsewhere and gathered_above(pair):
        says = "new lookups find different rows, and downstream operators have accumulated values of the old rows"
        return OptionVerdict(says, wrong(*GATHERED_FROM_ELSEWHERE))
    if set(modes) == {LookupMode.ASYNCHRONOUS}:
        return _on_waiting_rows(change, fact, pair)
    if set(modes) != {LookupMode.SYNCHRONOUS}:
        return OptionVerdict(lookups.MAY_WAIT, unknown(f"'{change.key}' of a lookup that may be asynchronous"))
    if elsewhere:
        says = "a synchronous lookup stores nothing: new rows are enriched from the new location"
        return harmless(fact, says, LOOKED_UP_ELSEWHERE)
    if fact.effect in (OptionEffect.TUNES, OptionEffect.CREDENTIALS, OptionEffect.ADDRESS) or _decodes(fact, pair):
        return harmless(fact, f"{decides(fact)}; a synchronous lookup stores nothing", LOOKED_UP_OTHERWISE)
    return not_measured(change, fact, not_with_this_connector(fact))


def _decodes(fact: OptionFact, pair: OperatorPair) -> bool:
    """True if it decides how looked-up rows are decoded, and nothing above has stored them."""
    return fact.effect is OptionEffect.DECODING and not gathered_above(pair)


def _on_waiting_rows(change: OptionChange, fact: OptionFact, pair: OperatorPair) -> OptionVerdict:
    """Rows that wait are stored as they came in: they are asked for again, by the new options."""
    harmless_here = fact.effect in (
        OptionEffect.TUNES,
        OptionEffect.CREDENTIALS,
        OptionEffect.READ,
        OptionEffect.ADDRESS,
    )
    if harmless_here or _decodes(fact, pair):
        says = "rows that wait for an answer are stored as input rows and looked up again"
        return OptionVerdict(says, inferred(Outcome.COMPATIBLE, fact.document, ids=ASKED_AGAIN))
    return not_measured(change, fact, not_with_this_connector(fact))


def _mode(modes: tuple[LookupMode, LookupMode]) -> OptionVerdict:
    match modes:
        case (LookupMode.SYNCHRONOUS, LookupMode.ASYNCHRONOUS):
            return OptionVerdict("a synchronous lookup had stored nothing", right(*BECAME_ASYNCHRONOUS))
        case (LookupMode.ASYNCHRONOUS, LookupMode.SYNCHRONOUS):
            return OptionVerdict("rows that wait for an answer are lost", wrong(*BECAME_SYNCHRONOUS))
        case (old, new) if old is new is not LookupMode.NOT_KNOWN:
            return OptionVerdict(f"the lookup stays {new.value}", right(*LOOKED_UP_OTHERWISE))
    return OptionVerdict(lookups.MAY_WAIT, unknown("lookup.async"))
