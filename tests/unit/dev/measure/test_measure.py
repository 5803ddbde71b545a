"""The parts of ``python -m dev.measure pairs`` that need no Flink."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_flinkcompat.deploy.errors import TargetError
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import evidence, progress, pyflink, results
from dev.measure import run_pairs as command
from dev.measure.measured import load
from dev.measure.pair_runner import PairRunner, Savepoint, _without
from dev.measure.pairs import (
    CONNECTORS,
    PROGRAM_HEAD,
    PROGRAMS,
    UPGRADES,
    VERSIONS,
    Pair,
    load_base,
    load_connector_pairs,
    load_pairs,
    parse_pairs,
)
from dev.measure.results import Measured

TABLE = (
    "CREATE TABLE orders (a STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('path' = 'file://DATA/orders');\n"
)
ORDERS = {"orders": (progress.Feed("orders"),)}
GOOD = f"""\
-- area: CUMULATE
--- given
{TABLE}--- case: step-halved
-- about: half the step
-- settings-new: table.exec.state.ttl=1 h
-- rows-before: 3
-- on-this-data: why
-- flink: 2.3
--- old
SELECT 1;
--- new
SELECT 2;
"""


def test_a_pair_holds_what_its_case_says() -> None:
    (pair,) = parse_pairs(GOOD, "cumulate.sql")
    assert (pair.id, pair.area, pair.about) == ("cumulate-step-halved", "CUMULATE", "half the step")
    assert pair.old.script == TABLE + "SELECT 1;\n"
    assert pair.new.settings == (("table.exec.state.ttl", "1 h"),)
    assert pair.old.settings == ()
    assert (pair.old.rows_before, pair.new.rows_before) == (3, 0)
    assert (pair.caveat, pair.line) == ("why", "2.3")


def test_a_pair_of_one_line_is_not_run_on_the_other(tmp_path: Path) -> None:
    (tmp_path / "cumulate.sql").write_text(GOOD)
    assert len(load_pairs("2.3", folder=tmp_path)) == 1
    with pytest.raises(FixtureError, match="contains no pair"):
        load_pairs("1.20", folder=tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-- about: half the step\n", "", r"x\.sql:4: '-- about: …' is missing"),
        ("case: step-halved", "case: Step halved", r"x\.sql:4: a case is titled like step-halved"),
        ("rows-before: 3", "rows-before: three", r"x\.sql:7: rows-before is 'three'"),
        ("-- area: CUMULATE\n", "", r"x\.sql:1: '-- area: …' is missing"),
    ],
)
def test_malformed_files_are_named_by_line(old: str, new: str, message: str) -> None:
    with pytest.raises(FixtureError, match=message):
        parse_pairs(GOOD.replace(old, new), "x.sql")


def test_every_pair_file_can_be_read_and_its_rows_are_there() -> None:
    older = (pair for pair in load_pairs("1.20") if pair.line == "1.20")
    pairs = [*load_pairs("2.3"), *older, *load_pairs("2.3", folder=UPGRADES)]
    assert len({pair.id for pair in pairs}) == len(pairs)
    for pair in pairs:
        for side in (pair.old, pair.new):
            for phase in ("before", "after"):
                assert sum(progress.arrival(side.script, phase).rows.values()) > 5, pair.id


def test_most_scripts_of_the_upgrades_stay_as_they_are() -> None:
    pairs = load_pairs("2.3", folder=UPGRADES)
    unchanged = {pair.id for pair in pairs if pair.old.script == pair.new.script}
    said = {pair.id for pair in pairs if pair.about.endswith(", nothing changed")}
    assert unchanged - said == {"upgrade-other-other-key-kept", "upgrade-edit-time-to-live"}  # a setting changes
    assert len(unchanged) >= 40
    assert len(pairs) - len(unchanged) >= 10


def test_pairs_over_connectors_read_rows_that_are_there() -> None:
    pairs = load_connector_pairs()
    assert len({pair.id for pair in pairs}) == len(pairs) > 200
    for pair in pairs:
        for side in (pair.old, pair.new):
            assert progress.tables_read(side.script) or progress.ends_by_itself(side.script), pair.id
        changed = (pair.old.script, pair.old.settings) != (pair.new.script, pair.new.settings)
        assert changed is ("-unchanged" not in pair.id), pair.id


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[kafka-source.cases.topic-changed]\nchange",
            "[kafka-source.cases.topic-changed]\nchanges",
            "not a key of a case",
        ),
        ("{ \"'topic' = 'orders'\" =", "{ \"'topic' = 'bought'\" =", "the script does not contain"),
    ],
)
def test_a_malformed_pair_over_connectors_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "connectors.toml"
    file.write_text(CONNECTORS.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(FixtureError, match=f"kafka-source.*topic-changed: .*{message}"):
        load_connector_pairs(file=file)


def test_a_side_may_be_a_program() -> None:
    (pair,) = parse_pairs(GOOD.replace("SELECT 1;", '#!python\nt_env.from_path("orders").execute()'), "x.pairs")
    assert (pair.old.language, pair.new.language) == ("python", "sql")
    ast.parse(pair.old.script)
    assert pair.old.script.startswith(PROGRAM_HEAD)
    assert f't_env.execute_sql("""\n{TABLE.strip().rstrip(";")}\n""")' in pair.old.script
    assert progress.tables_read(pair.old.script) == progress.tables_read(pair.new.script) == ORDERS


def test_a_table_without_rows_of_its_own_does_not_take_those_of_the_next_one() -> None:
    script = "CREATE TABLE s (a INT) WITH ('connector' = 'print')\n" + TABLE
    assert progress.tables_read(script) == ORDERS


def test_programs_are_restored_over_enough_rows_of_each_key() -> None:
    """With fewer, wrong state of windows over rows stays invisible (measured)."""
    for pair in load_pairs("2.3", folder=PROGRAMS):
        for side in (pair.old, pair.new):
            for (feed,) in progress.tables_read(side.script).values():
                keys = [Counter(line.partition(",")[0] for line in feed.lines(phase)) for phase in ("before", "after")]
                assert min(keys[0].values()) >= 7
                assert min(keys[1][key] for key in keys[0]) >= 8


def test_without_pyflink_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(pyflink.HOME_VARIABLE, str(tmp_path))
    with pytest.raises(pyflink.PyFlinkError, match="run `make pyflink`"):
        pyflink.environment()


def test_the_version_of_pyflink_is_the_one_that_is_installed() -> None:
    pinned = (Path(__file__).parents[4] / "constraints-pyflink.txt").read_text(encoding="utf-8").splitlines()
    assert f"apache-flink=={pyflink.VERSION}" in pinned
    assert VERSIONS["2.3"] == pyflink.VERSION


def test_nothing_matches() -> None:
    with pytest.raises(FixtureError, match="contains no pair that matches 'nosuch'"):
        load_pairs("2.3", "nosuch")


def test_what_is_due_ends_one_millisecond_before_its_latest_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "DATA", tmp_path)
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "before.csv").write_text("x,1970-01-01 00:00:02.000\ny,1970-01-01 00:00:01.000\n")
    (tmp_path / "orders" / "after.csv").write_text("x,1970-01-01 00:00:05.000\n")
    assert progress.arrival(TABLE, "before") == progress.Arrival({"orders": 2}, {"orders": 1999})
    assert progress.arrival(TABLE, "before", partitions=3).ends == {"orders": 1999}
    topic = TABLE.replace("'path' = 'file://DATA/orders'", "'topic' = 'orders'")
    assert progress.arrival(topic, "before", partitions=3).ends == {"orders": 999}
    assert progress.arrival(TABLE, "after") == progress.Arrival({"orders": 1}, {"orders": 4999})
    assert progress.arrival(TABLE.replace("WATERMARK FOR ts AS ts", "PRIMARY KEY (a)"), "after").ends == {}
    behind = TABLE.replace("AS ts", "AS ts - INTERVAL '1' SECOND")
    assert progress.arrival(behind, "before").ends == {"orders": 999}
    # What an operator holds back never comes to the sinks.
    assert progress.arrival(f"{TABLE}\n{progress.HELD_BACK}\n", "before").ends == {}


@pytest.mark.parametrize(
    ("read", "watermark", "unread", "late"),
    [
        ({}, 99, True, False),
        ({"orders": 2}, 99, True, False),
        ({"orders": 3}, 98, False, True),
        ({"orders": 3}, 99, False, False),
    ],
)
def test_what_is_due_of_a_table_that_is_read(read: dict[str, int], watermark: int, unread: bool, late: bool) -> None:
    arrived = progress.Arrival({"orders": 3, "unread": 7}, {"orders": 99, "unread": 200})
    seen = progress.Progress(read, watermark)
    assert (arrived.is_unread(seen), arrived.is_late(seen)) == (unread, late)
    assert arrived.beyond({"orders": 2}).rows == {"orders": 5, "unread": 7}


@pytest.mark.parametrize(
    ("restored", "expected", "outcome"),
    [
        (["t +I[x, 2]", "t +I[y, 1]"], ["t +I[y, 1]", "t +I[x, 2]"], results.RIGHT),
        (["t +I[x, 2]"], ["t +I[x, 3]"], results.WRONG),
        ([], ["t +I[x, 3]"], results.WRONG),
        (["t +I[x, 3]", "t +I[x, 3]"], ["t +I[x, 3]"], results.WRONG),
        (["s +I[x, 3]"], ["t +I[x, 3]"], results.WRONG),
        # An update in between that the other run did not see.
        (["t -U[x, 1]", "t +U[x, 2]", "t -U[x, 2]", "t +U[x, 3]"], ["t -U[x, 1]", "t +U[x, 3]"], results.RIGHT),
        (["t -U[x, 9]", "t +U[x, 3]"], ["t -U[x, 1]", "t +U[x, 3]"], results.UPSERT_ONLY),
    ],
)
def test_rows_are_judged(restored: list[str], expected: list[str], outcome: str) -> None:
    assert results.judge(restored, expected) == outcome


def test_all_rows_together_tell_where_only_one_side_fired_early() -> None:
    """The old SQL had printed nothing yet; the new one from scratch had fired early and takes that back."""
    restored, expected = ["t +I[x, 3]"], ["t -U[x, 1]", "t +U[x, 3]"]
    assert results.judge(restored, expected, old=[], before=["t +I[x, 1]"]) == results.RIGHT
    assert results.judge(restored, expected, old=["t +I[x, 2]"], before=["t +I[x, 1]"]) == results.UPSERT_ONLY


def entry(outcome: str, said: str, consequence: str | None = None, name: str = "a-pair") -> dict[str, Any]:
    return {"id": name, "outcome": outcome, "predicted": {"outcome": said, "consequence": consequence, "rules": []}}


@pytest.mark.parametrize(
    ("outcome", "said", "consequence", "word"),
    [
        (results.RIGHT, "compatible", None, "right"),
        (results.RIGHT, "unknown", None, "too careful"),
        (results.WRONG, "compatible", None, "UNSAFE"),
        (results.ON_THIS_DATA, "compatible", None, "UNSAFE"),
        (results.REFUSED_AT_SUBMIT, "compatible", None, "UNSAFE"),
        (results.REFUSED_AT_SUBMIT, "unknown", None, "doubted"),
        (results.REFUSED_AT_SUBMIT, "incompatible", "refused at submit", "right"),
        (results.REFUSED_AT_SUBMIT, "incompatible", "silently wrong rows", "caught"),
    ],
)
def test_prediction_beside_measurement(outcome: str, said: str, consequence: str | None, word: str) -> None:
    assert results.mark(entry(outcome, said, consequence)) == word


def test_the_summary_names_unsafe_misses() -> None:
    pairs = [
        entry(results.RIGHT, "compatible"),
        entry(results.RIGHT, "unknown"),
        entry(results.WRONG, "compatible", name="bad"),
    ]
    told = results.summary({"flink": "2.3.0", "date": "2026-01-01", "pairs": pairs})
    assert "Unsafe misses: 1 (bad). Recognised 1 of 2 restored right." in told


def test_a_pair_run_again_replaces_itself_only() -> None:
    old = {"flink": "2.3.0", "pairs": [entry("a", "unknown", name="one"), entry("b", "unknown", name="two")]}
    new = {"flink": "2.3.0", "pairs": [entry("c", "unknown", name="two")]}
    assert [(e["id"], e["outcome"]) for e in results.merge(old, new)["pairs"]] == [("one", "a"), ("two", "c")]


def test_results_name_the_line_that_took_the_savepoints(tmp_path: Path) -> None:
    (pair,) = parse_pairs(GOOD, "cumulate.sql")
    path = tmp_path / "upgrade-1.20-to-2.3-2026-01-01.json"
    run = results.Run("2.3.0", "2026-01-01", "1.20.3")
    results.Writer(path, run, False).add(results.entry_of(Measured(pair, "SELECT 1", "SELECT 2", results.WRONG)))
    (restore,) = load(str(path))
    assert (restore.old_version, restore.version) == ("1.20.3", "2.3.0")
    said = results.judged(results.read(path)["pairs"][0], "2.3.0")
    assert "engine-version-changed" in {finding.rule for finding in said.findings}
    assert evidence.build([path]) == {pair.id: {"1.20 to 2.3": results.WRONG}}


def test_a_run_of_the_base_set_goes_on_where_the_last_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a line on which not every pair is run; what is asked for by its id is run again."""
    first, *rest = load_base("2.2")
    path = tmp_path / "flink-2.2-2026-01-01.json"
    results.write({"flink": "2.2.1", "date": "2026-01-01", "pairs": [{"id": first.id}]}, path)
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "CACHE", tmp_path / "cache")
    begun: list[list[str]] = []

    def measured(options: object, folder: Path, pairs: list[Pair], add: object) -> list[str]:
        begun.append([pair.id for pair in pairs])
        return []

    monkeypatch.setattr(command, "_measured", measured)
    for arguments in (["--flink", "2.2"], ["--flink", "2.2", "--only", f"^{first.id}$"]):
        command._run(command._parser().parse_args(arguments))
    assert begun == [[pair.id for pair in rest], [first.id]]


