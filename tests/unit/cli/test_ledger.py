"""``flinkcompat ledger``: what a reader sees (snapshots), JSON, bad input, no secrets."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import (
    CheckedEntry,
    DeployedEntry,
    FailedVersionEntry,
    JobStart,
    JobStop,
    JobVersion,
    MigratedEntry,
    Origin,
    RejectedEntry,
    Review,
    ShadowedEntry,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.ledger.store import this_process
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from airflow_flinkcompat.model import FunctionDeclaration, JobSpec
from dev.services.object_stores import S3StandIn, serving
from tests.support.cli.command import Run
from tests.unit.cli.test_shadow import DIFFERS
from tests.unit.deploy.jobmanager_stand_in import JobManagerStandIn
from tests.unit.deploy.redeploy.test_adopt import JOB, SCRIPT, TASKS
from tests.unit.deploy.redeploy.test_programs import PROGRAM

SECRET = "hunter2hunter2"
FIRST = DeployedEntry(
    job=JobSpec(
        "SET 'parallelism.default' = '1';\nINSERT INTO totals SELECT customer, SUM(amount) FROM orders;\n",
        settings={"table.exec.state.ttl": "1 d", "s3.secret-key": SECRET},
        functions=(FunctionDeclaration("f", "scalar", "python"),),
        catalog="CREATE TABLE orders (customer STRING, amount BIGINT) WITH ('password' = 'hunter2hunter2');\n",
        engine="flink",
        engine_version="2.3.0",
    ),
    start=JobStart("stateless", job_id="1" * 32),
    owner="airflow:redeploy_orders/scheduled__2026-11-20/deploy",
    message="RUNNING, verified",
    at="2026-11-20T09:00:00.000+00:00",
)
SECOND = replace(
    FIRST,
    job=replace(
        FIRST.job,
        script=FIRST.job.script.replace("SUM(amount)", "SUM(amount), COUNT(*)"),
        settings={"table.exec.state.ttl": "2 d"},
    ),
    start=JobStart("savepoint", "s3://bucket/savepoints/savepoint-1", job_id="2" * 32),
    review=Review("partial", "s3://bucket/ledger/orders/reports/1.json", "ann"),
    evidence=("restored from the savepoint", "first checkpoint 2.1 MB"),
    at="2026-11-21T10:30:00.000+00:00",
)
STOPPED = StoppedEntry(
    job=SECOND.job, stop=JobStop("2" * 32, savepoint="s3://bucket/savepoints/savepoint-2"), owner="bob@host:1",
    message=f"'password' = '{SECRET}'", at="2026-11-21T11:00:00.000+00:00",
)  # fmt: skip


REFUSED = FailedVersionEntry(version=JobVersion(), message="refused", owner="ann", at="2026-11-20T12:00:00+00:00")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("FLINKCOMPAT_LEDGER", str(tmp_path / "ledger"))
    return Ledger(tmp_path / "ledger", "orders")


@pytest.fixture
def full(ledger: Ledger) -> Ledger:
    rejected = RejectedEntry(
        version=JobVersion(), review=Review("incompatible"), owner="ann", at="2026-11-20T12:00:00+00:00"
    )
    for entry in (FIRST, rejected, SECOND, STOPPED):
        ledger.append(entry)
    return ledger


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "orders"),
        ("show", "orders", "--entry", "1"),
        ("history", "orders"),
        ("diff", "orders"),
        ("diff", "orders", "3", "1"),
        ("diff", "orders", "3", "3"),
        ("diff", "orders", "--format", "json"),
    ],
    ids=" ".join,
)
def test_what_a_reader_sees(arguments: tuple[str, ...], full: Ledger, run: Run, snapshot: SnapshotAssertion) -> None:
    result = run("ledger", *arguments)
    assert (result.code, result.err) == (0, "")
    assert SECRET not in result.out
    assert result.out == snapshot
    if "json" in arguments:
        assert json.loads(result.out)["deployment"] == "orders"


def test_history_is_as_wide_as_the_terminal_and_json_holds_everything(
    full: Ledger, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(len(line) for line in run("ledger", "history", "orders").out.splitlines()) == 80
    for columns in ("160", ""):  # a wide terminal, and no terminal at all
        monkeypatch.setenv("COLUMNS", columns)
        assert run("ledger", "history", "orders").out.splitlines()[1].endswith(f" {FIRST.owner}")
    told = json.loads(run("ledger", "history", "orders", "--format", "json").out)
    assert [entry["number"] for entry in told["entries"]] == [1, 2, 3, 4]
    assert told["entries"][2]["evidence"] == list(SECOND.evidence)
    assert SECRET not in json.dumps(told)


def test_show_as_json(full: Ledger, run: Run) -> None:
    told = json.loads(run("ledger", "show", "orders", "--format", "json").out)
    assert told["deployment"] == "orders"
    masked = {"catalog": FIRST.job.catalog.replace(SECRET, "***")}
    assert told["entry"] == {**json.loads(json.dumps(full.entries()[2].to_dict())), **masked}
    assert (told["unfinished"]["number"], told["unfinished"]["savepoint"]) == (4, STOPPED.stop.savepoint)


def test_show_what_a_migration_kept(ledger: Ledger, run: Run) -> None:
    ledger.append(FIRST)
    operator = {"operator": "window", "state": "rewritten field by field", "reason": "", "keeps": ["SUM(amount)"]}
    kept = {"kept": "partial", "operators": [{**operator, "begins": ["COUNT(*)"], "gone": []}], "entries": {}}
    savepoint, written = Snapshot("s3://bucket/savepoint-2"), "s3://bucket/migrated-3"
    made = MigratedEntry(job=SECOND.job, savepoint=savepoint, migrated_to=written, migration=kept, evidence=("tried",))
    ledger.append(made)
    start = JobStart("migrated", Snapshot(written), job_id=JobRef("3" * 32), migrated_from=savepoint)
    ledger.append(replace(SECOND, start=start))
    shown = run("ledger", "show", "orders").out
    assert "  savepoint    s3://bucket/migrated-3\n  made of      s3://bucket/savepoint-2\n" in shown
    step = run("ledger", "show", "orders", "--entry", "2").out
    assert "  migrated to  s3://bucket/migrated-3\n" in step
    assert (
        "PARTLY MIGRATABLE: a rewritten savepoint keeps some of the state\n  window: rewritten field by field\n" in step
    )
    assert "    keeps      SUM(amount)\n    begins now COUNT(*)\n" in step


def test_show_a_shadow_run(ledger: Ledger, run: Run) -> None:
    ledger.append(ShadowedEntry(version=JobVersion(), shadow=DIFFERS.to_dict(), message=DIFFERS.lines()[0]))
    shown = run("ledger", "show", "orders", "--entry", "1").out
    assert "  finding      differs\n  sinks        totals differs (2 keys); copies equal\n" in shown
    assert "  message      SHADOW: differs: the new script writes other rows\n" in shown
    assert json.loads(run("ledger", "show", "orders", "--entry", "1", "--format", "json").out)["entry"]["shadow"] == (
        json.loads(json.dumps(DIFFERS.to_dict()))
    )
    assert "shadowed" in run("ledger", "history", "orders").out
    refused = ShadowReport(ShadowFinding.REFUSED, "StateMigrationException: 'password' = 'planted-pw'", "restore")
    ledger.append(ShadowedEntry(version=JobVersion(), shadow=refused.to_dict(), message=refused.lines()[0]))
    shown = run("ledger", "show", "orders", "--entry", "2").out
    assert "  finding      refused\n  cause        StateMigrationException: 'password' = '***'\n" in shown


def test_show_what_a_change_loses(ledger: Ledger, run: Run) -> None:
    lost = {"operator": "window", "state": "dropped", "reason": "", "keeps": [], "begins": [], "gone": []}
    kept = {"kept": "none", "operators": [{**lost, "stored": "5 keys (customer), 848 bytes"}]}
    side = Side("", {}, (), "", "flink", "2.3.0", "new.sql")
    path = ledger.store_report({"migration": kept, "context": {"stored": "window: 5 keys, 848 bytes."}}, "", side)
    ledger.append(
        CheckedEntry(
            version=JobVersion("flink", "2.3.0", "1" * 64), review=Review("incompatible", path), branch="approve"
        )
    )
    shown = run("ledger", "show", "orders").out
    assert "\nStored state: window: 5 keys, 848 bytes.\n" in shown
    assert "\n  window: dropped: stored: 5 keys (customer), 848 bytes\n" in shown


@pytest.fixture
def fleet(full: Ledger, tmp_path: Path) -> Path:
    """Deployments in every state, beside a folder and a file that are none."""
    root = tmp_path / "ledger"
    Ledger(root, "clicks").append(FIRST)
    Ledger(root, "new").append(REFUSED)
    (root / "empty").mkdir()
    (root / "notes.txt").write_text("not a ledger", encoding="utf-8")
    return root


@pytest.mark.parametrize("style", ["text", "json"])
def test_list_shows_every_deployment(style: str, fleet: Path, run: Run, snapshot: SnapshotAssertion) -> None:
    result = run("ledger", "list", "--format", style)
    assert (result.code, result.err) == (0, "")
    assert SECRET not in result.out
    assert result.out.replace(str(fleet), "(ledger)") == snapshot
    if style == "json":
        told = {row["deployment"]: row for row in json.loads(result.out)["deployments"]}
        assert list(told) == ["clicks", "new", "orders"]
        assert (told["orders"]["entry"]["number"], told["orders"]["unfinished"]["number"]) == (3, 4)
        assert told["new"]["entry"] is None
        assert "script" not in told["orders"]["entry"]


def test_list_names_a_ledger_that_cannot_be_read_and_shows_the_others(fleet: Path, run: Run) -> None:
    (fleet / "clicks" / "000001.json").write_text('{"kind": 1}\n}', encoding="utf-8")
    assert "not readable" not in run("ledger", "list").out, "the index spares the reading of it"
    result = run("ledger", "list", "--no-index")
    assert (result.code, result.err) == (3, "")
    assert re.search(r"^clicks .* not readable .*\n  the ledger entry .*000001.json cannot be read", result.out, re.M)
    assert re.search(r"^orders +3 2026-11-21 10:30 deployed +22222222 +partial +ann$", result.out, re.M)
    as_json = run("ledger", "list", "--no-index", "--format", "json")
    assert as_json.code == 3
    told = {row["deployment"]: row for row in json.loads(as_json.out)["deployments"]}
    assert "000001.json cannot be read" in told["clicks"]["error"]
    assert told["orders"]["error"] is None


def test_list_says_what_waits_for_a_person(full: Ledger, run: Run) -> None:
    checked = CheckedEntry(
        version=JobVersion("flink", "2.3.0", "ab"), review=Review("unknown", "r.json"), branch="approve",
        policy="approve", origin=Origin("c0ffee", "ann", "payments", "ann"), at="2026-11-22T08:00:00.000+00:00",
    )  # fmt: skip
    full.append(checked)
    assert "\n  a change waits for a decision: entry 5, unknown at 2026-11-22 08:00 UTC\n" in run("ledger", "list").out
    (row,) = json.loads(run("ledger", "list", "--format", "json").out)["deployments"]
    assert row["pending"] == row["checked"]
    assert (row["pending"]["branch"], row["pending"]["commit"], row["pending"]["team"]) == (
        "approve",
        "c0ffee",
        "payments",
    )
    assert row["savepoint"] == {
        "path": "s3://bucket/savepoints/savepoint-2", "bytes": None, "taken_at": STOPPED.at, "number": 4,
        "owners": ["bob@host:1"],
    }  # fmt: skip
    shown = run("ledger", "show", "orders", "--entry", "5").out
    for line in ("branch       approve", "commit       c0ffee", "author       ann", "team         payments"):
        assert f"\n  {line}\n" in shown


def test_the_index_is_made_anew(fleet: Path, run: Run) -> None:
    shutil.rmtree(fleet / "_index")
    before = run("ledger", "list").out
    assert run("ledger", "index").out == "the index has a row for each of 3 deployments\n"
    assert (fleet / "_index" / "snapshots" / "000001.json").is_file()
    assert run("ledger", "list").out == before
    (fleet / "clicks" / "000001.json").write_text('{"kind": 1}\n}', encoding="utf-8")
    result = run("ledger", "index")
    assert (result.code, result.err) == (3, "")
    assert result.out.startswith(
        "the index has a row for each of 2 deployments\nclicks has no row, because its ledger cannot be read\n"
    )
    assert "clicks                       not readable" not in before
    told = json.loads(run("ledger", "index", "--format", "json").out)
    assert (told["deployments"], list(told["errors"])) == (2, ["clicks"])
    assert run("ledger", "list").code == 3, "what has no row is read itself"


def test_the_index_of_a_place_that_holds_no_ledger(fleet: Path, run: Run) -> None:
    result = run("ledger", "index", "--ledger", str(fleet / "empty"))
    assert (result.code, result.out) == (3, "")
    assert "no deployment in" in result.err


@pytest.mark.parametrize("place", ["missing", "ledger/empty", "ledger/notes.txt", "nosuch://x"])
def test_list_of_a_place_that_holds_no_ledger(place: str, fleet: Path, run: Run) -> None:
    root = place if "://" in place else str(fleet.parent / place)
    result = run("ledger", "list", "--ledger", root)
    assert (result.code, result.out) == (3, "")
    assert root in result.err


def test_show_when_nothing_is_deployed(ledger: Ledger, run: Run, snapshot: SnapshotAssertion) -> None:
    ledger.append(REFUSED)
    assert run("ledger", "show", "orders").out == snapshot


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "others"), "no entry in .*/ledger/others: check the name 'others'"),
        (("show", "../x"), "'../x' is not a valid deployment name"),
        (("show", "orders", "--entry", "9"), "has no entry 9: its last entry is 4"),
        (("show", "orders", "--entry", "0"), "0 is not in the range"),
        (("diff", "orders", "1", "7"), "has no entry 7"),
        (("diff", "orders", "2"), r"entry 2 of orders \(rejected\) contains no script"),
        (("history", "orders", "--ledger", "nosuch://x"), "'nosuch://x' cannot be used"),
        (("adopt", "orders", "--job-id", JOB), "the script of the job is unknown: add --script FILE, or name orders"),
        (("adopt", "orders", "--job-id", JOB, "--script", "none.sql"), "none.sql"),
        (("adopt", "orders", "--job-id", JOB, "--script", "s.sql", "--set", "x"), "setting 'x' is not of the form"),
        (
            ("adopt", "orders", "--job-id", JOB, "--script", "s.sql", "--engine-version", "banana"),
            "engine version 'banana' of s.sql is not a version of flink: .* such as 2.3 or 1.20.3",
        ),
        (
            ("adopt", "orders", "--job-id", JOB, "--script", "s.sql", "--jobmanager", "http://127.0.0.1:9"),
            "the JobManager at http://127.0.0.1:9 does not answer",
        ),
    ],
)
def test_bad_input(arguments: tuple[str, ...], message: str, full: Ledger, run: Run) -> None:
    Path("s.sql").write_text(SCRIPT, encoding="utf-8")
    result = run("ledger", *arguments)
    out_of_reach = "does not answer" in message or "cannot be used" in message
    assert (result.code, result.out) == (3 if out_of_reach else 2, "")
    assert re.search(message, result.err)


def test_diff_needs_two_deployments(ledger: Ledger, run: Run) -> None:
    ledger.append(FIRST)
    result = run("ledger", "diff", "orders")
    assert result.code == 2
    assert "orders was deployed once: name two entries to compare (flinkcompat ledger history orders)" in result.err


def test_the_ledger_has_to_be_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLINKCOMPAT_LEDGER", raising=False)
    result = run("ledger", "show", "orders")
    assert result.code == 2
    assert (
        "the location of the ledger is unknown: name its URI with --ledger, set FLINKCOMPAT_LEDGER, or write ledger"
        in result.err
    )


class TestProjectFile:
    @pytest.fixture(autouse=True)
    def file(self, run: Run, full: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The ledger is named by the project file alone."""
        monkeypatch.delenv("FLINKCOMPAT_LEDGER")
        file = tmp_path / "flinkcompat.toml"
        file.write_text(
            f'ledger = "{tmp_path}/ledger"\n[deployments.orders]\nscript = "jobs/orders.sql"\n'
            'settings = { "a.b" = "c" }\n',
            encoding="utf-8",
        )
        return file

    def test_it_names_the_ledger(self, run: Run, tmp_path: Path) -> None:
        named = ("--ledger", str(tmp_path / "ledger"))
        for line in (("list",), ("index",), ("show", "orders"), ("history", "orders"), ("diff", "orders")):
            result = run("ledger", *line)
            assert result.code == 0, result.err
            assert result.out == run("ledger", *line, *named, "--config", "/dev/null").out
        assert "the location of the ledger is unknown" in run("ledger", "list", "--config", "/dev/null").err

    def test_a_deployment_has_its_own_and_several_are_not_guessed(self, run: Run, file: Path, tmp_path: Path) -> None:
        with file.open("a", encoding="utf-8") as text:
            text.write(f'[deployments.clicks]\nscript = "jobs/clicks.sql"\nledger = "{tmp_path}/other"\n')
        assert run("ledger", "show", "orders").code == 0
        assert f"no entry in {tmp_path}/other/clicks" in run("ledger", "show", "clicks").err
        assert f"no entry in {tmp_path}/ledger/of_no_file" in run("ledger", "show", "of_no_file").err
        result = run("ledger", "list")
        assert (result.code, result.out) == (2, "")
        assert f"names several ledgers ({tmp_path}/ledger, {tmp_path}/other): add --ledger" in result.err

    def test_adopt_takes_script_and_settings_of_it(
        self, run: Run, file: Path, full: Ledger, cluster: JobManagerStandIn
    ) -> None:
        cluster.job(JOB, "order totals", *TASKS)
        Path("jobs").mkdir()
        Path("jobs/orders.sql").write_text(SCRIPT, encoding="utf-8")
        given = ("--job-id", JOB, "--jobmanager", cluster.url, "--former-ended")
        result = run("ledger", "adopt", "orders", *given, "--set", "d=e")
        assert result.code == 0, result.err
        assert "flinkcompat: By flinkcompat.toml, deployment orders: settings a.b.\n" in result.err
        head = full.head()
        assert head is not None
        assert (head.job.script, head.job.settings) == (SCRIPT, {"a.b": "c", "d": "e"})
        assert run("ledger", "adopt", "clicks", *given).err.startswith("flinkcompat: the script of the job is unknown")


