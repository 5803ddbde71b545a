"""Flink's own planner on each line that has one: what it refuses, and which parts of Flink the probe of state needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.checker import check_planned
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.local_flink import jars
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.planner.daemon import Daemon, close_all, daemon
from airflow_flinkcompat.planner.installation import LINES, Installation, find, install
from airflow_flinkcompat.planner.questions import plan, predict
from tests.support.nightly import mostly_nightly

pytestmark = pytest.mark.slow

TABLES = """\
SET 'parallelism.default' = '1';
CREATE TABLE orders (k STRING, v BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t) WITH (
  'connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json', 'source.monitor-interval' = '1 s');
CREATE TABLE totals (k STRING, x BIGINT) WITH ('connector' = 'print');
"""
KEYED = TABLES.replace("x BIGINT", "x BIGINT, PRIMARY KEY (k) NOT ENFORCED")
GROUP = "INSERT INTO totals SELECT k, {} FROM orders GROUP BY k"
WINDOW = (
    "INSERT INTO totals SELECT k, {} FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(t), INTERVAL '1' {})) "
    "GROUP BY k, window_start, window_end"
)


@pytest.fixture(scope="module", params=mostly_nightly([*LINES]))
def flink(request: pytest.FixtureRequest) -> Iterator[Installation]:
    install(request.param)
    yield find(request.param)
    close_all()


def side(flink: Installation, job: str, tables: str = TABLES) -> Side:
    return Side(f"{tables}{job};\n", engine="flink", engine_version=flink.line.name, source="job.sql")


def predicted(flink: Installation, old: str, new: str) -> tuple[RestoreEffect | None, str]:
    said = predict(side(flink, old), side(flink, new), flink, flink).prediction
    assert said.doubt == ""
    refusal = said.refusal
    return (None, "") if refusal is None else (refusal.effect, refusal.operator)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (GROUP.format("SUM(v)"), GROUP.format("SUM(v) + 1"), (None, "")),
        (GROUP.format("SUM(v)"), GROUP.format("MAX(v)"), (None, "")),  # the same layout with another meaning
        (
            GROUP.format("SUM(v)"),
            GROUP.format("CAST(AVG(v) + COUNT(*) AS BIGINT)"),
            (RestoreEffect.REFUSED_AT_RESTORE, "GroupAggregate"),
        ),
        (
            GROUP.format("SUM(v)"),
            GROUP.format("SUM(v)").replace("orders", "(SELECT k, v FROM orders UNION ALL SELECT k, v + 1 FROM orders)"),
            (RestoreEffect.REFUSED_AT_SUBMIT, "GroupAggregate"),
        ),
        (WINDOW.format("SUM(v)", "HOUR"), WINDOW.format("SUM(v)", "MINUTE"), (None, "")),
    ],
    ids=["output", "meaning", "layout", "operator", "size"],
)
def test_how_a_restore_ends(
    flink: Installation, old: str, new: str, expected: tuple[RestoreEffect | None, str]
) -> None:
    assert predicted(flink, old, new) == expected


def test_every_operator_is_started_in_a_task_of_its_own(flink: Installation) -> None:
    """The probe calls internal classes of Flink: where one changes, states are missing here."""
    (job,) = plan(side(flink, WINDOW.format("SUM(v)", "HOUR")), flink).jobs
    found = {each.name: each for each in job.operators}
    window = found["GlobalWindowAggregate"]
    assert (window.keeps, window.basis) == ("yes", "opened")
    assert window.states is not None
    assert {"window-aggs", "_timer_state/event_window-timers", "_timer_state/processing_window-timers"} <= {
        *window.states
    }
    assert [each.basis for each in job.operators if each.name.startswith("Source")] == ["source"]
    assert found["LocalWindowAggregate"].keeps == "no"
    assert job.plan["nodes"]
    assert len(job.savepoint) > 1_000


def test_an_answer_names_parallelism_and_chain_of_each_operator(flink: Installation) -> None:
    tables = KEYED.replace("'print'", "'print', 'sink.parallelism' = '3'")
    sets = "SET 'parallelism.default' = '2';\nSET 'pipeline.max-parallelism' = '64'"
    statements = [each for each in f"{tables}{sets};\n{GROUP.format('SUM(v)')}".split(";\n") if each]
    (job,) = daemon(flink).ask({"statements": statements, "settings": {}})["jobs"]
    source, calc, group, sink = (
        next(each for each in job["operators"] if each["name"].startswith(name))
        for name in ("Source: orders", "Calc", "GroupAggregate", "Sink: totals")
    )
    assert [each["parallelism"] for each in (source, calc, group, sink)] == [2, 2, 2, 3]
    assert {each["max_parallelism"] for each in (source, calc, group, sink)} == {64}
    assert source["chain"] == calc["chain"]
    assert len({each["chain"] for each in (calc, group, sink)}) == 3


def test_a_refusal_has_its_place(flink: Installation) -> None:
    refusal = plan(side(flink, "INSERT INTO totals\n  SELECT k, nope FROM orders"), flink).refusal
    assert refusal is not None
    assert (refusal.message, refusal.conclusive) == ("Column 'nope' not found in any table", True)
    assert refusal.place is not None
    assert (str(refusal.place.source), refusal.place.line, refusal.place.column) == ("job.sql", 6, 13)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO totals\n  SELECT k, /* ; */ @nope FROM orders",
        "-- first\n/* then */ INSERT INTO totals\n\tSELECT k, @nope FROM orders",
        "INSERT INTO totals SELECT k,\n @SELECT v FROM orders",
        "BEGIN STATEMENT SET;\nINSERT INTO totals SELECT k, v FROM orders;\n-- c;\nINSERT INTO totals\n"
        " SELECT k, @nope FROM orders;\nEND",
        "EXECUTE STATEMENT SET BEGIN\n INSERT INTO totals SELECT k, v FROM orders;\n INSERT INTO totals\n"
        " SELECT k, @nope FROM orders;\nEND",
    ],
    ids=["lines", "comments", "syntax", "set", "execute-set"],
)
def test_a_refusal_in_many_lines_has_its_place(flink: Installation, text: str) -> None:
    before, _, after = (TABLES + text).partition("@")
    script = Side(f"{before}{after};\n", engine="flink", engine_version=flink.line.name, source="job.sql")
    refusal = plan(script, flink).refusal
    assert refusal is not None
    assert refusal.place is not None
    assert (refusal.place.line, refusal.place.column) == (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
    assert "line" not in refusal.message


LAKE = "CREATE CATALOG lake WITH ('type' = 'paimon', 'warehouse' = 's3://nowhere')"
NAMED = (
    "DROP TABLE IF EXISTS lake.d.t",
    "DROP TABLE lake.d.t",
    "DROP TABLE not_declared_here",
    "DROP VIEW IF EXISTS v",
    "DROP DATABASE IF EXISTS lake.d CASCADE",
    "DROP FUNCTION f",
    "ALTER TABLE totals SET ('print-identifier' = 'a')",
    "ALTER TABLE lake.d.t SET ('a' = 'b')",
    "ALTER TABLE IF EXISTS lake.d.t ADD z INT",
    "ALTER VIEW lake.d.v RENAME TO w",
    "ALTER DATABASE lake.d SET ('a' = 'b')",
    "CALL lake.sys.compact('d.t')",
    "UPDATE totals SET x = 1 WHERE k = 'a'",
    "DELETE FROM lake.d.t WHERE k = 'a'",
    "TRUNCATE TABLE totals",
    "ANALYZE TABLE orders COMPUTE STATISTICS",
    "EXECUTE PLAN '/nowhere.json'",
    "COMPILE PLAN '/nowhere.json' FOR INSERT INTO totals SELECT k, v FROM orders",
    "ADD JAR '/nowhere.jar'",
    "LOAD MODULE hive",
    "CREATE TABLE made WITH ('connector' = 'print') AS SELECT k FROM orders",
    "CREATE TABLE lake.d.made AS SELECT k, COUNT(*) AS c FROM orders GROUP BY k",
    "CREATE OR REPLACE TABLE made WITH ('connector' = 'print') AS SELECT v FROM orders",
)


def test_statements_that_change_what_lasts_are_not_run_but_named(flink: Installation) -> None:
    passed = "SHOW TABLES;\nUSE MODULES core;\nCREATE TEMPORARY VIEW v AS SELECT k FROM orders;\nDROP TEMPORARY VIEW v"
    script = plan(side(flink, ";\n".join((LAKE, passed, *NAMED, GROUP.format("SUM(v)")))), flink)
    assert script.refusal is None
    assert script.lasting == NAMED
    assert script.catalogs == {"lake": "paimon"}
    keyed = ["GroupAggregate" in {each.name for each in job.operators} for job in script.jobs]
    assert keyed == [False, True, False, True]  # three tables are made by a query


def test_a_drop_in_a_lasting_catalog_proves_nothing(flink: Installation) -> None:
    table = TABLES.partition(";\n")[2].partition(";\n")[0]
    query = GROUP.format("SUM(v)")
    of_session = f"DROP TABLE IF EXISTS orders;\n{table}", "ALTER TABLE orders SET ('path' = '/elsewhere')"
    for before, first in (*(("", each) for each in of_session), (f"{LAKE};\n", "DROP TABLE IF EXISTS lake.d.t")):
        said = predict(side(flink, before + query), side(flink, f"{before}{first};\n{query}"), flink, flink).prediction
        assert (said.refusal, said.doubt) == (None, "")
        assert bool(said.unproven) is bool(before)


def test_a_script_sets_the_runtime_mode_of_its_session(flink: Installation) -> None:
    few = "CREATE TABLE few (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '/none', 'format' = 'csv')"
    query = "INSERT INTO totals SELECT k, SUM(v) FROM few GROUP BY k"
    script = plan(side(flink, f"SET 'execution.runtime-mode' = 'batch';\n{few};\n{query}"), flink)
    assert (script.refusal, len(script.jobs)) == (None, 1)


@pytest.mark.parametrize("reset", ["RESET '{}'", "RESET"])
def test_reset_takes_settings_back_for_later_jobs(flink: Installation, reset: str) -> None:
    given = {
        "pipeline.max-parallelism": "64",
        "pipeline.operator-chaining.enabled": "false",
        "table.exec.state.ttl": "1 h",
    }
    query = GROUP.format("SUM(v)")
    sets, resets = ([each.format(key, value) for key, value in given.items()] for each in ("SET '{}' = '{}'", reset))
    width = "SET 'parallelism.default' = '1'"
    script = plan(side(flink, ";\n".join((query, *sets, query, *resets, width, query))), flink)
    before, set_, after = (
        (
            {each.max_parallelism for each in job.operators},
            len({each.chain for each in job.operators}) == len(job.operators),
            [state["ttl"] for node in job.plan["nodes"] for state in node.get("state", ())],
        )
        for job in script.jobs
    )
    assert before == after == ({-1}, False, ["0 ms"])
    assert set_ == ({64}, True, ["1 h"])


def test_what_alters_a_declared_table_wrongly_is_refused(flink: Installation) -> None:
    refusal = plan(side(flink, "ALTER TABLE totals DROP nope"), flink).refusal
    assert refusal is not None
    assert refusal.conclusive


LOOKED_UP = (
    "INSERT INTO totals SELECT {} FROM (SELECT *, PROCTIME() AS p FROM orders) AS o "
    "JOIN names FOR SYSTEM_TIME AS OF o.p AS c ON o.k = c.k"
)
NAMES = "CREATE TABLE names (k STRING, n BIGINT) WITH ('connector' = 'elsewhere'{});\n"


@pytest.mark.parametrize(
    ("columns", "option", "agree"),
    [
        ("o.k, n + 1", "", True),
        ("o.k, n + o.v", "", False),  # an asynchronous one keeps the rows that wait, now with v
        ("o.k, n", ", 'lookup.async' = 'true'", True),
        ("/*+ LOOKUP('table'='c', 'async'='false') */ o.k, n", "", False),
    ],
    ids=["output", "waiting-row", "option", "hint"],
)
def test_a_lookup_by_a_stand_in_counts_where_both_ways_agree(
    flink: Installation, columns: str, option: str, agree: bool
) -> None:
    old = side(flink, LOOKED_UP.format("o.k, n"), TABLES + NAMES.format(""))
    new = side(flink, LOOKED_UP.format(columns), TABLES + NAMES.format(option))
    said = predict(old, new, flink, flink)
    assert said.prediction.stand_ins == ("elsewhere",)
    assert said.prediction.doubt == "" if agree else "depends on elsewhere" in said.prediction.doubt
    if option:
        report = check_planned(old, new, said.prediction, said.plans)
        assert report.outcome is not Outcome.COMPATIBLE


def test_a_lookup_that_the_catalogue_knows_is_no_guess(flink: Installation) -> None:
    faker = TABLES + NAMES.format("").replace("elsewhere", "faker")
    old, new = (side(flink, LOOKED_UP.format(each), faker) for each in ("o.k, n", "o.k, n + o.v"))
    said = predict(old, new, flink, flink).prediction
    assert (said.stand_ins, said.lookups, said.doubt, said.refusal) == (("faker",), (), "", None)


def test_a_jdbc_dialect_without_a_jar_has_a_stand_in() -> None:
    flink = replace(install("2.3"), jars=(jars.fetch("flink-connector-jdbc-core"),))
    written = "'jdbc', 'url' = 'jdbc:mysql://db/shop', 'table-name' = 'totals'"
    script = plan(side(flink, GROUP.format("SUM(v)"), KEYED.replace("'print'", written)), flink)
    assert (script.refusal, list(script.stand_ins.values()), script.guessed) == (None, ["jdbc:mysql"], frozenset())


@pytest.mark.parametrize(("line", "jar"), [("1.20", "-1.19"), ("2.3", "")])
@pytest.mark.parametrize(
    "rates",
    ["'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'", "'kafka', 'format' = 'debezium-json'"],
    ids=["upsert-kafka", "debezium"],
)
def test_a_stand_in_of_kafka_is_planned_as_its_connector(line: str, jar: str, rates: str) -> None:
    """A pushed watermark and a left-out ChangelogNormalize change the OperatorIDs of a temporal join."""
    flink = install(line)
    declared = (
        "CREATE TABLE rates (c STRING, r BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t, PRIMARY KEY (c) NOT ENFORCED) "
        f"WITH ('connector' = {rates}, 'topic' = 'rates', "
        "'properties.bootstrap.servers' = 'b:9092', 'properties.group.id' = 'g');\n"
    )
    job = "INSERT INTO totals SELECT o.k, r FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.t ON o.k = rates.c"
    whole = replace(flink, jars=(jars.fetch(f"flink-sql-connector-kafka{jar}"),))
    script, by_connector = (plan(side(flink, job, TABLES + declared), each) for each in (flink, whole))
    assert (script.refusal, script.guessed, by_connector.stand_ins) == (None, frozenset(), {})
    assert [each.id for each in script.jobs[0].operators] == [each.id for each in by_connector.jobs[0].operators]


def test_stand_ins_are_asked_in_variants_only_where_those_may_differ(
    flink: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Mapping[str, Any]] = []
    ask = Daemon.ask
    monkeypatch.setattr(Daemon, "ask", lambda self, question: asked.append(question) or ask(self, question))
    query = GROUP.format("COUNT(*)")
    for tables, questions in (
        (TABLES, 2),
        (TABLES.replace("'print'", "'absent'"), 2),  # a sink without a key takes what it is asked to
        (KEYED.replace("'print'", "'absent'"), 8),
        (TABLES.replace("'filesystem'", "'absent'"), 8),
        (TABLES.replace("'filesystem'", "'faker'"), 2),  # the catalogue knows the abilities of its source
        (KEYED.replace("'print'", "'starrocks'"), 2),
    ):
        asked.clear()
        same = side(flink, query, tables)
        assert predict(same, same, flink, flink).prediction.doubt == ""
        assert len(asked) == questions


def test_state_is_read_whatever_backend_the_script_sets(flink: Installation) -> None:
    settings = (
        "SET 'state.backend.type' = 'rocksdb';\nSET 'state.backend.changelog.enabled' = 'true';\n"
        "SET 'table.exec.async-state.enabled' = 'true';\n"
    )
    old, fits, other = (settings + GROUP.format(each) for each in ("SUM(v)", "SUM(v) + 1", "CAST(AVG(v) AS BIGINT)"))
    assert predicted(flink, old, fits) == (None, "")
    assert predicted(flink, old, other) == (RestoreEffect.REFUSED_AT_RESTORE, "GroupAggregate")


def test_where_parallelism_is_not_known_both_kinds_of_chains_are_planned(flink: Installation) -> None:
    tables = TABLES.partition("\n")[2]
    old, new = (side(flink, GROUP.format(each), tables) for each in ("SUM(v)", "SUM(v) + 1"))
    assert predict(old, new, flink, flink).prediction.doubt == ""


@pytest.mark.nightly
@pytest.mark.parametrize(("before", "after"), [("1.19", "2.3"), ("1.20", "2.2"), ("2.0", "2.3"), ("2.2", "2.3")])
def test_a_savepoint_of_another_line_is_restored_in_the_new_one(before: str, after: str) -> None:
    older, newer = install(before), install(after)
    for first, second, expected in (
        ("SUM(v)", "SUM(v) + 1", None),
        ("SUM(v)", "CAST(AVG(v) + COUNT(*) AS BIGINT)", RestoreEffect.REFUSED_AT_RESTORE),
    ):
        old, new = side(older, GROUP.format(first)), side(newer, GROUP.format(second))
        said = predict(old, new, older, newer).prediction
        assert ((said.refusal and said.refusal.effect), said.doubt) == (expected, "")


def test_a_stand_in_for_a_catalog_takes_any_database(flink: Installation) -> None:
    catalog = "CREATE CATALOG shared WITH ('type' = 'iceberg');\nUSE CATALOG shared;\nCREATE DATABASE d"
    query = "INSERT INTO d.t SELECT k FROM default_catalog.default_database.orders"
    declared = "CREATE TABLE d.t (k STRING) WITH ('connector' = 'print')"
    script = plan(side(flink, f"{catalog};\n{declared};\n{query}"), flink)
    assert (script.refusal, len(script.jobs)) == (None, 1)


@pytest.mark.parametrize("name", ["orders", "default_catalog.default_database.orders"])
def test_columns_of_a_temporary_table_keep_their_places(flink: Installation, name: str) -> None:
    """Fields of CSV go by place, so columns that change places are other columns; a plan may not show them."""
    old, new = (
        Side(
            f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '/in', "
            "'format' = 'csv');\nCREATE TEMPORARY TABLE sums (a BIGINT, b BIGINT) WITH ('connector' = 'print');\n"
            "INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;",
            engine="flink",
            engine_version=flink.line.name,
        )
        for columns in ("a BIGINT, b BIGINT", "b BIGINT, a BIGINT")
    )
    planned = predict(old, new, flink, flink)
    for script in (planned.old, planned.new):
        kinds = ("scanTableSource", "dynamicTableSink")
        tables = [node[kind]["table"] for node in script.jobs[0].plan["nodes"] for kind in kinds if kind in node]
        assert [len(each["resolvedTable"]["schema"]["columns"]) for each in tables] == [2, 2]
    report = check_planned(old, new, planned.prediction, planned.plans)
    assert report.outcome is not Outcome.COMPATIBLE


def test_a_task_whose_source_may_have_ended_stays_as_it_is(flink: Installation) -> None:
    """Measured on 2.3: Flink refuses a task of finished operators and others at submit."""
    seeds = (
        "CREATE TABLE seeds (k STRING, x BIGINT) WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv')"
    )
    both = f"{{}};\n{seeds};\nEXECUTE STATEMENT SET BEGIN {GROUP.format('SUM(v)')}; INSERT INTO seen {{}}; END"
    seen = "CREATE TABLE seen (k STRING, x BIGINT) WITH ('connector' = 'print')"
    unnested = "SELECT UPPER(k), u.m FROM seeds CROSS JOIN UNNEST(ARRAY[x, x]) AS u (m)"
    old = side(flink, both.format(seen, "SELECT UPPER(k), x FROM seeds"))
    for table, query, unproven in (
        (seen, "SELECT LOWER(k), x FROM seeds", False),
        (seen, unnested, True),
        (seen.replace("BIGINT", "BIGINT NOT NULL"), "SELECT UPPER(k), x FROM seeds", True),
    ):
        said = predict(old, side(flink, both.format(table, query)), flink, flink).prediction
        assert (said.refusal, bool(said.unproven)) == (None, unproven)
