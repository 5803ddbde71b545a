"""``flinkcompat bootstrap``: what it says, what it writes, its exit codes, and a real planner behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.backfill.spark_sql.expressions import aggregate
from airflow_flinkcompat.cli import bootstrap, cli
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.installation import CACHE_VARIABLE
from airflow_flinkcompat.savepoint.source_positions import file_positions
from airflow_flinkcompat.savepoint.store import read_metadata

FOLDER = Path(__file__).parents[2] / "fixtures" / "migrations"
WINDOWS = FOLDER / "a-metric-is-added-to-a-tumbling-window"
ROWS = Path(__file__).parents[3] / "dev" / "measure" / "data" / "orders" / "before.csv"
HISTORY = ("--history", "orders")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command over a fixture's new script, whose plan stands for that of Flink's planner."""
    monkeypatch.chdir(tmp_path)
    Path("orders").mkdir()
    Path("orders/before.csv").write_bytes(ROWS.read_bytes())

    def run(case: Path, *arguments: str, edit: tuple[str, str] = ("", "")) -> Result:
        script = (case / "new.sql").read_text("utf-8").replace("file://DATA", tmp_path.as_uri())
        Path("new.sql").write_text(script.replace(*edit), "utf-8")
        plan = read_plan((case / "new.json").read_text("utf-8"))
        monkeypatch.setattr(bootstrap, "compiled_plans", lambda *_: ((plan,), (plan,)))
        return CliRunner().invoke(cli, ["bootstrap", "new.sql", *arguments])

    return run


@pytest.mark.parametrize("style", ["text", "json"])
def test_what_a_dry_run_says(style: str, run: Callable[..., Result], snapshot: SnapshotAssertion) -> None:
    result = run(WINDOWS, "--dry-run", *HISTORY, "--format", style)
    assert result.exit_code == 0
    assert (json.loads(result.stdout) if style == "json" else result.stdout) == snapshot
    assert ", up to --until, or up to its end when the command runs" in result.stderr
    assert "global-window-aggregate: all computed state is exact" in result.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["new.sql", "orders"]


def test_one_state_that_is_not_computed_is_enough(run: Callable[..., Result], snapshot: SnapshotAssertion) -> None:
    once = ("'source.monitor-interval' = '100 ms'", "'csv.null-literal' = 'x'")
    result = run(WINDOWS, *HISTORY, "--to", "begun", edit=once)
    assert result.exit_code == 1
    assert (result.stdout, result.stderr) == snapshot
    assert not Path("begun").exists()


def test_history_that_is_not_named(run: Callable[..., Result]) -> None:
    result = run(WINDOWS, "--to", "begun")
    assert result.exit_code == 1
    assert (
        "a warm start is not possible, because of orders: the history of table orders is not specified: pass --history"
        in result.stderr
    )


def test_a_line_on_which_no_state_was_written(run: Callable[..., Result]) -> None:
    result = run(WINDOWS, "--dry-run", *HISTORY, "--engine-version", "1.19")
    assert result.exit_code == 1
    assert "computing state was tested only with Flink 1.20 and 2.3, not with 1.19" in result.stderr


