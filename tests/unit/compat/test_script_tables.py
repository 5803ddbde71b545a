"""Generated scripts of several INSERTs and of windows over windows against an independent statement of the tables.

The scripts, their changes and their text are values of tests/support/script_models.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.compat import Outcome, Report, Side, check, render_text
from tests.support.query_models import IGNORE_FILTER, Query, Style, WindowModel
from tests.support.script_models import CHANGES, FIELDS, Outer, Reader, Script, outcomes, render_script
from tests.unit.compat.test_tables import METRICS, PLAIN, STYLES, THOUSANDS

WINDOWS = st.one_of(
    st.builds(WindowModel, st.just("TUMBLE"), st.sampled_from([2, 5])),
    st.builds(WindowModel, st.just("HOP"), st.just(4), st.sampled_from([1, 2])),
    st.builds(WindowModel, st.just("CUMULATE"), st.just(4), st.just(2)),
    st.builds(WindowModel, st.just("SESSION"), st.just(5)),
)
OUTER_WINDOWS = st.sampled_from(
    [WindowModel("TUMBLE", 60), WindowModel("HOP", 120, 60), WindowModel("CUMULATE", 120, 60)]
)


@st.composite
def readers(draw: st.DrawFn, sink: str, view: Query) -> Reader:
    places = range(len(view.metrics))
    metrics = tuple(draw(st.lists(st.sampled_from(places), unique=True, min_size=1, max_size=2).map(sorted)))
    numeric = view.metrics[metrics[0]].type == "BIGINT"
    at_least = draw(st.sampled_from([None, None, 5])) if numeric else None
    if draw(st.booleans()):
        return Reader(sink, metrics, at_least)
    keys = draw(st.lists(st.sampled_from(range(len(view.keys))), unique=True).map(sorted)) if view.keys else []
    calls = st.tuples(st.sampled_from(["MAX", "MIN", "COUNT"]), st.sampled_from(places))
    computed = tuple(draw(st.lists(calls, unique=True, min_size=1, max_size=3)))
    return Reader(sink, metrics, at_least, Outer(draw(OUTER_WINDOWS), tuple(keys), computed))


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    view = Query(
        window=draw(WINDOWS),
        keys=tuple(draw(st.lists(st.sampled_from(["{a}", "{c}", "{d} + 1"]), unique=True, max_size=3))),
        metrics=tuple(draw(st.lists(st.sampled_from(METRICS), unique=True, min_size=2, max_size=4))),
        bounds=FIELDS,
        conditions=frozenset(draw(st.sampled_from([(), (), ("{d} < 7",)]))),
        settings=draw(st.sampled_from([(), (), ((IGNORE_FILTER, "true"),)])),
    )
    sinks = ("totals", "peaks")[: draw(st.sampled_from([1, 2, 2]))]
    return Script(view, tuple(draw(readers(sink, view)) for sink in sinks))


def judged(old: Script, new: Script, engine: str = "vvr", styles: Sequence[Style] = (PLAIN, PLAIN)) -> Report:
    rendered = [render_script(script, style) for script, style in zip((old, new), styles, strict=True)]
    return check(*(Side(text, given, engine=engine, source="script.sql") for text, given in rendered))


def shown(report: Report, *scripts: Script) -> str:
    return "\n".join([render_text(report), *(render_script(script, PLAIN)[0] for script in scripts)])


@st.composite
def changed(draw: st.DrawFn, script: Script, at_most: int = 1) -> tuple[str, Script]:
    """The script after some changes that fit it, with their names."""
    names, new = [], script
    for _ in range(draw(st.integers(1, at_most))):
        fitting = [(c.name, after) for c in CHANGES if (after := c.apply(new)) is not None and after != new]
        name, new = draw(st.sampled_from(fitting))
        names.append(name)
    return " + ".join(names), new


@pytest.mark.slow
@THOUSANDS
@given(scripts(), STYLES, STYLES, st.data())
def test_outcomes_are_those_of_the_tables(script: Script, one: Style, other: Style, data: st.DataObject) -> None:
    names, new = data.draw(changed(script, at_most=3))
    report = judged(script, new, styles=(one, other))
    outcome, sinks = outcomes(script, new)
    said = {sink: each.value for sink, each in report.sinks}
    assert (report.outcome.value, said) == (outcome, sinks), f"{names}\n{shown(report, script, new)}"


@pytest.mark.slow
@THOUSANDS
@given(scripts(), STYLES, STYLES, st.sampled_from(["vvr", "flink"]))
def test_spelling_never_matters(script: Script, one: Style, other: Style, engine: str) -> None:
    report = judged(script, script, engine, (one, other))
    assert report.outcome is Outcome.COMPATIBLE, shown(report, script)


@pytest.mark.slow
@THOUSANDS
@given(scripts(), STYLES, STYLES, st.data())
def test_spelling_never_changes_an_outcome_on_flink(
    script: Script, one: Style, other: Style, data: st.DataObject
) -> None:
    names, new = data.draw(changed(script))
    plain, styled = judged(script, new, "flink"), judged(script, new, "flink", (one, other))
    assert styled.outcome == plain.outcome, f"{names}\n{render_text(plain)}\n{shown(styled, script, new)}"


def test_the_changes_reach_every_outcome() -> None:
    """The statement of the tables is no constant, and says different things of two sinks of one script."""
    outer = Outer(WindowModel("TUMBLE", 60), (0,), (("MAX", 0), ("COUNT", 0)))
    view = Query(WindowModel("TUMBLE", 2), ("{a}",), METRICS[:3], bounds=FIELDS)
    script = Script(view, (Reader("totals", (0, 1)), Reader("peaks", (0,), 5, outer)))
    said = [outcomes(script, after) for change in CHANGES if (after := change.apply(script)) is not None]
    assert {outcome for outcome, _ in said} == {outcome.value for outcome in Outcome}
    assert any(len(set(sinks.values())) > 1 for _, sinks in said)
