"""Options of tables that rows are looked up in: a synchronous lookup keeps nothing, what is above it may."""

from __future__ import annotations

from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink import lookups
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import inferred
from airflow_flinkcompat.compat.rule_builders.options.option_verdict import (
    OptionChange,
    OptionVerdict,
    harmless,
    members,
    not_measured,
)
from airflow_flinkcompat.compat.rule_builders.part_rules import gathered_above
from airflow_flinkcompat.connectors import Effect, OptionFact
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import Source

LOOKED_UP_OTHERWISE = ("sk-stateless-lookup-retries", "sk-group-lookup-retries", "sk-group-lookup-cache")
LOOKED_UP_ELSEWHERE = ("sk-stateless-lookup-table",)
GATHERED_FROM_ELSEWHERE = ("sk-group-lookup-table",)
ASKED_AGAIN = ("al-stateless-pending-capacity", "al-stateless-idle-lookup-column")
BECAME_ASYNCHRONOUS = ("al-stateless-idle-from-sync", "al-stateless-pending-from-sync", "al-group-pending-from-sync")
BECAME_SYNCHRONOUS = ("al-stateless-pending-hint-sync", "al-group-pending-hint-sync")


def on_lookup(change: OptionChange, fact: OptionFact, pair: PipelinePair) -> OptionVerdict:
    found = [each for each in pair.operators if lookups.is_lookup(each.new) and _looks_up(each, change.table)]
    if not found or pair.removed or pair.added:
        return not_measured(change, fact, "the lookup comes or goes, or may be another join")
    return max((_on_one_lookup(change, fact, each) for each in found), key=lambda each: each.verdict.outcome.rank)


def _looks_up(pair: OperatorPair, table: str) -> bool:
    origins = (side.segments[1].origin for side in (pair.old, pair.new) if len(side.segments) > 1)
    return any(isinstance(origin, Source) and origin.table == table for origin in origins)


def _on_one_lookup(change: OptionChange, fact: OptionFact, pair: OperatorPair) -> OptionVerdict:
    modes = lookups.modes(pair)
    if change.key == "lookup.async":
        return _mode(modes)
    another_system = fact.effect is Effect.ADDRESS and not set.intersection(*map(members, change.values))
    elsewhere = another_system or fact.effect is Effect.READ
    if elsewhere and gathered_above(pair):
        says = "other rows are found from now on, and what is above has gathered values of the old ones"
        return OptionVerdict(says, wrong(*GATHERED_FROM_ELSEWHERE))
    if set(modes) == {LookupMode.ASYNCHRONOUS}:
        return _of_waiting(change, fact)
    if set(modes) != {LookupMode.SYNCHRONOUS}:
        return OptionVerdict(lookups.MAY_WAIT, unmeasured(f"'{change.key}' of a lookup that may be asynchronous"))
    if elsewhere:
        says = "a synchronous lookup keeps nothing: rows from now on are completed from the new place"
        return OptionVerdict(says, right(*(fact.ids or LOOKED_UP_ELSEWHERE)))
    if fact.effect in (Effect.TUNES, Effect.CREDENTIALS, Effect.ADDRESS):
        return harmless(fact, "a synchronous lookup keeps nothing", LOOKED_UP_OTHERWISE)
    return not_measured(change, fact, f"{fact.effect.value}: not measured with this connector")


def _of_waiting(change: OptionChange, fact: OptionFact) -> OptionVerdict:
    """Rows that wait are stored as they came in: they are asked for again, by the new options."""
    if fact.effect in (Effect.TUNES, Effect.CREDENTIALS, Effect.READ, Effect.ADDRESS):
        says = "rows that wait for an answer are stored as they came in, and asked for again"
        return OptionVerdict(says, inferred(Outcome.COMPATIBLE, fact.document, ids=ASKED_AGAIN))
    return not_measured(change, fact, f"{fact.effect.value}: not measured with this connector")


def _mode(modes: tuple[LookupMode, LookupMode]) -> OptionVerdict:
    match modes:
        case (LookupMode.SYNCHRONOUS, LookupMode.ASYNCHRONOUS):
            return OptionVerdict("a synchronous lookup had kept nothing", right(*BECAME_ASYNCHRONOUS))
        case (LookupMode.ASYNCHRONOUS, LookupMode.SYNCHRONOUS):
            return OptionVerdict("rows that wait for an answer are lost", wrong(*BECAME_SYNCHRONOUS))
        case (old, new) if old is new is not LookupMode.NOT_KNOWN:
            return OptionVerdict(f"the lookup stays {new.value}", right(*LOOKED_UP_OTHERWISE))
    return OptionVerdict(lookups.MAY_WAIT, unmeasured("lookup.async"))