@pytest.fixture
def cluster() -> Iterator[JobManagerStandIn]:
    stand_in = JobManagerStandIn()
    with serving(stand_in):
        yield stand_in


@pytest.mark.parametrize("style", ["text", "json"])
def test_adopt(style: str, ledger: Ledger, cluster: JobManagerStandIn, run: Run, snapshot: SnapshotAssertion) -> None:
    cluster.job(JOB, "nightly", *TASKS)
    Path("orders.sql").write_text(SCRIPT, encoding="utf-8")
    given = ("--job-id", JOB, "--script", "orders.sql", "--set", "a=b", "--jobmanager", cluster.url)
    result = run("ledger", "adopt", "orders", *given, "--format", style)
    assert result.code == 0
    assert result.err == "warning: the job's name is 'nightly', but the script names it 'order totals'\n"
    head = ledger.head()
    assert head is not None
    assert (head.kind, head.job.script, head.job.settings, head.job_id) == ("adopted", SCRIPT, {"a": "b"}, JOB)
    if style == "json":
        assert json.loads(result.out)["entry"]["number"] == 1
    else:
        assert result.out.replace(this_process(), "(this process)") == snapshot
    again = run("ledger", "adopt", "orders", *given)
    assert again.code == 2
    assert "there is nothing to adopt" in again.err


