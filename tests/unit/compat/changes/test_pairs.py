"""Which query is which, what several queries share, and that differences of two queries never go by one name."""

from __future__ import annotations

from collections import Counter
from typing import cast

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import has_rules
from airflow_flinkcompat.plan.operators import Operator, operators

TABLES = """\
CREATE TABLE orders (customer STRING, region STRING, amount BIGINT, placed TIMESTAMP(3), WATERMARK FOR placed AS placed)
  WITH ('connector' = 'filesystem', 'path' = 'file:///data', 'format' = 'csv');
CREATE TABLE one (k STRING, v BIGINT) WITH ('connector' = 'print');
CREATE TABLE two (k STRING, v BIGINT) WITH ('connector' = 'print');
"""


def insert(sink: str, key: str, metric: str, rest: str = "") -> str:
    return (
        f"INSERT INTO {sink} SELECT {key}, {metric} "
        f"FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '1' MINUTE)) "
        f"GROUP BY {key}, window_start, window_end{rest};\n"
    )


def script(*inserts: str) -> str:
    return TABLES + "EXECUTE STATEMENT SET BEGIN\n" + "".join(inserts) + "END;\n"


def change(old: tuple[str, ...], new: tuple[str, ...]) -> Change:
    return Change(Side(script(*old), engine="flink"), Side(script(*new), engine="flink"))


def places(found: Change) -> list[tuple[int, int]]:
    return list(found._pairing.pairs)


SUM, MAX = insert("one", "customer", "SUM(amount)"), insert("one", "region", "MAX(amount)")


@pytest.mark.parametrize(
    ("old", "new", "pairs", "ambiguous"),
    [
        ((SUM, MAX), (MAX, SUM), [(0, 1), (1, 0)], ()),
        ((SUM, SUM), (SUM, SUM), [(0, 0), (1, 1)], ()),
        # the sinks are exchanged: identical operators come first
        (
            (SUM, insert("two", "region", "MAX(amount)")),
            (insert("two", "customer", "SUM(amount)"), MAX),
            [(0, 0), (1, 1)],
            (),
        ),
        # both metrics changed: told apart by their keys
        (
            (SUM, MAX),
            (insert("one", "region", "MIN(amount)"), insert("one", "customer", "COUNT(*)")),
            [(0, 1), (1, 0)],
            (),
        ),
        # one changed beyond recognition, the other still tells them apart
        ((SUM, MAX), (SUM, "INSERT INTO one SELECT region, amount FROM orders;\n"), [(0, 0), (1, 1)], ()),
        (
            (SUM, insert("one", "customer", "MAX(amount)")),
            (insert("one", "customer", "MIN(amount)"), insert("one", "customer", "COUNT(*)")),
            [],
            ("one",),
        ),
    ],
)
def test_queries_are_paired_by_what_tells_them_apart(
    old: tuple[str, ...], new: tuple[str, ...], pairs: list[tuple[int, int]], ambiguous: tuple[str, ...]
) -> None:
    found = change(old, new)
    assert (places(found), found.ambiguous) == (pairs, ambiguous)
    assert (found.removed, found.added) == ((), ())
    # The other way round the same queries belong together.
    assert sorted((j, i) for i, j in places(change(new, old))) == sorted(pairs)


def test_what_is_new_beside_queries_that_cannot_be_told_apart_is_still_seen() -> None:
    clash = (SUM, insert("one", "customer", "MAX(amount)"))
    after = (insert("one", "customer", "MIN(amount)"), insert("one", "customer", "COUNT(*)"))
    report = check(script(*clash), script(*after, insert("two", "region", "SUM(amount)")))
    assert report.outcome is Outcome.INCOMPATIBLE
    assert {"pairing-ambiguous", "insert-added-or-removed"} <= {finding.rule for finding in report.findings}


def test_differences_of_two_queries_into_one_sink_have_names_of_their_own() -> None:
    """A rule that claims one must not cover the other."""
    having = " HAVING SUM(amount) > {0}"
    old = (SUM, insert("one", "region", "SUM(amount)", having.format(1)))
    new = (
        insert("one", "customer", "SUM(amount)", having.format(2)),
        insert("one", "region", "SUM(amount)", having.format(3)),
    )
    found = change(old, new)
    keys = Counter(difference.key for difference in found.differences)
    assert max(keys.values()) == 1, keys
    assert {"one/filters", "one (2)/filters"} <= set(keys)


def test_an_operator_with_several_readers_is_one() -> None:
    both = (SUM, insert("two", "customer", "SUM(amount)", " HAVING SUM(amount) > 1"))
    changed = tuple(text.replace("SUM(", "MAX(") for text in both)
    found = change(both, changed)
    assert len(found.operators) == 1
    assert [pair.path for pipeline in found.pipelines for pair in pipeline.operators] == ["one > 1", "two > 1"]
    assert not [difference for difference in found.differences if difference.part == "sharing"]


def test_an_operator_taken_apart_is_a_difference_of_the_job() -> None:
    both = (SUM, insert("two", "customer", "SUM(amount)", " HAVING SUM(amount) > 1"))
    apart = (SUM, insert("two", "customer", "MAX(amount)", " HAVING MAX(amount) > 1"))
    for old, new in ((both, apart), (apart, both)):
        parts = [difference.key for difference in change(old, new).differences if difference.part == "sharing"]
        assert parts == ["two > 1/sharing"]
        assert "shared-operator-changed" in {f.rule for f in check(script(*old), script(*new)).findings}


def test_queries_outside_of_a_set_share_nothing() -> None:
    both = TABLES + SUM + insert("two", "customer", "SUM(amount)")
    found = Change(Side(both), Side(both))
    assert len(found.operators) == 2


def test_an_operator_kind_has_no_rules_until_it_is_named() -> None:
    assert not has_rules(cast("Operator", object()))
    (pair,) = Side("CREATE TABLE t (a STRING, b INT); SELECT a, SUM(b) FROM t GROUP BY a;").outputs[0].values()
    assert all(map(has_rules, operators(pair)))