@pytest.mark.slow
def test_it_writes_a_savepoint(run: Callable[..., Result], spark: SparkSession, snapshot: SnapshotAssertion) -> None:
    arguments = (*HISTORY, "--template", str(WINDOWS / "template"), "--to", "begun")
    result = run(WINDOWS, *arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr.replace(Path().absolute().as_uri(), "file:///data") == snapshot
    again = run(WINDOWS, *arguments)
    assert isinstance(again.exception, InputError)
    assert "begun is not empty: pass a folder that does not exist" in str(again.exception)


@pytest.mark.slow
def test_what_python_computes_otherwise_is_not_published(
    run: Callable[..., Result], spark: SparkSession, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark adds one to each sum."""
    wrong = "airflow_flinkcompat.history.table_rows.aggregate"
    monkeypatch.setattr(wrong, lambda call: f"{aggregate(call)}{' + 1' if call.function == 'SUM' else ''}")
    arguments = (*HISTORY, "--template", str(WINDOWS / "template"), "--to", "begun")
    result = run(WINDOWS, *arguments)
    assert result.exit_code == 1
    assert result.stderr.replace(Path().absolute().as_uri(), "file:///data") == snapshot
    assert not Path("begun", "_metadata").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "add --to FOLDER, or add --dry-run to show the state that would be computed"),
        (("--dry-run", "--until", "orders"), "--until 'orders' is not of the form TABLE=POSITIONS or TABLE=TIME"),
        (("--dry-run", "--until", "orders=noon"), "--until orders=noon is neither offsets nor a time: write partition"),
        (
            ("--dry-run", "--until", "order=0:1"),
            "--until order: the script reads no table with this name. The script reads ord",
        ),
        (("--dry-run", "--history", "order"), "history of order: the new script declares no table with this name"),
        (("--dry-run", "--history", "=file:///rows"), "--history =file:///rows: write TABLE or TABLE=URI"),
        (("--to", "t", *HISTORY, "--gateway", "http://h:8083"), "add --jobmanager"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], says: str, run: Callable[..., Result]) -> None:
    result = run(WINDOWS, *arguments)
    assert isinstance(result.exception, InputError)
    assert says in str(result.exception)


@pytest.mark.parametrize(
    ("joined", "says"),
    [
        (
            "2026-01-31T00:00:00Z",
            "history of orders: the boundary 2026-01-31T00:00:00Z has a time zone, but ts is a TIMESTAMP",
        ),
        ("2026-31-01", "history of orders: the boundary 2026-31-01 is not a time: write it as in URI#2026-01-31"),
        ("noon", "history of orders: 'noon' is not a pair of columns. Specify the archive's columns of partition"),
        ("2026-01-31", ""),
    ],
)
def test_an_archive_is_joined_at_an_event_time(
    joined: str, says: str, run: Callable[..., Result], tmp_path: Path
) -> None:
    files = (
        f"'connector' = 'filesystem', 'path' = '{tmp_path.as_uri()}/orders', 'format' = 'csv', "
        "'source.monitor-interval' = '100 ms'"
    )
    topic = "'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'"
    result = run(WINDOWS, "--dry-run", "--history", f"orders=parquet:/lake#{joined}", edit=(files, topic))
    if says:
        assert isinstance(result.exception, InputError)
        assert says in str(result.exception)
    else:
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("WARM START: all state is computed from history")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--template", "nowhere"), "nowhere/_metadata cannot be read from here"),
        (
            ("--template", str(WINDOWS / "template"), "--until", "orders=0:1"),
            "the rows are in files, which have no of",
        ),
    ],
)
def test_bad_input_that_spark_finds(
    arguments: tuple[str, ...], says: str, run: Callable[..., Result], spark: SparkSession
) -> None:
    result = run(WINDOWS, *HISTORY, "--to", "t", *arguments)
    assert isinstance(result.exception, InputError)
    assert says in str(result.exception)


def test_several_jobs_and_a_program(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    run(WINDOWS, "--dry-run")
    plan = read_plan((WINDOWS / "new.json").read_text("utf-8"))
    monkeypatch.setattr(bootstrap, "compiled_plans", lambda *_: ((plan, plan), (plan, plan)))
    several = CliRunner().invoke(cli, ["bootstrap", "new.sql", "--dry-run"])
    assert "put the INSERTs of each script into one statement set" in str(several.exception)
    program = CliRunner().invoke(cli, ["bootstrap", "job.py", "--dry-run"])
    assert "bootstrap compiles SQL scripts, not programs" in str(program.exception)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.nightly
def test_flinks_own_planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Result]) -> None:
    """The whole command, with a Flink that it starts itself for plans and template."""
    run(WINDOWS, "--dry-run")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    result = CliRunner().invoke(cli, ["bootstrap", "new.sql", *HISTORY, "--to", "begun"])
    assert result.exit_code == 0, (result.output, result.exception)
    (source,) = (each for each in read_metadata("begun").operators if each.coordinator is not None)
    assert file_positions(source, "begun").seen == {f"file:{tmp_path}/orders/before.csv"}