def test_adopt_a_program(ledger: Ledger, cluster: JobManagerStandIn, run: Run) -> None:
    cluster.job(JOB, "order totals", *TASKS)
    Path("orders.py").write_text(PROGRAM, encoding="utf-8")
    given = ("--job-id", JOB, "--script", "orders.py", "--jobmanager", cluster.url)
    refused = run("ledger", "adopt", "orders", *given, "--var", "DB_PASSWORD=planted-pw")
    assert (refused.code, ledger.entries()) == (2, ())
    assert "the variable 'DB_PASSWORD' contains a secret in plain text" in refused.err
    assert "planted-pw" not in refused.err + refused.out
    taken = run("ledger", "adopt", "orders", *given, "--var", "DB_PASSWORD=${conn.db.password}")
    assert (taken.code, taken.err) == (0, "")
    shown = run("ledger", "show", "orders").out
    assert "language     python" in shown
    assert "variables:\n  DB_PASSWORD = ${conn.db.password}" in shown
    assert 'orders = t_env.from_path("orders")' in shown


def test_a_program_is_adopted_with_the_files_beside_it(ledger: Ledger, cluster: JobManagerStandIn, run: Run) -> None:
    cluster.job(JOB, "order totals", *TASKS)
    Path("common").mkdir()
    Path("common/query.py").write_text('QUERY = open("query.sql").read()\n', encoding="utf-8")
    Path("orders.py").write_text(
        PROGRAM.partition("orders = ")[0] + "from common.query import QUERY\nt_env.execute_sql(QUERY)\n",
        encoding="utf-8",
    )
    query = "INSERT INTO totals SELECT customer, amount FROM orders"
    given = ("--job-id", JOB, "--script", "orders.py", "--jobmanager", cluster.url)
    given = (*given, "--var", "DB_PASSWORD=${conn.db.password}")
    Path("query.sql").write_text(f"-- 'password' = '{SECRET}'\n{query}", encoding="utf-8")
    refused = run("ledger", "adopt", "orders", *given)
    assert (refused.code, ledger.entries()) == (2, ())
    assert "password at query.sql:1:18" in refused.err
    assert SECRET not in refused.err + refused.out
    Path("query.sql").write_text(query, encoding="utf-8")
    taken = run("ledger", "adopt", "orders", *given)
    assert (taken.code, taken.err) == (0, "")
    head = ledger.head()
    assert head is not None
    assert head.job.files == {"common/query.py": 'QUERY = open("query.sql").read()\n', "query.sql": query}
    assert f'files:\n  common/query.py:\n    QUERY = open("query.sql").read()\n  query.sql:\n    {query}' in (
        run("ledger", "show", "orders").out
    )
    files = {**head.job.files, "query.sql": query + " WHERE amount > 0"}
    ledger.append(replace(head, job=replace(head.job, files=files)))
    changed = run("ledger", "diff", "orders").out
    assert changed.splitlines()[:2] == ["--- files of entry 1", "+++ files of entry 2"]
    assert changed.splitlines()[-2:] == [f"-  {query}", f"+  {query} WHERE amount > 0"]


@pytest.mark.slow
def test_ledger_on_s3(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address and what the AWS tools read from the environment are enough."""
    s3 = S3StandIn()
    with serving(s3):
        for name, value in {"ENDPOINT_URL": s3.url, "ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        root = f"s3://{s3.bucket()}/ledger"
        Ledger(root, "orders").append(FIRST)
        Ledger(root, "clicks").append(FIRST)
        result = run("ledger", "show", "orders", "--ledger", root)
        listed = run("ledger", "list", "--ledger", root)
        nothing = run("ledger", "list", "--ledger", f"{root}/orders")
    assert (result.code, result.err) == (0, "")
    assert "orders: entry 1, deployed at 2026-11-20 09:00 UTC" in result.out
    assert (listed.code, listed.err) == (0, "")
    assert [line.split()[:2] for line in listed.out.splitlines()[1:]] == [["clicks", "1"], ["orders", "1"]]
    assert (nothing.code, nothing.out) == (3, "")
