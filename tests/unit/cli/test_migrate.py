"""``flinkcompat migrate``: what it says, what it writes, its exit codes, and a real planner behind it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner, Result
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli import arguments, cli, migrate
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.migration_report import MIGRATED_LINES
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.model import InputError, install_command
from airflow_flinkcompat.model.installation import CACHE_VARIABLE
from airflow_flinkcompat.planner.installation import install
from airflow_flinkcompat.savepoint.store import read_metadata
from dev.measure import results
from tests.support.deploy.fake_cluster import FakeCluster

FOLDER = Path(__file__).parents[2] / "fixtures" / "migrations"
ADDED = FOLDER / "a-metric-is-added-to-a-tumbling-window"
SWAPPED = FOLDER / "the-keys-of-a-group-aggregation-change-places"
SAVEPOINT = ("--savepoint", str(ADDED / "old"))
FILES = (*SAVEPOINT, "--template", str(ADDED / "template"))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command over a fixture's scripts, whose plans stand for those of Flink's planner."""
    monkeypatch.chdir(tmp_path)

    def run(
        case: Path, *arguments: str, sides: tuple[str, str] = ("old", "new"), edit: tuple[str, str] = ("", "")
    ) -> Result:
        for name, side in zip(("old", "new"), sides, strict=True):
            Path(f"{name}.sql").write_text((case / f"{side}.sql").read_text("utf-8").replace(*edit), "utf-8")
        plans = tuple((read_plan((case / f"{side}.json").read_text("utf-8")),) for side in sides)
        monkeypatch.setattr(migrate, "compiled_plans", lambda *_: plans)
        return CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", *arguments])

    return run


def test_what_a_dry_run_says(run: Callable[..., Result], snapshot: SnapshotAssertion) -> None:
    result = run(ADDED, "--dry-run")
    assert result.exit_code == 0
    assert result.stdout == snapshot
    assert sorted(path.name for path in Path().iterdir()) == ["new.sql", "old.sql"]


def test_a_dry_run_compares_the_prediction_with_the_savepoint(run: Callable[..., Result]) -> None:
    same = run(ADDED, "--dry-run", "--savepoint", str(ADDED / "old"))
    assert same.exit_code == 0
    _, compared, downtime = same.stdout.rstrip().rsplit("\n", 2)
    assert compared == f"{ADDED / 'old'} contains the state that the plan predicts."
    assert downtime == (
        "Expected downtime: about 3 s for 3,797 bytes of state (stop 1 s, rewrite and verify 1 s, start 2 s). The "
        "rates were measured on 2 cores with a local disk; other machines, stores and state backends differ."
    )
    other = run(ADDED, "--dry-run", "--savepoint", str(SWAPPED / "old"))
    assert (other.exit_code, other.stdout) == (1, "")
    assert "the old plan predicts key (VARCHAR(2147483647)), timers window-timers, window-aggs" in other.stderr
    assert "the savepoint contains accState VALUE of row (BIGINT), key " in other.stderr
    template = run(ADDED, "--dry-run", "--template", str(SWAPPED / "template"))
    assert template.exit_code == 1
    assert "the template differs from the layout that the new plan predicts" in template.stderr


def test_each_step_does_what_its_former_spelling_does(run: Callable[..., Result]) -> None:
    former = run(ADDED, "--dry-run", *SAVEPOINT)
    assert CliRunner().invoke(cli, ["migrate", "--dry-run", "old.sql", "new.sql", *SAVEPOINT]).stdout == former.stdout
    plan = CliRunner().invoke(cli, ["migrate", "plan", "old.sql", "new.sql", *SAVEPOINT])
    assert (plan.exit_code, plan.output) == (0, former.output)
    run(ADDED, *FILES, "--to", "former")
    apply = CliRunner().invoke(cli, ["migrate", "apply", "old.sql", "new.sql", *FILES, "--to", "migrated"])
    assert apply.exit_code == 0
    assert "read back and equal: migrated" in apply.stderr
    assert [path.name for path in Path("migrated").iterdir()] == [path.name for path in Path("former").iterdir()]


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (("plan", "--to", "t"), "No such option '--to'"),
        (("prepare",), "Missing option '--to'"),
        (("prepare", "--to", "t"), "migrate prepare needs --history TABLE for each table"),
        (("apply",), "add --to, and either --savepoint or --job-id"),
        (("apply", "--dry-run"), "No such option '--dry-run'"),
    ],
)
def test_each_step_takes_its_own_options(step: tuple[str, ...], says: str, run: Callable[..., Result]) -> None:
    run(ADDED, "--dry-run")
    result = CliRunner().invoke(cli, ["migrate", step[0], "old.sql", "new.sql", *step[1:]])
    assert result.exit_code != 0
    assert says in f"{result.output}{result.exception}"


