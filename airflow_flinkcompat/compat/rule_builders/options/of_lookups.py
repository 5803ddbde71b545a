"""Options of tables that rows are looked up in: a synchronous lookup keeps nothing, what is above it may."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_flinkcompat import connectors
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink import lookups
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import combined, inferred
from airflow_flinkcompat.compat.rule_builders.options.option_verdict import (
    OptionChange,
    OptionVerdict,
    decides,
    harmless,
    members,
    not_measured,
    not_with_this_connector,
)
from airflow_flinkcompat.compat.rule_builders.part_rules import gathered_above
from airflow_flinkcompat.connectors import OptionEffect, OptionFact, TableUse
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import Source

LOOKED_UP_OTHERWISE = ("sk-stateless-lookup-retries", "sk-group-lookup-retries", "sk-group-lookup-cache")
LOOKED_UP_ELSEWHERE = ("sk-stateless-lookup-table",)
GATHERED_FROM_ELSEWHERE = ("sk-group-lookup-table",)
ASKED_AGAIN = ("al-stateless-pending-capacity", "al-stateless-idle-lookup-column")
BECAME_ASYNCHRONOUS = ("al-stateless-idle-from-sync", "al-stateless-pending-from-sync", "al-group-pending-from-sync")
BECAME_SYNCHRONOUS = ("al-stateless-pending-hint-sync", "al-group-pending-hint-sync")


_FUNCTIONS = "LookupFunction, AsyncLookupFunction: Flink gives neither a place in a savepoint"
_EITHER_WAY = "a lookup stores at most rows that wait for an answer, as they came in, and asks for them again"
_PURPOSES: Mapping[OptionEffect, frozenset[str]] = {
    OptionEffect.ADDRESS: frozenset({"url", "uri", "host", "hosts", "hostname", "port", "nodes", "quorum"}),
    OptionEffect.READ: frozenset(
        {"database", "schema", "table", "tablename", "collection", "index", "path", "keyspace"}
    ),
    OptionEffect.CREDENTIALS: frozenset({"user", "username", "password"}),
    OptionEffect.TUNES: frozenset({"cache", "ttl", "expire", "timeout", "retry", "retries"}),
    OptionEffect.DECODING: frozenset({"format", "charset", "encoding", "delimiter", "literal", "key"}),
}  # fmt: skip
"""Words that say what an option is for, whatever the connector: none of them says how a lookup asks."""
_WHOLE_TABLE = frozenset({"all", "full"})
"""Values of a cache that holds the whole table: no row waits for it, whatever a lookup without it would do."""
_MAY_SAY_HOW = frozenset(
    {"async", "asynchronous", "sync", "mode", "type", "strategy", "thread", "threads", "batch", "class"}
)


def unlisted(change: OptionChange) -> OptionFact | None:
    """What an option of a lookup is for by its name, where nobody lists the connector's options.

    Args:
        change: The option.

    Returns:
        None where its name does not tell, or may say that rows wait for their answers.
    """
    words = frozenset(re.split(r"[^a-z0-9]+", change.key.lower()))
    found = [effect for effect, names in _PURPOSES.items() if words & names]
    facts = connectors.catalogue().get(change.connector or "")
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
        return not_measured(change, fact, "the lookup comes or goes, or may be another join")
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
        says = "lookups find other rows from now on, and operators above have gathered values of the old ones"
        return OptionVerdict(says, wrong(*GATHERED_FROM_ELSEWHERE))
    if set(modes) == {LookupMode.ASYNCHRONOUS}:
        return _of_waiting(change, fact, pair)
    if set(modes) != {LookupMode.SYNCHRONOUS}:
        return OptionVerdict(lookups.MAY_WAIT, unmeasured(f"'{change.key}' of a lookup that may be asynchronous"))
    if elsewhere:
        says = "a synchronous lookup stores nothing: rows from now on are completed from the new place"
        return harmless(fact, says, LOOKED_UP_ELSEWHERE)
    if fact.effect in (OptionEffect.TUNES, OptionEffect.CREDENTIALS, OptionEffect.ADDRESS) or _decodes(fact, pair):
        return harmless(fact, f"{decides(fact)}; a synchronous lookup stores nothing", LOOKED_UP_OTHERWISE)
    return not_measured(change, fact, not_with_this_connector(fact))


def _decodes(fact: OptionFact, pair: OperatorPair) -> bool:
    """Whether it decides how what was found is read, of which nothing above has gathered anything."""
    return fact.effect is OptionEffect.DECODING and not gathered_above(pair)


def _of_waiting(change: OptionChange, fact: OptionFact, pair: OperatorPair) -> OptionVerdict:
    """Rows that wait are stored as they came in: they are asked for again, by the new options."""
    harmless_here = fact.effect in (
        OptionEffect.TUNES,
        OptionEffect.CREDENTIALS,
        OptionEffect.READ,
        OptionEffect.ADDRESS,
    )
    if harmless_here or _decodes(fact, pair):
        says = "rows that wait for an answer are stored as they came in, and asked for again"
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
    return OptionVerdict(lookups.MAY_WAIT, unmeasured("lookup.async"))
