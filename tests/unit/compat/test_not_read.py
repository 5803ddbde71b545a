"""What a side does not declare, or declares so that it is not read, is no change of operators or windows."""

from __future__ import annotations

import re

import pytest

from airflow_flinkcompat.compat import Consequence, Outcome, Report, Side, check
from airflow_flinkcompat.model import Basis, Reason
from dev.measure.measured import Restore, everything
from tests.support.nightly import NIGHTLY

ORDERS = """\
CREATE TABLE orders (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv');
"""
BROKEN = ORDERS.replace("'csv')", "'csv',)")
RAW = "CREATE TABLE out_1 (a STRING, b BIGINT) WITH ('connector' = 'print');\nINSERT INTO out_1\n"
WINDOW = "SELECT customer, SUM(amount) FROM orders GROUP BY customer, {0}(ts, INTERVAL '1' MINUTE);\n"
ENGINES = pytest.mark.parametrize("engine", ["flink", "vvr"])


def rules(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings}


@ENGINES
@pytest.mark.parametrize("window", ["TUMBLE", "SESSION"])
@pytest.mark.parametrize("declared", ["", BROKEN], ids=["absent", "not read"])
def test_a_declaration_that_is_not_read_changes_no_window(declared: str, window: str, engine: str) -> None:
    old, new = (table + RAW + WINDOW.format(window) for table in (ORDERS, declared))
    for proposed, report in ((declared, check(old, new, engine)), (ORDERS, check(new, old, engine))):
        refused = proposed == BROKEN
        assert report.outcome is (Outcome.INCOMPATIBLE if refused else Outcome.UNKNOWN)
        assert Reason.UNDECLARED in {finding.reason for finding in report.findings if finding.rule == "window-changed"}


@ENGINES
def test_what_changed_beside_a_missing_declaration_is_still_told(engine: str) -> None:
    old = ORDERS + RAW + WINDOW.format("TUMBLE")
    new = RAW + WINDOW.format("TUMBLE").replace("'1' MINUTE", "'5' MINUTE")
    report = check(old, new, engine)
    assert report.outcome is Outcome.INCOMPATIBLE
    assert {finding.rule for finding in report.deciding} == {"window-changed"}


@ENGINES
def test_a_declaration_that_one_script_refuses_is_looked_at_once(engine: str) -> None:
    # The catalog declares the table, and the LIKE clause of the script is refused all the same.
    old = ORDERS + "CREATE TABLE t WITH ('path' = '/t') LIKE orders (OVERWRITING OPTIONS);\n"
    old += RAW + WINDOW.format("TUMBLE").replace("orders", "t")
    new = old.replace("OVERWRITING", "INCLUDING")
    for report in (check(old, new, engine), check(new, old, engine)):
        assert report.outcome is Outcome.UNKNOWN


@ENGINES
@pytest.mark.parametrize("query", ["SELECT * FROM elsewhere;\n", "SELECT orders.nothing, amount FROM orders;\n"])
def test_a_query_that_cannot_be_bound_is_no_operator(query: str, engine: str) -> None:
    bound = ORDERS + RAW + "SELECT customer, amount FROM orders;\n"
    unbound = ORDERS + RAW + query
    for report in (check(bound, unbound, engine), check(unbound, bound, engine)):
        refused = "Flink refuses the proposed" in report.deciding[0].message
        assert report.outcome is (Outcome.INCOMPATIBLE if refused else Outcome.UNKNOWN)
        assert "operators-added-or-removed" not in rules(report)


MALFORMED = [
    "INSERT INTO out_1 SELECT customer, amount, FROM orders;\n",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO out_1 SELECT customer amount total FROM orders; END;\n",
    "## the second part\n;\n",
    "x;\n",
]
"""What the grammar that both engines share refuses."""
OWN_ON_VVR = [
    "CREATE TABLE IF NOT EXISTS copy WITH ('a' = 'b') AS TABLE mysql.db.t ADD COLUMN (x AS 1);\n",
    "CREATE DATABASE copies WITH ('a' = 'b') AS DATABASE mysql.db INCLUDING ALL TABLES;\n",
    "INSERT INTO out_1 SELECT a FROM orders MATCH_RECOGNIZE (ONE ROW PER MATCH SHOW TIMEOUT MATCHES PATTERN (A));\n",
    "INSERT INTO out_1 SELECT customer, amount FROM orders EMIT WITH DELAY;\n",
    "REGISTER METRIC x FOR out_1;\n",
]
"""What Flink's grammar refuses, and VVR's may have."""


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_proposal_starts_on_no_engine(text: str) -> None:
    script = ORDERS + RAW + "SELECT customer, amount FROM orders;\n"
    for engine in ("flink", "vvr"):
        assert check(script, script + text, engine).outcome is Outcome.INCOMPATIBLE
        assert check(script + text, script, engine).outcome is Outcome.UNKNOWN  # what runs is another script


