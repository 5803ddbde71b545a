"""The catalogue: every module of ``known`` is found, and what it lacks is "not known"."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.compat.evidence import restores
from airflow_flinkcompat.connectors import (
    Effect,
    Known,
    OptionFact,
    SinkState,
    StoredPositions,
    TableUse,
    catalogue,
    known,
    lookup,
    option,
    sink,
    source,
)

HARMLESS = frozenset(Effect) - {Effect.READ, Effect.END, Effect.STATE, Effect.NOT_KNOWN}


def facts() -> list[tuple[str, OptionFact]]:
    return [
        (f"{each.names[0]}, {use.value}: {option.key}", option)
        for each in catalogue().values()
        for use, options in each.options.items()
        for option in options
    ]


def test_what_is_not_listed_is_not_known() -> None:
    assert source("made-up").positions is StoredPositions.NOT_KNOWN
    assert sink("made-up").state is sink(None).state is SinkState.NOT_KNOWN
    assert source("print").projection is Known.NOT_KNOWN
    assert lookup("print").options == ()


def test_every_option_rests_on_restores_or_on_a_document() -> None:
    assert [place for place, fact in facts() if not fact.ids and not fact.document] == []


def test_restores_that_are_named_were_run_and_ended_as_the_effect_says() -> None:
    assert len(facts()) > 40
    for place, fact in facts():
        for name in fact.ids:
            outcomes = {*restores()[name].values()}
            assert fact.effect not in HARMLESS or outcomes == {"restored_right"}, (place, name, outcomes)
            assert fact.effect is not Effect.STATE or "restored_right" not in outcomes, (place, name, outcomes)


def test_sinks_name_restores_that_ended_right() -> None:
    for facts in {id(each): each for each in catalogue().values()}.values():
        for name in facts.sink.ids if facts.sink else ():
            assert {*restores()[name].values()} == {"restored_right"}, name


def test_a_connector_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_up_family.py").write_text(
        "from airflow_flinkcompat.connectors import ConnectorFacts, Effect, OptionFact, SinkFacts, SinkState\n"
        "OPTIONS = (OptionFact('depth', Effect.TARGET, document='its page'),)\n"
        "CONNECTORS = (ConnectorFacts(('made-up',), sink=SinkFacts(SinkState.NONE, options=OPTIONS)),)\n"
    )
    monkeypatch.setattr(known, "__path__", [*known.__path__, str(tmp_path)])
    try:
        assert sink("made-up").state is SinkState.NONE
        found = option("made-up", TableUse.SINK, "depth")
        assert found is not None
        assert found.effect is Effect.TARGET
        assert option("made-up", TableUse.SINK, "height") is None
    finally:
        sys.modules.pop(f"{known.__name__}.made_up_family", None)


def test_the_longest_beginning_counts_and_other_uses_are_ignored() -> None:
    assert option("kafka", TableUse.SOURCE, "properties.group.id") != option(
        "kafka", TableUse.SOURCE, "properties.acks"
    )
    ignored = option("kafka", TableUse.SINK, "scan.startup.mode")
    assert ignored is not None
    assert ignored.effect is Effect.IGNORED
    assert option("kafka", TableUse.SOURCE, "value.json.ignore-parse-errors") is not None
    assert option("print", TableUse.SINK, "json.ignore-parse-errors") is None
