"""No change passes silently: every small change of every kind of statement is a difference, neutral ones are none.

The scripts in ``tests/fixtures/mutations`` hold every kind of statement and clause; ``tests.support.mutations`` changes
each identifier, literal, flag, word, part and list in their trees. What means the same all the same is listed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_flinkcompat.compat import InputError, Outcome, Side, check
from airflow_flinkcompat.compat.changes.change import Change
from tests.support.mutations import Mutation, mutations, printed, statements, words_of
from tests.support.nightly import NIGHTLY, mostly_nightly

FOLDER = Path(__file__).parents[2] / "fixtures" / "mutations"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.sql"))}
SCRIPTS = sorted(set(TEXTS) - {"tables"})
READS_ALL = """
INSERT INTO totals SELECT customer, amount, item, region FROM orders;
INSERT INTO other SELECT r.customer, v.customer FROM refunds AS r, rates AS v;
INSERT INTO other SELECT extra, customer FROM copies;
"""

# Each: script, part of the mutation's label, why it means the same.
NEUTRAL = (
    ("expressions", r"Column\.table removed in 'line\.code'", "a field of a row goes by its own name too"),
    ("*", "CreateTable.temporary flipped", "where a declaration is kept does not change what it says"),
    ("*", "CreateTable.exists flipped", "nothing of that name exists before"),
    ("*", "CreateTable.replace flipped", "nothing of that name exists before"),
    ("*", "KeyConstraint.enforced flipped", "Flink takes NOT ENFORCED keys only"),
    ("*", r"CreateTable.options\[\d\] swapped", "options have no order"),
    ("*", "FlinkType.this = VARCHAR in 'STRING'", "VARCHAR without a length is STRING (asked of Flink 2.3)"),
    ("*", "TableFunction.lateral flipped", "LATERAL is implied by the place"),
    ("*", r"In.expressions\[\d\] swapped", "members of IN have no order"),
    ("*", r"HintCall.expressions\[\d\] swapped", "options of a hint have no order"),
    ("tables", r"TableLike.expressions\[1\]", "INCLUDING OPTIONS is what LIKE does anyway"),
    ("tables", "LikeOption.kind = (GENERATED|WATERMARKS) in 'INCLUDING", "INCLUDING is what LIKE does anyway"),
    ("ranks", r"Select.expressions\[3\] removed in 'SELECT customer, item, placed, am", "sorted by all the same"),
    ("joins", "Join.kind = CROSS in .INNER JOIN rates", "with a condition, which Flink refuses, it is an INNER JOIN"),
    ("joins", r"Hint.expressions\[\d\] swapped", "hints have no order"),
    ("joins", "Column.table removed in 'v.rate'", "only one relation has the column"),
    ("joins", "Column.table removed in 'o.placed'", "only one relation has the column"),
    ("joins", "Column.table removed in 'o.arrived'", "only one relation has the column"),
    ("joins", "Column.table removed in 't.word'", "only one relation has the column"),
    ("joins", "Column.table removed in 'u.tag'", "only one relation has the column"),
    ("joins", "Column.table removed in 'v.n'", "only one relation has the column"),
    ("joins", 'Join.kind removed in "INNER JOIN', "a plain JOIN is an inner one"),
    ("joins", "Join.kind = INNER in 'CROSS JOIN UNNEST", "UNNEST is joined to its own row"),
    ("joins", "Join.kind removed in 'CROSS JOIN UNNEST", "UNNEST is joined to its own row"),
    ("joins", 'Join.on removed in "LEFT JOIN LATERAL', "ON TRUE is all that may stand there"),
    ("joins", "Identifier.this renamed in 's'", "an alias nothing reads"),
    ("pattern", r"Column.table removed in 'mr\.", "only one relation has the column"),
    ("pattern", "Identifier.this renamed in 'first_size'", "a measure nothing reads"),
    ("ranks", r"Select.expressions\[1\] swapped in 'SELECT \*, ROW_NUMBER", "read by name"),
    ("ranks", "Fetch.direction removed", "FETCH NEXT and FETCH FIRST are one"),
    ("session", "Table.db removed in 'lake.archive'", "lake is the current catalog there"),
    ("sets", r"Select.expressions\[1\] swapped in 'SELECT customer AS c, amount", "read by name"),
    ("window_aggregation", "Literal.this changed in \"'10 s'\"", "reset before the query"),
    ("window_aggregation", r"Anonymous.expressions\[0\] removed in 'COUNT\(\*\)'", "COUNT() counts rows too"),
    ("windows", r"GroupingSets.expressions\[2\] swapped", "grouping sets have no order (measured)"),
    ("windows", r"TableFunction.expressions\[\d\] swapped in 'TABLE\(CUMULATE", "named arguments have no order"),
    ("windows", r"Tuple.expressions\[\d\] swapped", "a grouping set is a set"),
)


@dataclass(frozen=True)
class Changed:
    """A mutation with the script it changes."""

    text: str
    mutation: Mutation

    @property
    def what(self) -> str:
        return self.mutation.what


@cache
def cases(name: str) -> tuple[Changed, ...]:
    """All mutations of a script; each query stands alone behind what the script declares before it."""
    words = words_of(list(TEXTS.values()))
    if name in ("tables", "session"):
        whole = printed(statements(TEXTS[name] + (READS_ALL if name == "tables" else "")))
        return tuple(Changed(whole, mutation) for mutation in mutations(whole, words))
    trees = statements(TEXTS["tables"]) + statements(TEXTS[name])
    context = [tree for tree in trees if not is_query(tree)]
    found = []
    for query in (tree for tree in trees if is_query(tree)):
        text = printed([*context, query])
        found += [Changed(text, mutation) for mutation in mutations(text, words, only=len(context))]
    whole = printed(trees)
    declared = [i for i, tree in enumerate(trees) if not is_query(tree)][len(statements(TEXTS["tables"])) :]
    for i in declared:
        found += [Changed(whole, mutation) for mutation in mutations(whole, words, only=i)]
    return tuple(found)


def is_query(tree: object) -> bool:
    return label_of(tree).startswith(("INSERT", "EXECUTE"))


@cache
def side(text: str) -> Side:
    return Side(text)


def neutral(name: str, changed: Changed) -> bool:
    return any(script in (name, "*") and re.search(label, changed.what) for script, label, _ in NEUTRAL)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_nightly([*SCRIPTS, "tables"], 1))
def test_every_mutation_is_a_difference(name: str) -> None:
    found = cases(name)
    assert len(found) > 40
    silent = [
        changed.what
        for changed in found
        if not neutral(name, changed) and not Change(side(changed.text), Side(changed.mutation.text)).differences
    ]
    assert not silent, "\n".join(silent)


@pytest.mark.nightly
@pytest.mark.slow
def test_every_exception_is_met() -> None:
    """An exception that nothing needs any more is taken from the list."""
    for script, label, why in NEUTRAL:
        names = ["tables", *SCRIPTS] if script == "*" else [script]
        assert any(re.search(label, m.what) for name in names for m in cases(name)), (script, label, why)


@pytest.mark.slow
@settings(max_examples=300 if NIGHTLY else 5)
@given(data=st.data(), engine=st.sampled_from(["vvr", "flink"]))
def test_a_difference_is_a_finding(data: st.DataObject, engine: str) -> None:
    """What differs is told: some rule but ``unchanged`` fires, and the outcome is that of the worst that counts."""
    name = data.draw(st.sampled_from(["tables", *SCRIPTS]))
    mutation = data.draw(st.sampled_from([m for m in cases(name) if not neutral(name, m)]))
    new = Side(mutation.mutation.text, engine=engine)
    if not new.program.pipelines and not new.program.problems:
        with pytest.raises(InputError, match="there is nothing to check"):
            check(Side(mutation.text, engine=engine), new)
        return
    report = check(Side(mutation.text, engine=engine), new)
    rules = [finding.rule for finding in report.findings]
    assert rules, mutation.what
    assert "unchanged" not in rules, mutation.what
    assert report.outcome is Outcome.worst(f.outcome for f in report.deciding)
    if engine == "flink":
        assert all(f.outcome is not Outcome.PARTIAL for f in report.findings)


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_nightly(SCRIPTS, 3))
def test_order_and_number_of_statements_are_compared(name: str) -> None:
    """A statement taken away, doubled or moved is told, unless it declares the same all the same."""
    front = "" if name == "session" else printed(statements(TEXTS["tables"]))
    trees = statements(TEXTS[name])
    old = Side(front + printed(trees))
    for i, tree in enumerate(trees):
        label = tree.sql(dialect="flink")[:70]
        without = Change(old, Side(front + printed([*trees[:i], *trees[i + 1 :]])))
        if not label.startswith("SET 'execution.checkpointing"):  # reset before any query
            assert without.differences, f"taken away: {label}"
        twice = Change(old, Side(front + printed([*trees[: i + 1], *trees[i:]])))
        if not label.startswith(("SET", "RESET", "USE CATALOG", "USE ")):
            assert twice.differences, f"doubled: {label}"
    inserts = [i for i, tree in enumerate(trees) if label_of(tree).startswith("INSERT")]
    for i, j in pairwise(inserts):
        moved = list(trees)
        moved[i], moved[j] = moved[j], moved[i]
        assert Change(old, Side(front + printed(moved))).differences, f"moved: {label_of(trees[i])}"


def label_of(tree: object) -> str:
    return tree.sql(dialect="flink")[:70]  # type: ignore[attr-defined]


WINDOWED = """\
CREATE TABLE orders (customer STRING, amount BIGINT, placed TIMESTAMP(3), WATERMARK FOR placed AS placed)
  WITH ('connector' = 'kafka', 'topic' = 'orders');
