"""The catalogue: every module of ``definitions`` is found, and what it lacks is "not known"."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from airflow_flinkcompat.compat.evidence import restores
from airflow_flinkcompat.connectors import definitions
from airflow_flinkcompat.connectors.facts import Known, OptionEffect, OptionFact, SinkState, SourceState, TableUse
from airflow_flinkcompat.connectors.registry import FORMATS, catalogue, lookup, option, sink, source
from dev.measure import measured, results
from dev.measure.measured import Restore

PREFIXES = ("", "key.", "value.")
"""What may stand in front of an option of a format."""
HARMLESS = frozenset(OptionEffect) - {
    OptionEffect.READ,
    OptionEffect.BOUNDED_END,
    OptionEffect.STATE,
    OptionEffect.NOT_KNOWN,
}


def facts() -> list[tuple[str, OptionFact]]:
    return [
        (f"{each.names[0]}, {use.value}: {option.key}", option)
        for each in catalogue().values()
        for use, options in each.options.items()
        for option in options
    ]


def of_formats() -> list[tuple[str, OptionFact]]:
    return [(name, option) for name, each in FORMATS.items() for option in each.options]


def changed_options(pair: Restore) -> set[str]:
    """The options of tables that differ between the sides of a restore, by their names."""
    old, new = (
        {(table.name, *option) for table in side.program.tables for option in table.options} for side in pair.sides()
    )
    return {key for _, key, _ in old ^ new}


def test_what_is_not_listed_is_not_known() -> None:
    assert source("made-up").positions is SourceState.NOT_KNOWN
    assert sink("made-up").state is sink(None).state is SinkState.NOT_KNOWN
    assert source("print").projection is Known.NOT_KNOWN
    assert lookup("print").options == ()


def test_every_option_rests_on_restores_or_on_a_document() -> None:
    assert [place for place, fact in facts() if not fact.ids and not fact.document] == []


def test_an_option_rests_on_restores_across_each_of_which_it_was_changed() -> None:
    named = [(place, name, (fact.alias_of or fact.key,)) for place, fact in facts() for name in fact.ids]
    for place, fact in facts():
        if (listed := fact.listed) is not None:
            key = "topic" if fact.key == listed.pattern else fact.key
            named += [(place, name, (key,)) for name in (*listed.reordered, *listed.added)]
            named += [(place, name, (listed.pattern,)) for name in listed.matched]
    for format, fact in of_formats():
        keys = tuple(f"{prefix}{format}.{fact.key}" for prefix in PREFIXES)
        named += [(f"format {format}: {fact.key}", name, keys) for name in fact.ids]
    wanted = {name for _, name, _ in named}
    run = [*measured.connectors()]
    for path in results.FOLDER.glob("*.json"):
        run += measured.load(str(path), only=wanted)
    pairs = {pair.id: pair for pair in run if pair.id in wanted}
    assert wanted == pairs.keys()
    changed = {name: changed_options(pair) for name, pair in pairs.items()}
    assert not [
        (place, name, changed[name])
        for place, name, keys in named
        if not any(fnmatchcase(each, key) for each in changed[name] for key in keys)
    ]


def test_another_name_of_an_option_rests_on_a_document_and_on_the_restores_of_that_option() -> None:
    aliases = [
        (fact, next(each for each in options if each.key == fact.alias_of))
        for connector in catalogue().values()
        for options in connector.options.values()
        for fact in options
        if fact.alias_of
    ]
    assert aliases
    for fact, named in aliases:
        assert fact.document
        assert (fact.ids, fact.effect) == (named.ids, named.effect)


def test_restores_that_are_named_were_run_and_ended_as_the_effect_says() -> None:
    assert len(facts()) > 40
    for place, fact in facts():
        for name in fact.ids:
            outcomes = {*restores()[name].values()}
            assert fact.effect not in HARMLESS or outcomes == {"restored_right"}, (place, name, outcomes)
            assert fact.effect is not OptionEffect.STATE or "restored_right" not in outcomes, (place, name, outcomes)


def test_sinks_name_restores_that_ended_right() -> None:
    for facts in {id(each): each for each in catalogue().values()}.values():
        for name in facts.sink.ids if facts.sink else ():
            assert {*restores()[name].values()} == {"restored_right"}, name


def test_a_connector_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_up_family.py").write_text(
        "from airflow_flinkcompat.connectors.facts import *\n"
        "OPTIONS = (OptionFact('depth', OptionEffect.TARGET, document='its page'),)\n"
        "CONNECTORS = (ConnectorFacts(('made-up',), sink=SinkFacts(SinkState.NONE, options=OPTIONS)),)\n"
    )
    monkeypatch.setattr(definitions, "__path__", [*definitions.__path__, str(tmp_path)])
    try:
        assert sink("made-up").state is SinkState.NONE
        found = option("made-up", TableUse.SINK, "depth")
        assert found is not None
        assert found.effect is OptionEffect.TARGET
        assert option("made-up", TableUse.SINK, "height") is None
    finally:
        sys.modules.pop(f"{definitions.__name__}.made_up_family", None)


def test_the_longest_beginning_counts_and_other_uses_are_ignored() -> None:
    assert option("kafka", TableUse.SOURCE, "properties.group.id") != option(
        "kafka", TableUse.SOURCE, "properties.acks"
    )
    ignored = option("kafka", TableUse.SINK, "scan.startup.mode")
    assert ignored is not None
    assert ignored.effect is OptionEffect.IGNORED
    assert option("kafka", TableUse.SOURCE, "value.json.ignore-parse-errors") is not None
    assert option("print", TableUse.SINK, "json.ignore-parse-errors") is None
