"""What a report says of each sink and operator: outcomes that agree with the whole, what becomes of all they keep."""

from __future__ import annotations

import json

import pytest

from airflow_flinkcompat.cli.rules import judged
from airflow_flinkcompat.compat import ENGINES, Consequence, Outcome, Report, Side, check
from airflow_flinkcompat.compat.report import OperatorReport
from airflow_flinkcompat.compat.reports.catalogue import ENTRIES
from airflow_flinkcompat.compat.reports.render import render_text
from airflow_flinkcompat.compat.rule import EXAMPLE_TABLES, Fate, KeyFate, Rule

TABLES = EXAMPLE_TABLES + "".join(
    f"CREATE TABLE {name} (customer STRING, total BIGINT) WITH ('connector' = 'blackhole');\n"
    for name in ("a", "b", "c")
)


def insert(sink: str, select: str = "SUM(amount)", keys: str = "customer", minutes: int = 1) -> str:
    window = f"TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '{minutes}' MINUTE))"
    return f"INSERT INTO {sink} SELECT customer, {select} FROM {window} GROUP BY {keys}, window_start, window_end;\n"


def report(old: str, new: str, engine: str = "vvr") -> Report:
    return check(Side(TABLES + old, engine=engine, source="old"), Side(TABLES + new, engine=engine, source="new"))


def only(old: str, new: str, engine: str = "vvr") -> OperatorReport:
    (operator,) = report(old, new, engine).operators
    return operator


# ---------------------------------------------------------------------------------------------- over all rules
@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("rule", ENTRIES, ids=lambda rule: rule.code)
def test_the_script_is_as_bad_as_its_worst_sink_and_no_operator_is_worse(rule: Rule, engine: str) -> None:
    found = judged(rule.code, engine)
    assert found.sinks
    assert Outcome.worst(outcome for _, outcome in found.sinks) is found.outcome
    of_sink = dict(found.sinks)
    for operator in found.operators:
        assert operator.outcome.rank <= of_sink[operator.sink].rank
        assert operator.before or operator.after


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("rule", ENTRIES, ids=lambda rule: rule.code)
def test_no_metric_is_kept_where_the_state_may_not_be_used(rule: Rule, engine: str) -> None:
    for operator in judged(rule.code, engine).operators:
        fates = {fate for _, fate in operator.metrics}
        if operator.outcome is Outcome.UNKNOWN:
            assert fates <= {Fate.SAME if operator.unchanged else Fate.UNCLEAR}
        else:
            assert not {Fate.UNCLEAR, Fate.SAME} & fates
        if operator.outcome is Outcome.INCOMPATIBLE:
            assert Fate.KEPT not in fates
        assert operator.consequence is None or engine == "flink"
        assert not operator.resumed or operator.consequence is Consequence.SILENTLY_WRONG


PULSAR = """\
SET 'my.own.setting' = '1';
CREATE TABLE orders (customer STRING, amount BIGINT) WITH ('connector' = 'pulsar', 'topic' = 'orders');
SELECT customer, SUM(amount) FROM orders GROUP BY customer;
"""


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (("'topic' = 'orders'", "'topic' = 'others'"), True),
        (("'my.own.setting' = '1'", "'my.own.setting' = '2'"), True),
        (("SUM(amount)", "MAX(amount)"), False),
        (("GROUP BY", "WHERE amount > 0 GROUP BY"), False),
    ],
)
def test_an_operator_is_the_same_where_only_a_table_or_a_setting_is_in_doubt(
    change: tuple[str, str], same: bool
) -> None:
    report = check(PULSAR, PULSAR.replace(*change), "flink")
    (operator,) = report.operators
    assert operator.unchanged is same
    assert ("its state is unchanged" in render_text(report)) is same
    assert report.outcome is Outcome.UNKNOWN or not same
    assert Report.from_dict(report.to_dict()).operators == report.operators


def test_a_report_without_sinks_and_operators_still_reads() -> None:
    """As versions before these existed wrote it."""
    data = json.loads(json.dumps(report(insert("a"), insert("a", "MAX(amount)")).to_dict()))
    assert Report.from_dict(data).operators
    for added in ("sinks", "operators"):
        del data[added]
    for finding in data["findings"]:
        del finding["operator"], finding["evidence"]
    old = Report.from_dict(data)
    assert (old.sinks, old.operators) == ((), ())
    assert old.findings


