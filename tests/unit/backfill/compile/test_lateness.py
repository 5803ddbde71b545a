"""The order in which rows arrive: by declared columns or their place in a source; where nothing tells it, an error."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, explain, plan
from airflow_flinkcompat.backfill.request import parse_orders
from airflow_flinkcompat.backfill.steps import DropOverLate, OverAggregate, Read, Step, UnionAll, reads_of
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, TUMBLE, Run, bids, lines, requested, script, table

ROWS = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
COLUMNS = "item STRING, p DECIMAL(38, 2)"
PROGRAM = '''
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit, row_interval
from pyflink.table.window import Slide, Tumble

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("""{source}""")
t_env.execute_sql("""{sink}""")
t = t_env.from_path("bid").window({window}.on(col("pt")).alias("w"))
t.group_by(col("w"), col("item")).select(col("item"), col("price").sum).execute_insert("results")
'''


def over(order: str = "bidtime", frame: str = ROWS, keys: str = "PARTITION BY item", call: str = "SUM(price)") -> str:
    return f"SELECT item, {call} OVER ({keys} ORDER BY {order} {frame}) FROM bid"


def program(window: str = "Tumble.over(row_interval(2))", source: str = "/history", sink: str = "/results") -> str:
    bid = table("bid", BID_COLUMNS + ", pt AS PROCTIME()", source)
    return PROGRAM.format(source=bid, sink=table("results", COLUMNS, sink), window=window)


def refused(text: str, **request: object) -> str:
    language = "python" if "pyflink" in text else "sql"
    with pytest.raises(BackfillError) as caught:
        plan(requested(text, **{"source": "job", "language": language, **request}))
    return str(caught.value)


def steps(step: Step) -> list[Step]:
    below = step.inputs if isinstance(step, UnionAll) else () if isinstance(step, Read) else (step.input,)
    return [step, *(inner for each in below for inner in steps(each))]


def planned(text: str, **request: object) -> list[Step]:
    language = "python" if "pyflink" in text else "sql"
    (write,) = plan(requested(text, **{"source": "job", "language": language, **request})).work.writes
    return steps(write.inputs[0])


# --- what is asked of a source ----------------------------------------------------------------------------------------


def test_only_what_goes_by_arrival_asks_for_it() -> None:
    def arrival(text: str, **request: object) -> tuple[str, ...] | None:
        (read,) = reads_of(planned(text, **request)[0])
        return read.arrival

    assert arrival(bids(over(), COLUMNS)) == ()
    assert arrival(program()) == ()
    assert arrival(bids(over(frame=""), COLUMNS)) is None
    assert arrival(bids(over(), COLUMNS), order_by={"bid": "price,bidtime"}) == ("c1", "c0")
    assert arrival(bids(over(), COLUMNS), order_by={"": "price"}) == ("c1",)
    assert arrival(bids(over(), COLUMNS), order_by={"": "price", "bid": "bidtime"}) == ("c0",)


def test_late_rows_are_those_of_the_declared_order() -> None:
    (read,) = reads_of(planned(bids(over(frame=""), COLUMNS), late="drop", order_by={"": "price"})[0])
    assert (read.arrival, read.watermark) == (("c1",), "(c0 - INTERVAL '1.000' SECOND)")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["seq"], {"": "seq"}),
        (["bid=seq, part"], {"bid": "seq, part"}),
        (["a,b", "bid=seq"], {"": "a,b", "bid": "seq"}),
    ],
)
def test_columns_as_they_are_written(given: list[str], found: dict[str, str]) -> None:
    assert parse_orders(given) == found
    request = BackfillRequest(JobSpec(""), order_by=found)
    assert BackfillRequest.from_dict(request.to_dict()) == request


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([""], "contains no column"),
        (["bid="], "contains no column"),
        (["=seq"], "contains no column"),
        (["a", "b"], "twice for all tables"),
        (["t=a", "t=b"], "twice for t"),
    ],
)
def test_columns_that_are_none(given: list[str], words: str) -> None:
    with pytest.raises(BackfillError, match=words):
        parse_orders(given)


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ({"": "seq"}, "table bid has no column seq. The columns of the table are bidtime, price, item"),
        ({"bid": "item"}, "column item of table bid is STRING. Use whole or decimal numbers"),
        ({"other": "price"}, "--order-by other: the script reads no table with this name"),
    ],
)
def test_columns_that_tell_no_order(orders: dict[str, str], words: str) -> None:
    assert words in refused(bids(over(), COLUMNS), order_by=orders)


def test_columns_are_looked_at_where_no_order_is_needed() -> None:
    text = bids("SELECT item, price FROM bid", "item STRING, price INT")
    assert "--order-by seq: table bid has no column seq" in refused(text, order_by={"bid": "seq"})


def test_a_lake_needs_columns() -> None:
    place = "'filesystem', 'path' = '/history', 'format' = 'csv'"
    for text in (program(), bids(over("PROCTIME()"), COLUMNS)):
        lake = text.replace(place, "'delta', 'table-path' = '/history'")
        message = refused(lake)
        assert "(table bid) does not record in which order its rows arrived" in message
        assert "--order-by bid=COLUMN[,COLUMN]" in message
        planned(lake, order_by={"bid": "bidtime"})
    # Rows of one time may be told apart by nothing and never meet: that shows when it runs.
    lake = bids(over(), COLUMNS).replace(place, "'delta', 'table-path' = '/history'")
    (along,) = [step for step in planned(lake) if isinstance(step, OverAggregate)]
    assert not along.arrival
    assert "--order-by bid=COLUMN[,COLUMN]" in along.clashing


def test_branches_need_columns_of_one_kind() -> None:
    both = "(SELECT * FROM bid UNION ALL SELECT * FROM bid)"
    text = bids(over("PROCTIME()").replace("FROM bid", f"FROM {both}"), COLUMNS)
    assert "order of arrival across the branches of a UNION ALL" in refused(text)
    planned(text, order_by={"": "bidtime"})


def test_what_leaves_an_operator_has_no_order_of_arrival() -> None:
    inner = (
        f"(SELECT item, SUM(price) AS price, PROCTIME() AS pt FROM {TUMBLE} GROUP BY window_start, window_end, item)"
    )
    assert "the order of rows after an aggregation" in refused(
        bids(over("pt").replace("FROM bid", f"FROM {inner}"), COLUMNS)
    )


def test_rows_of_one_over_go_on_into_the_next() -> None:
    first = f"(SELECT bidtime, item, SUM(price) OVER (PARTITION BY item ORDER BY bidtime {ROWS}) AS price FROM bid)"
    chained = bids(over().replace("FROM bid", f"FROM {first}"), COLUMNS)
    assert [step.arrival for step in planned(chained) if isinstance(step, OverAggregate)] == [True, True]
    # Of other keys, rows of one time come out in an order of the first operator's own.
    other = bids(over(keys="").replace("FROM bid", f"FROM {first}"), COLUMNS)
    assert [step.arrival for step in planned(other) if isinstance(step, OverAggregate)] == [False, True]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (over("price", ""), "not ordered by a time attribute"),
        (over("bidtime DESC"), "in ascending order of a single time"),
        (over("bidtime, price"), "in ascending order of a single time"),
        (over("PROCTIME()", "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW"), "processing time depends"),
        (over(frame="ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"), "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
        (over(frame="ROWS BETWEEN CURRENT ROW AND CURRENT ROW"), "OVER RANGE FOLLOWING windows are not supported"),
        (over(call="SUM(DISTINCT price)"), "SUM(DISTINCT …) OVER has no exact translation"),
        (over(call="COUNT(price) FILTER (WHERE price > 1)"), "with a FILTER"),
        (over(call="SUM(CAST(price AS DOUBLE))"), "Flink subtracts values that leave the frame"),
        (over() .replace("FROM bid", f", COUNT(*) OVER (ORDER BY bidtime {ROWS}) FROM bid"), "must be computed on"),
    ],
)  # fmt: skip
def test_what_is_not_exact_is_refused(query: str, words: str) -> None:
    columns = COLUMNS + (", n BIGINT" if "COUNT(*)" in query else "")
    message = refused(bids(query, columns))
    assert words in message
    assert message.startswith("job:")


@pytest.mark.parametrize("bounds", [{"from_": datetime(2020, 1, 1)}, {"to": datetime(2020, 1, 1)}])
def test_neither_has_a_range(bounds: dict[str, datetime]) -> None:
    assert "Omit --from and --to" in refused(bids(over(), COLUMNS), **bounds)
    assert "must start at the first row" in refused(bids(over(), COLUMNS), **bounds)
    assert "windows over rows start at the first row of each key" in refused(program(), **bounds)


def test_a_window_above_has_one() -> None:
    """Its rows are those of all history, and the window takes what lies in the range."""
    inner = f"(SELECT bidtime, item, SUM(price) OVER (PARTITION BY item ORDER BY bidtime {ROWS}) AS price FROM bid)"
    text = script(
        table("bid", BID_COLUMNS, "/history"),
        table("results", "ws TIMESTAMP(3), total DECIMAL(38, 2)", "/results"),
        f"CREATE VIEW moving AS SELECT * FROM {inner} AS t",
        f"INSERT INTO results SELECT window_start, SUM(price) FROM {TUMBLE.replace('TABLE bid', 'TABLE moving')} "
        "GROUP BY window_start, window_end",
    )
    found = planned(text, from_=datetime(2020, 4, 15, 8, 10))
    assert [type(step).__name__ for step in found if isinstance(step, OverAggregate | DropOverLate)] == [
        "OverAggregate",
        "DropOverLate",
    ]


def test_state_that_is_forgotten_is_known_to_nobody() -> None:
    for text in (bids(over(), COLUMNS), program()):
        assert "table.exec.state.ttl = '1 h'" in refused(text, settings={"table.exec.state.ttl": "1 h"})


def test_late_rows_of_a_range_with_a_beginning_are_not_known() -> None:
    query = over(frame="RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW")
    planned(bids(query, COLUMNS))
    assert "depend on the timers with which Flink drops keys" in refused(bids(query, COLUMNS), late="drop")


def test_batch_mode_has_no_windows_over_rows() -> None:
    batch = {"execution.runtime-mode": "batch"}
    assert "in batch mode" in refused(program(), settings=batch)
    planned(bids(over(), COLUMNS), settings=batch)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (bids(over(), COLUMNS), "needs the 2 rows before it of each key"),
        (bids(over(frame=""), COLUMNS), "needs every earlier row of each key"),
        (program("Slide.over(row_interval(6)).every(row_interval(4))"), "since the very beginning, modulo 4"),
    ],
)
def test_a_boundary_says_what_each_side_needs(text: str, words: str) -> None:
    assert words in refused(text, boundary=datetime(2020, 4, 15, 8, 10), sinks={"results": "/elsewhere"})


def test_the_order_is_shown_before_anything_runs() -> None:
    request = BackfillRequest(JobSpec(bids(over(), COLUMNS, source=Path(__file__).parent), source="job.sql"))
    shown = explain(plan(request), request)
    assert "arrival     rows of bid by their position in a file or partition" in shown
    assert "over        SUM(price) of each item, ORDER BY bidtime" in shown


# --- what shows when it runs ------------------------------------------------------------------------------------------

NUMBERS = "seq INT, ts TIMESTAMP(3), k STRING, v INT, WATERMARK FOR ts AS ts"
SUMMED = f"SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts {ROWS}) FROM t"


@pytest.mark.slow
@pytest.mark.nightly
def test_rows_that_could_stand_in_another_order(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "in"
    place.mkdir()
    text = script(
        table("t", NUMBERS, place), table("o", "k STRING, s INT", tmp_path / "out"), f"INSERT INTO o {SUMMED}"
    )
    first, second = "1,2020-01-01 00:00:01,a,1\n2,2020-01-01 00:00:02,b,1\n", "1,2020-01-01 00:00:02,b,2\n"
    (place / "1.csv").write_text(first, encoding="utf-8")
    (place / "2.csv").write_text("3,2020-01-01 00:00:03,a,4\n", encoding="utf-8")
    run(text)
    assert lines(tmp_path / "out") == ["a,1", "a,5", "b,1"]
    # Rows of one key and time in two files: which of them a job meets first is its own affair.
    (place / "2.csv").write_text(second, encoding="utf-8")
    with pytest.raises(
        BackfillError,
        match=r"same ts, and OVER … ROWS depends on their order of arrival, which is unknown.*--order-by t=COLUMN",
    ):
        run(text)
    assert lines(tmp_path / "out") == ["a,1", "a,5", "b,1"]
    run(text, order_by={"t": "seq"})
    assert lines(tmp_path / "out") == ["a,1", "b,2", "b,3"]
    # A declared order that does not tell them apart, or misses one.
    (place / "2.csv").write_text(second.replace("1,", "2,", 1), encoding="utf-8")
    with pytest.raises(
        BackfillError, match="same ts, and OVER … ROWS depends on their order of arrival, which is unknown"
    ):
        run(text, order_by={"": "seq"})
    (place / "2.csv").write_text(second.replace("1,", ",", 1), encoding="utf-8")
    with pytest.raises(BackfillError, match="a row has NULL in the columns of --order-by"):
        run(text.replace("'csv')", "'csv', 'csv.null-literal' = '')", 1), order_by={"": "seq"})
    # Windows over rows count whatever the time is, so rows of one key in two files are refused at any time.
    counted = program(source=str(place), sink=str(tmp_path / "out")).replace(BID_COLUMNS, NUMBERS)
    counted = counted.replace('"item"', '"k"').replace('"price"', '"v"').replace(COLUMNS, "k STRING, s INT")
    counted = counted.replace("item STRING", "k STRING")
    (place / "2.csv").write_text("9,2021-01-01 00:00:00,b,2\n", encoding="utf-8")
    with pytest.raises(BackfillError, match=r"it decides which window contains a row.*--order-by bid=COLUMN"):
        run(counted, language="python")
    run(counted, language="python", order_by={"": "seq"})
    assert lines(tmp_path / "out") == ["b,3"]