@pytest.mark.parametrize("arguments", [["--flink-old", "2.3"], ["--flink-old", "1.20", "--connectors"]])
def test_what_is_not_run_between_two_lines_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(arguments) == 2
    assert "--flink-old must differ from --flink" in capsys.readouterr().err


def test_that_the_new_line_does_not_plan_a_script_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    (pair,) = parse_pairs(GOOD, "cumulate.sql")
    said = ["ValidationException: ON CONFLICT is required", "the SQL Gateway does not answer"]
    monkeypatch.setattr(PairRunner, "_restored", lambda *_: fail(TargetError(said.pop(0))))
    bench, left = PairRunner.__new__(PairRunner), Savepoint("file:/savepoint", Path(), (), (), pair.old)
    measured = bench.restore(pair, left)
    assert (measured.outcome, measured.exception) == (
        results.NOT_PLANNED,
        "ValidationException: ON CONFLICT is required",
    )
    with pytest.raises(TargetError, match="does not answer"):
        bench.restore(pair, left)


@pytest.mark.parametrize(
    ("began", "told"),
    [(None, "restored from nothing"), ("file:/savepoint-2", "restored from file:/savepoint-2 instead of")],
)
def test_a_job_that_began_from_anything_else_is_no_restore(began: str | None, told: str) -> None:
    """Its rows say nothing of the savepoint: told in a spelling that its Flink does not know, a job starts empty."""
    bench = PairRunner.__new__(PairRunner)
    bench._jobs = cast(JobManager, SimpleNamespace(restored_from=lambda job_id: began))
    with pytest.raises(progress.MeasureError, match=told):
        bench._check_restored("a1", "file:/savepoint-1")