def test_json(run: Callable[..., Result], snapshot: SnapshotAssertion) -> None:
    result = run(SWAPPED, "--dry-run", "--format", "json")
    assert json.loads(result.stdout) == snapshot


def test_json_contains_the_downtime_of_a_savepoint(run: Callable[..., Result]) -> None:
    found = json.loads(run(ADDED, "--dry-run", *SAVEPOINT, "--format", "json").stdout)
    assert found["downtime"].keys() == {"bytes", "stop_seconds", "rewrite_seconds", "rehearse_seconds", "start_seconds"}
    assert 0 < found["downtime"]["bytes"] < read_metadata(str(ADDED / "old")).keyed_size + 1


def test_it_writes_a_savepoint(run: Callable[..., Result]) -> None:
    result = run(ADDED, *FILES, "--to", "migrated")
    assert result.exit_code == 0, result.output
    assert "entries rewritten, read back and equal: migrated" in result.stderr
    assert read_metadata("migrated").operators
    again = run(ADDED, *FILES, "--to", "migrated")
    assert isinstance(again.exception, InputError)
    assert "migrated is not empty: pass a folder that does not exist" in str(again.exception)


def test_what_cannot_be_kept_says_why(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    other = read_plan((FOLDER / "a-metric-is-added-to-sessions" / "new.json").read_text("utf-8"))
    old = read_plan((ADDED / "old.json").read_text("utf-8"))
    run(ADDED, "--dry-run")
    monkeypatch.setattr(migrate, "compiled_plans", lambda *_: ((old,), (other,)))
    dropped = CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", "--dry-run"])
    assert dropped.exit_code == 1
    assert "window-aggregate: cannot be kept: its rows, windows or conditions changed" in dropped.stdout


def test_what_it_is_judged_by_is_taken_of_the_project_file(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path("flinkcompat.toml")
    file.write_text(
        'engine = "flink"\nengine_version = "1.20"\n[deployments.orders]\nscript = "new.sql"\ncatalog = "ddl.sql"\n'
        'settings = { "table.exec.state.ttl" = "1 d" }\nfunctions = { clean = "scalar:java" }\n',
        encoding="utf-8",
    )
    Path("ddl.sql").write_text("CREATE TABLE of_catalog (a INT) WITH ('connector' = 'datagen');\n", encoding="utf-8")
    run(ADDED, "--dry-run")
    compiled, asked = migrate.compiled_plans, []
    monkeypatch.setattr(migrate, "compiled_plans", lambda *of: asked.append(of[1:3]) or compiled(*of))

    def sides(*arguments: str) -> tuple[Side, Side]:
        result = CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", "--dry-run", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "By flinkcompat.toml, deployment orders: " in result.stderr
        return asked[-1]

    for side in sides():
        assert (side.engine, side.engine_version, side.settings) == ("flink", "1.20", {"table.exec.state.ttl": "1 d"})
        assert "of_catalog" in side.catalog
        assert [each.name for each in side.functions] == ["clean"]
    old, new = sides("--set", "a=b", "--old-set", "table.exec.state.ttl=2 d", "--engine-version", "2.3")
    assert new.settings == {"table.exec.state.ttl": "1 d", "a": "b"}
    assert old.settings == {"table.exec.state.ttl": "2 d", "a": "b"}
    assert (old.engine_version, new.engine_version) == ("2.3", "2.3")
    file.write_text(file.read_text("utf-8").replace('"flink"\n', '"vvr"\n').replace("1.20", "8.0"), encoding="utf-8")
    refused = CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", "--dry-run"])
    assert "migrate is for open-source Flink, but the project file sets engine vvr" in str(refused.exception)


def test_where_nothing_is_kept_nothing_is_written(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions of sources are not enough: the new script has no aggregation that could go on."""
    run(ADDED, "--dry-run")
    old = json.loads((ADDED / "old.json").read_text("utf-8"))
    nodes = [each for each in old["nodes"] if re.search("source|watermark|sink", each["type"])]
    ids = sorted(each["id"] for each in nodes)
    edges = [{**old["edges"][0], "source": one, "target": other} for one, other in pairwise(ids)]
    alone = read_plan(json.dumps({**old, "nodes": nodes, "edges": edges}))
    monkeypatch.setattr(migrate, "compiled_plans", lambda *_: ((read_plan(json.dumps(old)),), (alone,)))
    for asked in ((), ("--accept", "dropped"), ("--accept", "dropped", "--dry-run")):
        result = CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", *FILES, "--to", "migrated", *asked])
        assert "source orders: carried" in result.stdout
        assert "NOT MIGRATABLE" in result.stdout
        assert result.exit_code == 1
        assert "with --accept dropped" not in result.stderr
    assert not Path("migrated").exists()


def test_accepting_another_condition_is_offered(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept without it, so that it has to be named where the command ends."""
    run(ADDED, "--dry-run", sides=("old", "old"))
    plan = json.loads((ADDED / "old.json").read_text("utf-8"))
    scan = next(node for node in plan["nodes"] if "scanTableSource" in node)["scanTableSource"]
    pushed = {"type": "FilterPushDown", "predicates": [{"kind": "LITERAL", "value": True}]}
    scan["abilities"] = [*scan.get("abilities", ()), pushed]
    plans = (read_plan((ADDED / "old.json").read_text("utf-8")),), (read_plan(json.dumps(plan)),)
    monkeypatch.setattr(migrate, "compiled_plans", lambda *_: plans)
    refused, accepted = (
        CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", "--dry-run", *more])
        for more in ((), ("--accept", "filter"))
    )
    assert refused.exit_code == 1
    assert "with --accept filter stored state is kept under the new condition" in refused.stderr
    assert accepted.exit_code == 0
    assert "with --accept filter" not in accepted.stderr


def test_a_folder_that_cannot_be_written_is_named(run: Callable[..., Result]) -> None:
    Path("file").write_text("no folder")
    result = run(ADDED, *FILES, "--to", "file/new")
    assert isinstance(result.exception, InputError)
    assert "file/new cannot be written from here (NotADirectoryError: " in str(result.exception)


def test_history_says_what_would_begin_now(run: Callable[..., Result]) -> None:
    told = run(ADDED, "--dry-run").stdout
    assert "begins now MAX(d)" in told
    result = run(ADDED, "--dry-run", "--history", "orders")
    told = result.stdout
    assert "orders is read from file:///orders, up to the job's position when it stops" in result.stderr
    assert "global-window-aggregate: all computed state is exact" in result.stderr
    result = run(ADDED, "--dry-run", "--history", "orders", "--savepoint", (ADDED / "old").as_uri())
    assert "orders is read from file:///orders, 1 file that the job has found" in result.stderr
    assert "computed   MAX(d)" in told
    assert "begins now" not in told
    assert told.startswith("MIGRATABLE: a rewritten savepoint keeps all of the state")


def test_history_that_is_not_read_is_told_by_a_dry_run(run: Callable[..., Result]) -> None:
    avro = ("'csv'", "'avro'")
    result = run(ADDED, "--dry-run", "--history", "orders", edit=avro)
    assert "begins now MAX(d)" in result.stdout
    assert "global-window-aggregate cannot be computed from history" in result.stderr


def test_spark_is_asked_for_before_anything_else(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "find_spec", lambda name: None)
    result = run(ADDED, *FILES, "--to", "new", "--history", "orders")
    assert isinstance(result.exception, InputError)
    assert str(result.exception).endswith(install_command("local-flink", "spark"))
    assert "computed   MAX(d)" in run(ADDED, "--dry-run", "--history", "orders").stdout


@pytest.mark.parametrize("to", ["", "/", "/below", "/../old/below"])
def test_the_savepoint_that_is_read_is_not_written_into(to: str, run: Callable[..., Result], tmp_path: Path) -> None:
    shutil.copytree(ADDED / "old", tmp_path / "old")
    before = sorted(path.name for path in (tmp_path / "old").iterdir())
    arguments = ("--savepoint", (tmp_path / "old").as_uri(), "--template", str(ADDED / "template"))
    result = run(ADDED, *arguments, "--to", f"old{to}")
    assert isinstance(result.exception, InputError)
    assert "which is only read: name a folder next to it" in str(result.exception)
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            (),
            "add --to, and either --savepoint or --job-id; flinkcompat migrate plan shows the state that would be kept",
        ),
        (("--savepoint", "s"), "add --to, and either --savepoint or --job-id"),
        (("--savepoint", "s", "--job-id", "j"), "--job-id replaces --savepoint"),
        (("--job-id", "j"), "add --jobmanager, which knows the last savepoint of the job"),
        (("--dry-run", "--source-renamed", "orders"), "--source-renamed orders: write OLD=NEW"),
        (
            ("--dry-run", "--restart-source", "order"),
            "no source is named order; choose from the sources that store positions: orders",
        ),
        (("--dry-run", "--master", "local[2]"), "--master needs --spark or --history: add one of them"),
        (
            ("--dry-run", "--accept", "history"),
            "--accept history applies to state computed from history: add --history",
        ),
        (
            ("--dry-run", "--sample", "5"),
            "--sample applies to state computed from history: add --history TABLE, or leave",
        ),
        (("--dry-run", "--history", "=file:///rows"), "--history =file:///rows: write TABLE or TABLE=URI"),
        (
            ("--dry-run", "--history", "orders=/a", "--history", "orders=/b"),
            "the table has two locations",
        ),
        (("--dry-run", "--history", "order"), "history of order: the new script declares no table with this name"),
        (("--audit-history", "--savepoint", "s"), "--audit-history needs --history TABLE for each table"),
        (("--audit-history", "--history", "orders", "--savepoint", "nowhere"), "nowhere/_metadata cannot be read"),
        (("--savepoint", str(ADDED / "old"), "--to", "t", "--gateway", "http://h:8083"), "add --jobmanager"),
        (("--savepoint", "s3a://b/s", "--to", "s3://b/s/t/"), "--to s3://b/s/t/ is inside --savepoint s3a://b/s"),
        (("--savepoint", "memory://b/s", "--to", "memory://b/s2"), "memory://b/s/_metadata cannot be read from here"),
        (("--savepoint", "nowhere", "--to", "t"), "nowhere/_metadata cannot be read from here"),
        (("--savepoint", "nowhere", "--template", str(ADDED / "template"), "--to", "t"), "nowhere/_metadata cannot be"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], says: str, run: Callable[..., Result]) -> None:
    result = run(ADDED, *arguments)
    assert isinstance(result.exception, InputError)
    assert says in str(result.exception)


class Stopped(FakeCluster):
    """A cluster that shows by which savepoints its jobs ended."""

    savepoints: ClassVar[dict[str, str]] = {}

    def final_savepoint(self, job_id: str) -> str | None:
        return self.savepoints.get(job_id)


@pytest.mark.parametrize(
    ("state", "ended_by", "says"),
    [
        ("FINISHED", str(ADDED / "old"), ""),
        ("RUNNING", "", "job j is RUNNING: stop it first, STOP JOB 'j' WITH SAVEPOINT"),
        ("FINISHED", "", "job j ended (FINISHED) without a savepoint: name one with --savepoint"),
        ("FAILED", "of an earlier stop", "job j ended (FAILED) without a savepoint: name one with --savepoint"),
        ("", "", "pretended knows no job j: name the savepoint with --savepoint"),
    ],
)
def test_the_savepoint_by_which_a_job_ended(
    state: str, ended_by: str, says: str, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Stopped()
    monkeypatch.setattr(TargetLocation, "open", lambda _where: cluster)
    monkeypatch.setattr(Stopped, "savepoints", {"j": ended_by} if ended_by else {})
    if state:
        cluster.end(cluster.run("j"), state)
    arguments = ("--job-id", "j", "--jobmanager", "http://h:8081", "--template", str(ADDED / "template"))
    result = run(ADDED, *arguments, "--to", "migrated")
    if says:
        assert isinstance(result.exception, InputError)
        assert str(result.exception) == says
    else:
        assert (result.exit_code, Path("migrated/_metadata").exists()) == (0, True)


def test_several_jobs(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    run(ADDED, "--dry-run")
    plan = read_plan((ADDED / "old.json").read_text("utf-8"))
    monkeypatch.setattr(migrate, "compiled_plans", lambda *_: ((plan, plan), (plan,)))
    result = CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", "--dry-run"])
    assert "put the INSERTs of each script into one statement set" in str(result.exception)


def test_a_program(run: Callable[..., Result]) -> None:
    result = CliRunner().invoke(cli, ["migrate", "job.py", "new.sql", "--dry-run"])
    assert "migrate compiles SQL scripts, not programs" in str(result.exception)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.nightly
def test_flinks_own_planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command, with Flink's planner here and a Flink for the template, over a savepoint of a real job."""
    monkeypatch.chdir(tmp_path)
    for side in ("old", "new"):
        script = (ADDED / f"{side}.sql").read_text("utf-8").replace("file://DATA", tmp_path.as_uri())
        Path(f"{side}.sql").write_text(script, "utf-8")
    Path("orders").mkdir()
    (Path("orders") / "rows.csv").write_text("not,read\n")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    install("2.3")
    result = CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", *SAVEPOINT, "--to", "migrated"])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "PARTLY MIGRATABLE" in result.stdout
    assert "starting new.sql on empty input for a template" in result.stderr
    assert read_metadata("migrated").operators
    (kept,) = (tmp_path / "cache" / "templates").iterdir()
    by_hand = {each.id: each.max_parallelism for each in read_metadata(str(ADDED / "template")).operators}
    assert {each.id: each.max_parallelism for each in read_metadata(str(kept)).operators} == by_hand
    again = CliRunner().invoke(cli, ["migrate", "old.sql", "new.sql", *SAVEPOINT, "--to", "again"])
    assert (again.exit_code, "starting" in again.stderr) == (0, False)


def test_what_is_not_seen_is_written_on_request_alone(run: Callable[..., Result]) -> None:
    asked = ("--set", "table.exec.unheard-of=2", "--old-set", "table.exec.unheard-of=1")
    refused = run(ADDED, *FILES, "--to", "migrated", *asked)
    assert refused.exit_code == 1
    assert "a migration cannot check this change, decide yourself: [unknown] setting-changed" in refused.stderr
    assert "--accept unseen writes the savepoint nevertheless" in refused.stderr
    assert not Path("migrated").exists()
    assert run(ADDED, *FILES, "--to", "migrated", *asked, "--accept", "unseen").exit_code == 0


def test_a_line_of_flink_on_which_nothing_was_migrated_asks_first(run: Callable[..., Result]) -> None:
    refused = run(ADDED, *FILES, "--to", "migrated", "--engine-version", "2.1")
    assert (refused.exit_code, Path("migrated").exists()) == (1, False)
    assert "migration was tested on Flink 1.20 and 2.3 only, not on 2.1" in refused.stderr
    assert run(ADDED, *FILES, "--to", "migrated", "--engine-version", "2.1", "--accept", "unseen").exit_code == 0


def test_the_lines_on_which_state_was_migrated_are_those_of_the_results() -> None:
    told = {results.read(file)["flink"] for file in results.FOLDER.glob("migrations/flink-*.json")}
    assert {version.rpartition(".")[0] for version in told} == {*MIGRATED_LINES}
