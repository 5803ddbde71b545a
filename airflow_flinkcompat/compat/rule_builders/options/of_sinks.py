"""Options of tables that are written: what a sink's stored state makes of them."""

from __future__ import annotations

from airflow_flinkcompat import connectors
from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.engines.flink.restores import surely_projected
from airflow_flinkcompat.compat.engines.flink.upgrade.verdict import ENDINGS
from airflow_flinkcompat.compat.evidence import restores
from airflow_flinkcompat.compat.rule_builders.options.option_verdict import (
    OptionChange,
    OptionVerdict,
    append_only,
    decides,
    formats,
    harmless,
    members,
    names_a_format,
    not_measured,
    parallelism,
)
from airflow_flinkcompat.connectors import OptionEffect, OptionFact, SinkState, format_option

NOTHING_KEPT = ("sk-stateless-jdbc-table", "sk-stateless-jdbc-buffer", "sk-group-jdbc-retries", "sinks-print-option")
"""Options of sinks that keep nothing."""
PRINTED = ("sinks-print-option",)
"""Another option of sinks that print, on more lines of Flink."""
NOT_IN_WRITERS = ("sk-stateless-kafka-properties", "sk-group-upsert-buffer-removed", "sk-stateless-filesystem-rolling")
"""Options that tune sinks with state, and are in no state of them."""
SPREAD = ("sk-tumble-print-parallelism-2", "sk-group-jdbc-parallelism-2")
"""A sink that keeps nothing got a parallelism of its own, behind a Calc."""
SPREAD_AS_THE_JOB = ("x-sink-option",)
WRITTEN_WHOLE = frozenset({"csv", "avro", "parquet", "orc"})
"""Formats of which a sink finishes every file at a checkpoint (BulkWriterFormatFactory); with others it goes on with a
file after a restore, in the place where it was begun (measured: open-files-stateless-path)."""
TEXT_FORMATS = frozenset({"json", "csv", "raw"})
"""Formats with a line for a row: a file that is not finished may go on in another of them."""
BROKERS = "properties.bootstrap.servers"
GUARANTEES = ("sink.delivery-guarantee", "sink.semantic")


def on_sink(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    facts = connectors.sink(change.connector)
    if facts.state is SinkState.NOT_KNOWN:
        return OptionVerdict(
            sinks.only_the_sink(change.connector), unmeasured(f"what sink {change.connector} keeps is not known")
        )
    nothing = {facts.kept(options) for options in (change.before, change.after)} == {SinkState.NONE}
    if change.key == sinks.PARALLELISM:
        return _spread(pair) if nothing else parallelism(change, fact, pair, facts.ids)
    if fact.effect is OptionEffect.STATE and fact.ids:
        (outcome, *_) = restores()[fact.ids[0]].values()
        return OptionVerdict(fact.says, wrong(*fact.ids, consequence=ENDINGS.get(outcome)))
    if fact.effect in (OptionEffect.STATE, OptionEffect.KEY):
        return not_measured(change, fact, f"{fact.says or decides(fact)}; no restore shows what another value does")
    if fact.effect is OptionEffect.DECODING and names_a_format(change):
        return _format_of_sink(change, fact)
    if fact.effect is OptionEffect.TARGET and (kept := _begun_at_the_old_place(change)):
        return not_measured(change, fact, kept)
    says = fact.says or _SAID_OF_SINKS.get(fact.effect, f"{decides(fact)}; no state of the sink holds that")
    if nothing:
        if fact.effect is not OptionEffect.TARGET:
            says = f"{decides(fact)}; the sink stores nothing"
        return harmless(fact, says, NOTHING_KEPT, PRINTED if change.connector == "print" else ())
    if fact == format_option(change.key):
        return harmless(fact, says, _FORMATS_OF_SINKS.get(change.connector or "", NOT_IN_WRITERS))
    if fact.ids or fact.effect in (OptionEffect.TUNES, OptionEffect.CREDENTIALS):
        return harmless(fact, says, NOT_IN_WRITERS, facts.ids)
    return not_measured(
        change, fact, fact.says or f"{decides(fact)}: what that does to the sink `{change.connector}` was not measured"
    )


def _spread(pair: PipelinePair) -> OptionVerdict:
    """A sink that keeps nothing got a parallelism of its own, or lost it, by its table or by a hint."""
    given = (pair.old_pipeline.settings, pair.new_pipeline.settings)
    jobs = [settings.effective(dict(each), "parallelism.default", "flink") for each in given]
    # Behind a Calc alone, and measured where the job's own parallelism was known.
    projected = None not in jobs and all(map(surely_projected, (pair.old, pair.new)))
    if reason := sinks.front_stays(pair, at_any_parallelism=projected):
        return OptionVerdict(reason, unmeasured(reason))
    return OptionVerdict("what stands in front of it stays", right(*(SPREAD if projected else SPREAD_AS_THE_JOB)))


def _begun_at_the_old_place(change: OptionChange) -> str:
    """What a sink stores of results that it has begun to write and cannot go on with elsewhere; "" where nothing."""
    if change.connector == "filesystem" and not set(formats(change)) <= WRITTEN_WHOLE:
        return "an unfinished file is completed at the old place, with rows from now on (measured)"
    exactly_once = "exactly-once" in (change.before.get(key, "").lower() for key in GUARANTEES)
    if change.key == BROKERS and exactly_once and not set.intersection(*map(members, change.values)):
        return "transactions that are not committed yet would be asked for at brokers that have never seen them"
    return ""


_SAID_OF_SINKS = {
    OptionEffect.TARGET: "results from now on go to the new place; those written before stay where they are",
    OptionEffect.DELIVERY_GUARANTEE: "what the sink has stored can be restored with the new value",
}


def _format_of_sink(change: OptionChange, fact: OptionFact) -> OptionVerdict:
    old, new = formats(change)
    ids = _FORMATS_OF_SINKS.get(change.connector or "", ())
    appending = append_only(old, new)
    in_files = connectors.sink(change.connector).state is SinkState.WRITER
    if ids and appending and (not in_files or {old, new} <= TEXT_FORMATS):
        return OptionVerdict(
            "what the sink keeps holds no format: results from now on are written in the new one"
            + (", the rest of a file that is not finished, too" if in_files and old not in WRITTEN_WHOLE else ""),
            right(*ids),
        )
    return not_measured(change, fact, "a change between these formats of a sink was not measured")


_FORMATS_OF_SINKS = {
    "kafka": ("sk-group-upsert-format",),
    "upsert-kafka": ("sk-group-upsert-format",),
    "filesystem": ("sk-stateless-filesystem-format", "sk-tumble-filesystem-format"),
}