def fail(error: Exception) -> Any:
    raise error


def test_predictions_are_renewed_and_an_unsafe_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    script = (
        "CREATE TABLE t (a STRING, b BIGINT) WITH ('connector' = 'datagen');\n"
        "CREATE TABLE s (a STRING, n BIGINT) WITH ('connector' = 'print');\n"
        "INSERT INTO s SELECT a, SUM(b) FROM t GROUP BY a"
    )
    stale = {**entry(results.RIGHT, "unknown"), "old": script, "new": script, "settings_old": {}, "settings_new": {}}
    path = tmp_path / "flink-2.3-2026-01-01.json"
    path.write_text(json.dumps({"flink": "2.3.0", "date": "2026-01-01", "pairs": [stale]}))
    assert command.main(["--predict-only"]) == 0
    assert json.loads(path.read_text())["pairs"][0]["predicted"]["rules"] == ["unchanged"]
    assert "Recognised 1 of 1" in capsys.readouterr().out
    path.write_text(path.read_text().replace(results.RIGHT, results.WRONG))
    assert command.main(["--predict-only"]) == 1
    assert "UNSAFE" in capsys.readouterr().out


def test_rows_that_a_filesystem_sink_wrote_count_whether_their_file_is_finished_or_not(tmp_path: Path) -> None:
    sink = tmp_path / "written" / "totals"
    sink.mkdir(parents=True)
    (sink / "part-1").write_text("x,1\ny,2\n", encoding="utf-8")
    (sink / ".part-2.inprogress").write_text("y,2\n", encoding="utf-8")
    printed = tmp_path / "taskmanager.out"
    printed.write_text("7.other:1> +I[z, 3]\n8.other:1> +I[z, 4]\n", encoding="utf-8")
    bench = PairRunner.__new__(PairRunner)  # no cluster is asked
    bench._printed = printed
    bench._services = None
    rows = bench._rows(7, tmp_path)
    assert sorted(rows) == ["other +I[z, 3]", "totals +I[x,1]", "totals +I[y,2]", "totals +I[y,2]"]
    assert sorted(_without(rows, ["totals +I[y,2]", "totals +I[w,0]"])) == [
        "other +I[z, 3]", "totals +I[x,1]", "totals +I[y,2]"
    ]  # fmt: skip