@pytest.mark.parametrize("text", OWN_ON_VVR)
def test_what_vvr_may_have_a_grammar_for_is_unknown_there(text: str) -> None:
    script = ORDERS + RAW + "SELECT customer, amount FROM orders;\n"
    assert check(script, script + text, "flink").outcome is Outcome.INCOMPATIBLE
    assert check(script, script + text, "vvr").outcome is Outcome.UNKNOWN


def scripts() -> list[tuple[str, str]]:
    """Every measured script, with the same without the declarations of what it reads."""
    found = {}
    for pair in everything():
        for text in (pair.old, pair.new):
            kept = [part for part in text.split(";\n") if not re.match(r"\s*CREATE TABLE (?!Result)", part)]
            if not pair.version.startswith("1.20") and ";\n".join(kept) != text:
                found[text] = ";\n".join(kept)
    return list(found.items())


@pytest.mark.slow
@ENGINES
def test_no_missing_declaration_is_called_incompatible_or_compatible(engine: str) -> None:
    assert len(scripts()) > 300
    for whole, bare in scripts()[:: 4 if NIGHTLY else 16]:
        for old, new in ((whole, bare), (bare, whole)):
            outcome = check(Side(old, engine=engine), Side(new, engine=engine)).outcome
            assert outcome in (Outcome.UNKNOWN, Outcome.PARTIAL), f"{old}\n---\n{new}"


# --- operators that come and go --------------------------------------------------------------------------------------


def test_state_that_comes_to_a_query_is_not_said_to_be_refused() -> None:
    """``so-added`` restored right, ``li-added`` counted from zero: nothing was refused."""
    old = ORDERS + RAW + "SELECT customer, amount FROM orders;\n"
    grouped = check(old, old.replace("amount FROM orders", "SUM(amount) FROM orders GROUP BY customer"), "flink")
    limited = check(old, old.replace("FROM orders;", "FROM orders LIMIT 3;"), "flink")
    assert (grouped.outcome, limited.outcome) == (Outcome.INCOMPATIBLE, Outcome.INCOMPATIBLE)
    (found,) = (finding for finding in grouped.findings if finding.rule == "operators-added-or-removed")
    assert (found.basis, found.consequence) == (Basis.INFERRED, None)
    (found,) = (finding for finding in limited.findings if finding.rule == "operators-added-or-removed")
    assert (found.basis, found.consequence) == (Basis.MEASURED, Consequence.SILENTLY_WRONG)


def test_state_that_leaves_a_query_is_refused_at_submit() -> None:
    old = ORDERS + RAW + "SELECT customer, amount FROM orders LIMIT 3;\n"
    report = check(old, old.replace(" LIMIT 3", ""), "flink")
    assert {finding.consequence for finding in report.deciding} == {Consequence.REFUSED_AT_SUBMIT}


# --- consequences ----------------------------------------------------------------------------------------------------

ON_FILES = ["ga-key-othercol", "ga-reorder-sametypes", "ga-filter-clause", "ga-input-cast-double", "ga-input-col-swap"]
ENDS = {
    "refused_at_submit": Consequence.REFUSED_AT_SUBMIT,
    "refused_at_restore": Consequence.REFUSED_AT_RESTORE,
    "restored_WRONG": Consequence.SILENTLY_WRONG,
}


@pytest.mark.parametrize("name", ON_FILES)
@pytest.mark.slow
def test_a_group_aggregation_over_files_is_not_refused_at_submit_for_what_is_computed_below(name: str) -> None:
    (pair,) = (pair for pair in everything() if pair.id == name)
    assert isinstance(pair, Restore)
    assert {finding.consequence for finding in check(*pair.sides()).deciding} == {ENDS[pair.outcome]}


@ENGINES
def test_a_column_that_a_table_lacks_starts_on_no_engine(engine: str) -> None:
    old = ORDERS + RAW + "SELECT customer, amount FROM orders;\n"
    for named in ("INTO out_1 (a, nothing)", "INTO out_1 (a, b)"):
        outcome = Outcome.INCOMPATIBLE if "nothing" in named else Outcome.COMPATIBLE
        assert check(old, old.replace("INTO out_1", named), engine).outcome is outcome
