"""``flinkcompat state``: its output, its formats and its errors, over savepoints of a real Flink."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.ipc
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli import cli, state
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.state import tables
from dev.benchmarks.generated_savepoints import generate

FOLDER = Path(__file__).parents[2] / "fixtures" / "migrations"
HOP = FOLDER / "hopping-windows-become-tumbling-ones"
ROWS = "SELECT a, window_end, sum_b, avg_b FROM printed ORDER BY a, window_end"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command over a fixture's savepoint; the plan of its script stands for that of Flink's planner."""
    monkeypatch.chdir(tmp_path)
    Path("job.sql").write_text((HOP / "old.sql").read_text("utf-8"), "utf-8")
    shutil.copytree(HOP / "old", "savepoint")
    plan = read_plan((HOP / "old.json").read_text("utf-8"))
    monkeypatch.setattr(state, "compiled_plans", lambda *_: ((plan,), (plan,)))
    return lambda *arguments: CliRunner().invoke(cli, ["state", *arguments])


@pytest.mark.parametrize("style", ["text", "json"])
@pytest.mark.parametrize("script", [(), ("--script", "job.sql")])
def test_the_tables_of_a_savepoint(
    style: str, script: tuple[str, ...], run: Callable[..., Result], snapshot: SnapshotAssertion
) -> None:
    result = run("show", "savepoint", *script, "--format", style)
    assert result.exit_code == 0, result.output
    assert (json.loads(result.stdout) if style == "json" else result.stdout) == snapshot


def test_states_without_a_table_have_sizes(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(header: object) -> None:
        raise SavepointUnreadable("keys are stored as String instead of rows")

    monkeypatch.setattr(tables, "layout_of", refused)
    assert run("show", "savepoint").stdout.splitlines()[2:6] == [
        "without a table: c27dcf7b54ef6bfd6cff02ca8870b681, because keys are stored as String instead of rows",
        "  window-aggs: 7 entries, 623 bytes",
        "  _timer_state/processing_window-timers: 0 entries, 0 bytes",
        "  _timer_state/event_window-timers: 5 entries, 225 bytes",
    ]


@pytest.mark.parametrize("style", ["table", "csv", "json"])
def test_rows_of_a_query(style: str, run: Callable[..., Result], snapshot: SnapshotAssertion) -> None:
    result = run("sql", "savepoint", ROWS, "--script", "job.sql", "--format", style)
    assert result.exit_code == 0, result.output
    assert result.stdout == snapshot


def test_rows_in_files(run: Callable[..., Result]) -> None:
    for style in ("parquet", "arrow", "csv"):
        query = ("sql", "savepoint", ROWS, "--script", "job.sql", "--format", style)
        assert run(*query, "--output", f"rows.{style}").exit_code == 0
    written = pyarrow.parquet.read_table("rows.parquet")
    assert written.to_pylist() == pyarrow.ipc.open_stream(Path("rows.arrow").read_bytes()).read_all().to_pylist()
    assert written.num_rows == len(Path("rows.csv").read_text("utf-8").splitlines()) - 1 == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sql", "savepoint", "SELECT x FROM nothing"), "Table with name nothing does not exist"),
        (("sql", "savepoint", "SELECT 1 FROM read_csv('job.sql')"), "disabled by configuration"),
        (("sql", "savepoint", "SELECT 1", "--format", "parquet"), "add --output FILE"),
        (("sql", "savepoint", "SELECT 1", "--output", "x"), "--output needs another format than table"),
        (("sql", "savepoint", "SELECT 1", "--format", "csv", "--output", "savepoint/x"), "in the folder of"),
        (("show", "nowhere"), "nowhere/_metadata cannot be read from here (FileNotFoundError)"),
        (("show", "savepoint", "--script", "job.py"), "compiles SQL scripts, not programs"),
        (("diff", "savepoint", "savepoint", "--other-script", "job.sql"), "--other-script needs --script"),
        (("diff", "savepoint", "nowhere"), "nowhere/_metadata cannot be read from here"),
    ],
)
def test_errors_name_the_remedy(arguments: tuple[str, ...], message: str, run: Callable[..., Result]) -> None:
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert message in str(error)


def test_another_script_is_noticed(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    other = read_plan((FOLDER / "a-metric-is-added-to-a-tumbling-window" / "new.json").read_text("utf-8"))
    monkeypatch.setattr(state, "compiled_plans", lambda *_: ((other,), (other,)))
    result = run("sql", "savepoint", "SELECT count(*) FROM globalwindowaggregate", "--script", "job.sql")
    assert (result.exit_code, result.stderr) == (
        0, "GlobalWindowAggregate: the script predicts another layout, so names are general\n",
    )  # fmt: skip


def test_columns_of_other_types_are_not_compared(run: Callable[..., Result]) -> None:
    stored = FOLDER.parent / "savepoints" / "2.3"
    result = run("diff", str(stored / "group"), str(stored / "group-numbers"))
    assert result.exit_code == 1
    assert "  column field_3: STRING became BIGINT, so its values are not compared\n" in result.stdout


def test_a_savepoint_equals_itself(run: Callable[..., Result]) -> None:
    result = run("diff", "savepoint", "savepoint", "--script", "job.sql")
    assert (result.exit_code, result.stdout) == (
        0, "equal: printed, printed__processing_timers, printed__timers, _sources\n",
    )  # fmt: skip


@pytest.mark.parametrize("style", ["text", "json"])
def test_the_difference_of_two_savepoints(style: str, run: Callable[..., Result], snapshot: SnapshotAssertion) -> None:
    other = FOLDER / "a-metric-is-added-to-a-tumbling-window" / "old"
    shutil.copytree(other, "other")
    result = run("diff", "savepoint", "other", "--rows", "3", "--format", style)
    assert result.exit_code == 1, result.output
    assert (json.loads(result.stdout) if style == "json" else result.stdout) == snapshot


def test_a_damaged_file_names_itself(run: Callable[..., Result], tmp_path: Path) -> None:
    generate(HOP / "old", 3000, tmp_path / "large")
    (file,) = (path for path in (tmp_path / "large").iterdir() if path.name != "_metadata")
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    file.write_bytes(content)
    for arguments in (("show", "large"), ("sql", "large", "SELECT sum(field_0) FROM globalwindowaggregate")):
        error = run(*arguments).exception
        assert isinstance(error, InputError)
        assert re.search(rf"large/{file.name}: key group \d+ at byte \d+: ", str(error))