def test_the_restores_behind_a_finding_are_data() -> None:
    found = judged("output-changed", "flink")
    (finding,) = (finding for finding in found.findings if finding.rule == "output-changed")
    assert finding.evidence == ("w-add-window-start", "w-having-add")
    assert finding.source.startswith(", ".join(finding.evidence))
    read = Report.from_dict(json.loads(json.dumps(found.to_dict())))
    assert [each.evidence for each in read.findings] == [each.evidence for each in found.findings]


# ---------------------------------------------------------------------------------------------- sinks
def test_every_sink_has_an_outcome_of_its_own() -> None:
    old = insert("a") + insert("b") + insert("c")
    new = insert("a") + insert("b", "SUM(amount) + MAX(amount)") + insert("c", minutes=2)
    found = report(old, new)
    assert found.sinks == (("a", Outcome.COMPATIBLE), ("b", Outcome.PARTIAL), ("c", Outcome.INCOMPATIBLE))
    assert found.outcome is Outcome.INCOMPATIBLE
    by_path = {operator.path: operator for operator in found.operators}
    assert by_path["a > 1"].metrics == (("SUM(amount)", Fate.KEPT),)
    assert by_path["b > 1"].metrics == (("SUM(amount)", Fate.KEPT), ("MAX(amount)", Fate.FROM_ZERO))
    assert by_path["c > 1"].metrics == (("SUM(amount)", Fate.FROM_ZERO),)


def test_what_concerns_the_script_concerns_every_sink() -> None:
    old = insert("a") + insert("b")
    found = report(old, "SET 'table.exec.mini-batch.enabled' = 'true';\n" + old, "flink")
    assert {outcome for _, outcome in found.sinks} == {Outcome.INCOMPATIBLE}
    assert {operator.consequence for operator in found.operators} == {Consequence.REFUSED_AT_SUBMIT}


def test_an_added_and_a_removed_sink_are_listed() -> None:
    found = report(insert("a") + insert("b"), insert("a") + insert("c"))
    assert {sink for sink, _ in found.sinks} >= {"a", "c"}
    assert any(operator.sink == "a" and operator.outcome is found.outcome for operator in found.operators)


def test_an_operator_does_not_pay_for_its_neighbour() -> None:
    inner = "(SELECT customer, SUM(amount) AS total, window_start AS ws, window_end AS we FROM TABLE(TUMBLE(TABLE "
    inner += "orders, DESCRIPTOR(order_time), INTERVAL '{}' MINUTE)) GROUP BY customer, window_start, window_end)"
    outer = "INSERT INTO a SELECT customer, {}(total) FROM " + inner + " GROUP BY customer;\n"
    found = report(outer.format("SUM", 1), outer.format("SUM", 2))
    above, below = found.operators
    assert (above.path, below.path) == ("a > 1", "a > 1 > 1")
    assert below.outcome is Outcome.INCOMPATIBLE
    assert above.metrics[0][1] is not Fate.FROM_ZERO or above.outcome is Outcome.INCOMPATIBLE


# ---------------------------------------------------------------------------------------------- keys
@pytest.mark.parametrize(
    ("old", "new", "fates"),
    [
        ("customer, item", "customer, item", {"customer": "same", "item": "same"}),
        ("customer, item", "item, customer", {"customer": "moved", "item": "moved"}),
        ("customer, item", "customer", {"customer": "same", "item": "removed"}),
        ("customer", "item, customer", {"customer": "same", "item": "added"}),
        ("customer, item, region", "region, customer", {"customer": "moved", "item": "removed", "region": "moved"}),
        ("customer", "UPPER(customer), customer", {"customer": "same", "UPPER(customer)": "added"}),
    ],
)
def test_what_happens_to_each_key(old: str, new: str, fates: dict[str, str]) -> None:
    operator = only(insert("a", keys=old), insert("a", keys=new))
    assert dict(operator.keys) == {key: KeyFate(fate) for key, fate in fates.items()}


def test_window_bounds_count_as_keys_only_where_a_side_lacks_them() -> None:
    both = insert("a")
    assert only(both, insert("a", "MAX(amount)")).keys == (("customer", KeyFate.SAME),)
    operator = only(both, both.replace(", window_end;", ";"))
    assert ("window_end", KeyFate.REMOVED) in operator.keys


# ---------------------------------------------------------------------------------------------- other operators
def test_a_top_n_tells_its_keys_and_the_rows_it_keeps() -> None:
    query = """INSERT INTO a SELECT customer, amount FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY region ORDER BY amount {}) AS place FROM orders) WHERE place <= {};
    """
    operator = only(query.format("DESC", 3), query.format("ASC", 5))
    assert operator.kind == "Top-N"
    assert operator.keys == (("region", KeyFate.SAME),)
    ((rows, fate),) = operator.rows
    assert rows == "ranks 1 to 3 by amount DESC, now ranks 1 to 5 by amount"
    assert fate is Fate.KEPT.under(operator.outcome)


