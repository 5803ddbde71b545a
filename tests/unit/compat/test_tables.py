"""Generated queries and changes against an independent statement of the documents' tables.

The queries, their changes and their spellings are values of tests/support/query_models.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_flinkcompat.compat import Outcome, Report, Side, check, render_text
from tests.support.query_models import (
    IGNORE_FILTER,
    INCOMPATIBLE,
    MODIFICATIONS,
    NEUTRAL,
    Metric,
    Modification,
    Query,
    Style,
    TopN,
    WindowModel,
    expected,
    render,
)

METRICS = (
    Metric("SUM", "{b}"),
    Metric("MAX", "{c}"),
    Metric("MIN", "{b}"),
    Metric("COUNT", "*"),
    Metric("AVG", "{b}"),
    Metric("SUM", "{b} + 1"),
    Metric("COUNT", "{c}", distinct=True),
    Metric("SUM", "{d}", where="{b} > 3"),
)
WINDOWS = st.one_of(
    st.builds(WindowModel, st.just("TUMBLE"), st.sampled_from([2, 5, 10]), offset=st.sampled_from([0, 0, 1])),
    st.builds(WindowModel, st.sampled_from(["HOP", "CUMULATE"]), st.sampled_from([4, 10]), st.sampled_from([1, 2])),
    st.builds(WindowModel, st.just("TUMBLE"), st.just(3), time=st.just("clock")),
    st.builds(WindowModel, st.just("SESSION"), st.sampled_from([2, 5])),
)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    window = draw(WINDOWS)
    keys = tuple(draw(st.lists(st.sampled_from(["{a}", "{c}", "{d} + 1"]), unique=True, max_size=3)))
    metrics = tuple(draw(st.lists(st.sampled_from(METRICS), unique=True, max_size=4)))
    conditions = frozenset(draw(st.lists(st.sampled_from(["{d} < 7", "{c} <> 'none'"]), unique=True)))
    top = None
    legacy = draw(st.sampled_from([False, False, True])) and window.kind != "CUMULATE" and not window.offset
    if keys and metrics and not legacy and draw(st.sampled_from([False, False, True])):
        partition = draw(st.lists(st.sampled_from(range(len(keys))), unique=True))
        by = draw(st.sampled_from(range(len(keys) + len(metrics))))
        top = TopN(draw(st.sampled_from([2, 3])), by, draw(st.booleans()), tuple(partition), draw(st.booleans()))
    return Query(
        window=window,
        keys=keys,
        metrics=metrics,
        legacy=legacy,
        bounds_at=draw(st.sampled_from([0, len(keys)])),
        fields=draw(st.sampled_from([(), ("window_start",), ("window_start", "window_end")])),
        conditions=conditions,
        having="{m0} > 2" if metrics and top is None and draw(st.booleans()) else "",
        top=top,
        settings=draw(st.sampled_from([(), (), ((IGNORE_FILTER, "true"),)])),
    )


STYLES = st.builds(
    Style,
    lower=st.booleans(),
    quoted=st.booleans(),
    comments=st.booleans(),
    seconds=st.booleans(),
    named_arguments=st.booleans(),
    columns_from=st.sampled_from(["table", "view", "subquery"]),
    result_in=st.sampled_from(["query", "view", "cte"]),
    prefix=st.sampled_from(["x", "y2", "Z"]),
    strict_rank=st.booleans(),
    reversed_conditions=st.booleans(),
    conditions_below=st.booleans(),
    parentheses=st.booleans(),
    tuple_keys=st.booleans(),
    settings_in_script=st.booleans(),
)
PLAIN = Style()
THOUSANDS = settings(
    max_examples=max(50, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
)
"""Each property draws this many; HYPOTHESIS_PROFILE=thorough draws more."""


def judged(old: Query, new: Query, engine: str = "vvr", styles: Sequence[Style] = (PLAIN, PLAIN)) -> Report:
    return check(*(_side(query, style, engine) for query, style in zip((old, new), styles, strict=True)))


@cache
def _side(query: Query, style: Style, engine: str) -> Side:
    script, given = render(query, style)
    return Side(script, given, engine=engine, source="query.sql")


def shown(report: Report, *queries: Query) -> str:
    return "\n".join([render_text(report), *(render(query, PLAIN)[0] for query in queries)])


@st.composite
def changed(draw: st.DrawFn, query: Query, among: Sequence[Modification], at_most: int = 1) -> tuple[str, Query]:
    """The query after some changes that fit it, with their names."""
    names, new = [], query
    for _ in range(draw(st.integers(1, at_most))):
        fitting = [(m.name, after) for m in among if (after := m.apply(new)) is not None and after != new]
        name, new = draw(st.sampled_from(fitting))
        names.append(name)
    return " + ".join(names), new


@pytest.mark.slow
@THOUSANDS
@given(queries(), STYLES, STYLES, st.data())
def test_outcomes_are_those_of_the_tables(query: Query, one: Style, other: Style, data: st.DataObject) -> None:
    names, new = data.draw(changed(query, MODIFICATIONS, at_most=3))
    report = judged(query, new, styles=(one, other))
    assert report.outcome == expected(query, new), f"{names}\n{shown(report, query, new)}"


@pytest.mark.slow
@THOUSANDS
@given(queries(), STYLES, STYLES, st.sampled_from(["vvr", "flink"]))
def test_spelling_never_matters(query: Query, one: Style, other: Style, engine: str) -> None:
    report = judged(query, query, engine, (one, other))
    allowed = {Outcome.COMPATIBLE}
    if engine == "flink" and query.window.time == "clock" and query.conditions and len(query.keys) > 1:
        allowed.add(Outcome.UNKNOWN)  # the spelling may decide there in which order keys are kept: test_key_order.py
    assert report.outcome in allowed, shown(report, query)


@pytest.mark.slow
@THOUSANDS
@given(queries(), STYLES, STYLES, st.data())
def test_spelling_never_changes_an_outcome_on_flink(
    query: Query, one: Style, other: Style, data: st.DataObject
) -> None:
    names, new = data.draw(changed(query, MODIFICATIONS))
    plain, styled = judged(query, new, "flink"), judged(query, new, "flink", (one, other))
    assert styled.outcome == plain.outcome, f"{names}\n{render_text(plain)}\n{shown(styled, query, new)}"


@pytest.mark.slow
@THOUSANDS
@given(queries(), st.data())
def test_incompatible_changes_are_incompatible_both_ways(query: Query, data: st.DataObject) -> None:
    name, new = data.draw(changed(query, INCOMPATIBLE))
    for pair in ((query, new), (new, query)):
        report = judged(*pair)
        assert report.outcome is Outcome.INCOMPATIBLE, f"{name}\n{shown(report, *pair)}"


@pytest.mark.slow
@THOUSANDS
@given(queries(), st.data())
def test_an_incompatible_change_decides_whatever_else_changes(query: Query, data: st.DataObject) -> None:
    """Unless something the check cannot see into makes the pipeline unknown."""
    worst, alone = data.draw(changed(query, INCOMPATIBLE))
    touched = [name for name in vars(query) if getattr(query, name) != getattr(alone, name)]
    others = [m for m in MODIFICATIONS if (after := m.apply(alone)) is not None and _keep(touched, alone, after)]
    names, new = data.draw(changed(alone, others))
    report = judged(query, new)
    wanted = {Outcome.INCOMPATIBLE, Outcome.UNKNOWN} if new.opaque else {Outcome.INCOMPATIBLE}
    assert report.outcome in wanted, f"{worst} + {names}\n{shown(report, query, new)}"


def _keep(touched: Sequence[str], one: Query, other: Query) -> bool:
    """Whether the clauses of the first change stand as they are after the second one, and count as they did."""
    same = all(getattr(one, name) == getattr(other, name) for name in touched)
    return same and one.ignores_filters == other.ignores_filters


def test_the_models_reach_every_outcome() -> None:
    """The statement of the tables is no constant: each outcome occurs among single changes of one query."""
    query = Query(WindowModel("TUMBLE", 2), ("{a}",), METRICS[:2])
    changes = {m: after for m in MODIFICATIONS if (after := m.apply(query)) is not None}
    assert {expected(query, after) for after in changes.values()} == {outcome.value for outcome in Outcome}
    assert {expected(query, after) for m, after in changes.items() if m in NEUTRAL} == {"compatible"}
