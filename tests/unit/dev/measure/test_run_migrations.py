"""Migrations that were run on a real Flink: how rows are judged, and what the committed results hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import results, run_migrations
from dev.measure.migration_cases import load, measured, own_pairs, variants
from dev.measure.migration_tables import files, shares, table_of_runs, table_of_shares
from dev.measure.migration_verdict import Columns, Runs, columns_of, fault, keys, matters
from dev.measure.pairs import Pair
from dev.measure.pairs import Side as Script
from tests.support.nightly import mostly_nightly

TABLE = "CREATE TABLE orders (a STRING, b BIGINT, c STRING) WITH ('connector' = 'filesystem');\n"
SINK = "CREATE TABLE out ({}) WITH ('connector' = '{}'{});\nINSERT INTO out "
NOT_TOLD = {
    "oa-input-col-swap",
    *(f"case-a-column-comes-to-both-sides-of-a-temporal-join{variant}" for variant in ("", "-rocksdb", "-compressed")),
}
"""Right, over rows among which the stored ones make no difference."""
NOT_RUN = {
    # Rows of ours do not come through in place of a generator's.
    "x-stmtset-add-unrelated-first",
    "x-stmtset-add-unrelated-last",
}
PAGE = Path(__file__).parents[4] / "docs" / "state-migration-reference.md"


def sides(old: str, new: str) -> tuple[Side, Side]:
    return Side(TABLE + old, engine="flink"), Side(TABLE + new, engine="flink")


def test_a_column_that_the_old_query_had_too_goes_on() -> None:
    query = "SELECT {} FROM orders GROUP BY a;"
    (columns,) = columns_of(*sides(query.format("a, SUM(b)"), query.format("MAX(c), SUM(b), a"))).values()
    assert columns == Columns(kept=((1, 1), (0, 2)), keys=(2,), metrics=(0,), values=())
    assert columns.whole is False


def test_where_a_session_begins_is_no_key_as_it_may_have_begun_before() -> None:
    head = TABLE.replace("c STRING)", "c STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)")
    query = (
        "SELECT a, window_start, window_end, SUM(b){}\n"
        "FROM TABLE({}(TABLE orders{}, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;"
    )
    for kind, partition, keys_told in (("SESSION", " PARTITION BY a", (0, 2)), ("TUMBLE", "", (0, 1, 2))):
        scripts = [head + query.format(more, kind, partition) for more in ("", ", MAX(c)")]
        (columns,) = columns_of(*(Side(script, engine="flink") for script in scripts)).values()
        assert columns is not None
        assert (columns.keys, columns.metrics) == (keys_told, (4,))


def test_a_column_of_stored_rows_is_no_metric() -> None:
    rank = "SELECT a, b{} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM orders) WHERE n = 1;"
    (columns,) = columns_of(*sides(rank.format(""), rank.format(", c"))).values()
    assert columns == Columns(kept=((0, 0), (1, 1)), keys=(0, 1), metrics=(), values=(2,))


def test_a_metric_over_another_column_of_a_union_is_another_one() -> None:
    query = "SELECT a, SUM(v), MAX({0}) FROM (SELECT a, b AS v, {0} FROM orders UNION ALL SELECT a, b, {0} FROM orders)"
    query = query.replace("MAX({0})", "MAX(x)").replace("{0}", "{0} AS x") + " GROUP BY a;"
    (columns,) = columns_of(*sides(query.format("b + 1"), query.format("b * b"))).values()
    assert columns == Columns(kept=((0, 0), (1, 1)), keys=(0,), metrics=(2,), values=())


def test_a_metric_over_what_a_ranking_hands_on_of_groups_counts_stored_ones() -> None:
    groups = "SELECT a, COUNT(*) AS n, MAX(b) AS x FROM orders GROUP BY a"
    ranked = f"SELECT *, ROW_NUMBER() OVER (ORDER BY n) AS r FROM ({groups})"
    query = f"SELECT n, {{}}(x) FROM ({ranked}) WHERE r <= 2 GROUP BY n;"
    (columns,) = columns_of(*sides(query.format("SUM"), query.format("MAX"))).values()
    assert columns == Columns(kept=((0, 0),), keys=(0,), metrics=(), values=())


def test_a_sink_of_which_the_old_script_knew_nothing() -> None:
    query = "SELECT a, SUM(b) FROM orders GROUP BY a;"
    head = SINK.format("a STRING, b BIGINT", "kafka", ", 'topic' = 'sums'")
    assert columns_of(*sides(query, head + query)) == {"sums": None}


ADDED = Columns(kept=((0, 0), (1, 1)), keys=(0,), metrics=(2,), values=())
EXPECTED = ["s -U[x, 1, 9]", "s +U[x, 3, 9]", "s +I[z, 5, 5]"]
ALONE = ["s +I[x, 2, 7]", "s +I[z, 5, 5]"]
GOOD = ["s -U[x, 1, null]", "s +U[x, 3, 7]", "s +I[z, 5, 5]"]


def runs(restored: list[str], expected: list[str] = EXPECTED, alone: list[str] = ALONE) -> Runs:
    return Runs(["s +I[x, 1]"], restored, ["s +I[x, 1, 9]"], expected, alone)


def test_what_goes_on_equals_all_rows_and_what_begins_the_later_ones() -> None:
    assert fault(runs(GOOD), ADDED) == ""
    assert matters(runs(GOOD), ADDED)
    assert keys(runs(GOOD), ADDED) == 2


@pytest.mark.parametrize(
    ("restored", "said"),
    [
        (ALONE, "what goes on differs"),
        (GOOD[:2], "what goes on differs"),
        ([*GOOD[:1], "s +U[x, 3, 9]", *GOOD[2:]], r"metrics of x begin as \['9'\]"),
        ([*GOOD, "s -D[z, 5, 5]"], "what goes on differs"),
    ],
    ids=["state lost", "a key lost", "the new metric holds what it has not seen", "a row taken back"],
)
def test_wrong_rows_are_found(restored: list[str], said: str) -> None:
    assert re.match(said, fault(runs(restored), ADDED))


def test_a_window_without_later_rows_holds_nothing_of_a_metric_that_begins() -> None:
    window = ["s +I[x, 3, null]"], ["s +I[x, 3, 9]"]
    assert fault(runs(window[0], window[1], []), ADDED) == ""
    assert "begin as ['9']" in fault(runs(window[1], window[1], []), ADDED)


def test_a_start_without_state_proves_nothing_where_it_looks_alike() -> None:
    assert not matters(runs(GOOD, alone=EXPECTED), ADDED)


def test_columns_that_come_to_stored_rows_are_null_in_them_alone() -> None:
    rows = Columns(kept=((0, 0),), keys=(0,), metrics=(), values=(1,))
    expected, alone = ["s +I[x, p]", "s +I[y, q]"], ["s +I[y, q]"]
    assert fault(Runs([], ["s +I[x, null]", "s +I[y, q]"], [], expected, alone), rows) == ""
    assert "come to y" in fault(Runs([], ["s +I[x, null]", "s +I[y, null]"], [], expected, alone), rows)
    assert "come to x" in fault(Runs([], ["s +I[x, q]", "s +I[y, q]"], [], expected, alone), rows)


def test_a_key_may_come_of_stored_rows_and_of_later_ones() -> None:
    rows = Columns(kept=((0, 0),), keys=(0,), metrics=(), values=(1,))
    expected, alone = ["s +I[x, p]", "s +I[x, q]"], ["s +I[x, q]"]
    assert fault(Runs([], ["s +I[x, null]", "s +I[x, q]"], [], expected, alone), rows) == ""
    assert "come to x" in fault(Runs([], ["s +I[x, null]", "s +I[x, null]"], [], expected, alone), rows)


def test_where_no_metric_goes_on_an_aggregation_may_begin_anew() -> None:
    begun = Columns(kept=((0, 0),), keys=(0,), metrics=(1,), values=())
    expected, alone = ["s +I[x, 9]", "s +I[y, 5]"], ["s +I[y, 5]"]
    assert fault(Runs([], alone, [], expected, alone), begun) == ""
    assert fault(Runs([], ["s +I[x, null]", "s +I[y, 5]"], [], expected, alone), begun) == ""
    assert "goes on differs" in fault(Runs([], [], [], expected, alone), begun)


def test_a_new_sink_holds_later_rows_alone_where_its_source_is_read_already() -> None:
    found = Runs([], ["s +I[x]"], ["s +I[y]"], ["s +I[x]"], ["s +I[x]"])
    assert fault(found, None) == ""
    assert fault(found, None, later_rows_alone=False)


@pytest.mark.parametrize(
    "row", ['t +I[{"a":"x","s":3,"m":7}]', "t +I[x,3,7]", "t +I[(x,3,7)]", 't +I[{"a":"x"}: {"a":"x","s":3,"m":7}]']
)
def test_rows_of_records_files_and_tables_have_columns_too(row: str) -> None:
    printed = row.replace("7", "null")
    found = Runs([], [row], [], [printed], [row])
    assert fault(found, Columns(((0, 0), (1, 1)), (0,), (2,), ())) == ""


def test_every_change_has_a_name_of_its_own_and_its_rows_are_there() -> None:
    pairs = [*own_pairs("2.3")]
    pairs += [each.pair for each in variants(pairs)]
    assert len(pairs) == len({pair.id for pair in pairs}) > 150


def test_a_variant_is_the_same_change_under_other_settings_and_rows(tmp_path: Path) -> None:
    file = tmp_path / "variants.toml"
    file.write_text(
        '[two]\nabout = "two subtasks"\npairs = "one"\n'
        'old = { p = "1" }\nboth = { q = "2" }\nrows = { orders = "busy" }\n'
    )
    side = Script("CREATE TABLE o () WITH ('path' = 'file://DATA/orders');")
    (found,) = variants([Pair("one", "", "it", side, side), Pair("other", "", "it", side, side)], file)
    assert (found.pair.id, found.pair.about) == ("one-two", "it; two subtasks")
    assert found.pair.old.settings == (("p", "1"), ("q", "2"))
    assert found.pair.new.settings == (("q", "2"),)
    assert "file://DATA/busy'" in found.pair.new.script
    assert found.pair.reference == Script(found.pair.new.script)


def test_nothing_matches() -> None:
    with pytest.raises(FixtureError, match="no change to migrate matches 'nothing-of-the-kind'"):
        load("1.20", "nothing-of-the-kind")


def entries(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["pairs"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("file", mostly_nightly(files()), ids=lambda file: file.stem)
def test_nothing_that_was_run_is_wrong(file: Path) -> None:
    assert {entry["id"]: entry["fault"] for entry in entries(file) if entry["outcome"] != run_migrations.RIGHT} == {}
    version = results.read(file)["flink"]
    assert [entry for entry in entries(file) if run_migrations.judged_again(entry, version) != entry] == [], (
        "judged by rows"
    )
    # A rewritten operator whose state makes no difference to these rows would prove nothing.
    untold = [e["id"] for e in entries(file) if "rewritten field by field" in e["states"].values() and not e["told"]]
    assert {*untold} <= NOT_TOLD


def test_the_page_shows_what_was_run() -> None:
    assert table_of_runs() in PAGE.read_text("utf-8"), (
        "python -m dev.measure migration-tables prints the table of today"
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_every_measured_restore_that_is_migratable_was_migrated() -> None:
    path = results.newest("2.3", run_migrations.NAMES[0])
    assert path is not None
    assert {each.pair.id for each in measured() if not results.holds(path, each.pair)} == NOT_RUN


@pytest.mark.nightly
@pytest.mark.slow
def test_the_page_shows_the_shares_that_a_migration_keeps() -> None:
    found = shares()
    assert table_of_shares(found) in PAGE.read_text("utf-8")
    assert all(counts.total() > 50 for counts in found.values())