CREATE TABLE sink (customer STRING, total BIGINT) WITH ('connector' = 'print');
"""
QUERY = """\
INSERT INTO sink SELECT customer, SUM(amount) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '1' MINUTE))
WHERE amount > 1 AND customer <> 'x' GROUP BY customer, window_start, window_end;
"""
TUMBLE = "TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(placed), INTERVAL '1' MINUTE))"
SAME = {
    "layout": QUERY.replace(" ", "\n\t "),
    "comment": "-- new\n" + QUERY.replace("SELECT", "SELECT /* here */"),
    "keyword case": QUERY.lower(),
    "alias": QUERY.replace("SUM(amount)", "SUM(amount) AS the_total"),
    "table alias": QUERY.replace("MINUTE))", "MINUTE)) AS w"),
    "qualified": QUERY.replace("MINUTE))", "MINUTE)) AS w").replace("SUM(amount)", "SUM(w.amount)"),
    "interval unit": QUERY.replace("'1' MINUTE", "'60' SECOND"),
    "order of conjuncts": QUERY.replace("amount > 1 AND customer <> 'x'", "customer <> 'x' AND amount > 1"),
    "brackets": QUERY.replace("amount > 1 AND customer <> 'x'", "((amount > 1) AND (customer <> 'x'))"),
    "quoted names": QUERY.replace("customer", "`customer`"),
    "named arguments": QUERY.replace(
        "TABLE orders, DESCRIPTOR(placed), INTERVAL '1' MINUTE",
        "SIZE => INTERVAL '1' MINUTE, TIMECOL => DESCRIPTOR(placed), DATA => TABLE orders",
    ),
    "subquery": QUERY.replace("FROM TABLE", "FROM (SELECT * FROM TABLE").replace("MINUTE))", "MINUTE)))"),
    "CTE": QUERY.replace(
        "SELECT customer", "WITH w AS (SELECT * FROM " + TUMBLE.format("orders") + ") SELECT customer"
    ).replace("FROM " + TUMBLE.format("orders") + "\nWHERE", "FROM w\nWHERE"),
    "filter further down": QUERY.replace(
        "FROM " + TUMBLE.format("orders"), "FROM (SELECT * FROM " + TUMBLE.format("orders") + " WHERE amount > 1) AS o"
    ).replace("WHERE amount > 1 AND customer <> 'x' GROUP", "WHERE customer <> 'x' GROUP"),
    "HAVING on a key": QUERY.replace(" AND customer <> 'x'", "").replace(
        "window_end;", "window_end HAVING customer <> 'x';"
    ),
    "a SET that is reset": "SET 'a.b' = 'c';\nRESET 'a.b';\n" + QUERY,
    "a SET after the last query": QUERY + "SET 'a.b' = 'c';\n",
}


@pytest.mark.parametrize("engine", ["vvr", "flink"])
@pytest.mark.parametrize("name", sorted(SAME))
def test_what_means_the_same_is_unchanged(name: str, engine: str) -> None:
    assert SAME[name] != QUERY
    report = check(Side(WINDOWED + QUERY, engine=engine), Side(WINDOWED + SAME[name], engine=engine))
    assert [finding.rule for finding in report.findings] == ["unchanged"], [f.message for f in report.findings]
    assert report.outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("engine", ["vvr", "flink"])
def test_a_view_in_between_is_compatible(engine: str) -> None:
    view = "CREATE TEMPORARY VIEW recent AS SELECT customer, amount, placed FROM orders;\n"
    viewed = view + QUERY.replace("TABLE orders", "TABLE recent")
    report = check(Side(WINDOWED + QUERY, engine=engine), Side(WINDOWED + viewed, engine=engine))
    assert report.outcome is Outcome.COMPATIBLE
    assert {finding.rule for finding in report.findings} == {"view-rewritten"}