def test_a_join_tells_its_keys_and_the_rows_of_both_inputs() -> None:
    query = "INSERT INTO a SELECT o.customer, o.amount FROM orders o JOIN orders p ON o.item = p.item{};\n"
    operator = only(query.format(""), query.format(" AND o.region = p.region"))
    assert operator.kind == "regular join"
    assert dict(operator.keys) == {"(item = item)": KeyFate.SAME, "(region = region)": KeyFate.ADDED}
    assert "customer" in operator.rows[0][0]


def test_an_over_aggregation_tells_its_keys_and_metrics() -> None:
    query = "INSERT INTO a SELECT customer, {} OVER (PARTITION BY customer ORDER BY order_time) FROM orders;\n"
    operator = only(query.format("SUM(amount)"), query.format("MAX(amount)"))
    assert operator.kind == "OVER aggregation"
    assert operator.keys == (("customer", KeyFate.SAME),)
    assert dict(operator.metrics) == {"SUM(amount)": Fate.DROPPED, "MAX(amount)": Fate.FROM_ZERO}


# ---------------------------------------------------------------------------------------------- restores
def test_what_a_wrong_restore_reads_as_what() -> None:
    operator = only(insert("a", "UPPER(MAX(item))"), insert("a", "UPPER(MIN(item))"), "flink")
    assert operator.consequence is Consequence.SILENTLY_WRONG
    assert operator.resumed == ("MIN(item) would continue from the values stored for MAX(item)",)
    operator = only(insert("a"), insert("a", minutes=2), "flink")
    assert operator.resumed == (
        "values accumulated for TUMBLE(order_time, '1' MINUTE) would be emitted as "
        "those of TUMBLE(order_time, '2' MINUTE)",
    )


def test_a_refused_start_comes_to_no_wrong_rows() -> None:
    setting = "SET 'table.exec.mini-batch.enabled' = 'true';\n"
    operator = only(insert("a"), setting + insert("a", minutes=2), "flink")
    assert (operator.consequence, operator.resumed) == (Consequence.REFUSED_AT_SUBMIT, ())


LOOKED_UP = (
    EXAMPLE_TABLES
    + """
CREATE TABLE names (customer STRING, name STRING) WITH ('connector' = '{connector}', 'table-name' = 'names'{more});
CREATE TABLE counted (name STRING, n BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector' = 'blackhole');
INSERT INTO counted SELECT name, COUNT(*) FROM orders {join} names FOR SYSTEM_TIME AS OF orders.arrived
ON orders.customer = names.customer GROUP BY name;
"""
)


@pytest.mark.parametrize(
    ("connector", "more", "kinds"),
    [
        ("jdbc", "", ["group aggregation"]),
        ("jdbc", ", 'lookup.cache' = 'PARTIAL'", ["group aggregation"]),
        ("hbase-2.2", "", ["group aggregation"]),
        ("hbase-2.2", ", 'lookup.async' = 'true'", ["group aggregation", "lookup join"]),
        ("unheard-of", "", ["group aggregation", "lookup join"]),
    ],
)
def test_a_lookup_has_state_only_where_rows_may_wait_in_it(connector: str, more: str, kinds: list[str]) -> None:
    old, new = (LOOKED_UP.format(connector=connector, more=more, join=join) for join in ("JOIN", "LEFT JOIN"))
    found = check(Side(old, engine="flink"), Side(new, engine="flink"))
    assert [operator.kind for operator in found.operators] == kinds
    assert [table for table, _ in found.sources] == ["orders"]
    if len(kinds) == 1:  # what it hands on is in the state above it
        assert found.operators[0].outcome is Outcome.INCOMPATIBLE
        assert found.operators[0].metrics == (("COUNT(*)", Fate.FROM_ZERO),)
        assert "wait" not in render_text(found)


def test_a_setting_may_have_a_lookup_store_what_it_found() -> None:
    strategy = "SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';\n"
    old, new = (strategy + LOOKED_UP.format(connector="jdbc", more="", join=join) for join in ("JOIN", "LEFT JOIN"))
    found = check(Side(old, engine="flink"), Side(new, engine="flink"))
    assert [operator.kind for operator in found.operators] == ["group aggregation", "lookup join"]
