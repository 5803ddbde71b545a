"""``check --planner`` and ``flinkcompat planner``: the ground of a report, refusals, and what is missing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli.project import project_for
from airflow_flinkcompat.compat import Report
from airflow_flinkcompat.model import PLANNER_VARIABLE
from airflow_flinkcompat.model.installation import CACHE_VARIABLE
from airflow_flinkcompat.model.options import NETWORK_VARIABLE
from airflow_flinkcompat.planner.daemon import Daemon, close_all
from airflow_flinkcompat.planner.installation import install
from tests.support.cli.command import INCOMPATIBLE, V1, VALIDATOR, Run, report_of, save
from tests.unit.cli.project import CLICKS, HEAD, ORDERS

TABLES = """\
CREATE TABLE orders (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json');
CREATE TABLE totals (k STRING, x BIGINT) WITH ('connector' = 'print');
"""
SUM = f"{TABLES}INSERT INTO totals SELECT k, SUM(v) FROM orders GROUP BY k;\n"
MISSING = (
    "read from the script, without Flink's planner (Flink 2.3.0 is not on this machine: "
    "run flinkcompat planner install 2.3)"
)
MIGRATED = Path(__file__).parents[2] / "fixtures" / "migrations" / "a-metric-is-added-to-a-tumbling-window"
FLINK = ("--engine", "flink", "--fail-on", "never")


@pytest.fixture(autouse=True)
def default_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PLANNER_VARIABLE)


@pytest.fixture
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("FLINKCOMPAT_FLINK_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def flink() -> None:
    install("2.3")


@pytest.mark.usefixtures("nothing_installed")
def test_auto_names_what_is_missing_in_one_quiet_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(old=SUM, new=SUM.replace("SUM(v)", "SUM(v) + 1"))
    data = report_of(run("check", "old.sql", "new.sql", *FLINK, "--format", "json"))
    VALIDATOR.validate(data)
    assert (data["ground"], data["outcome"], data["warnings"]) == (MISSING, "compatible", [])
    assert Report.from_dict(data).ground == data["ground"]
    told = run("check", "old.sql", "new.sql", *FLINK)
    assert " ".join(told.out.splitlines()[-2:]) == f"R{MISSING[1:]}."
    assert run("check", "old.sql", "new.sql", "--fail-on", "never").out.count("planner") == 0, "no engine is named"
    monkeypatch.setenv(PLANNER_VARIABLE, "never")
    assert told.out.startswith(run("check", "old.sql", "new.sql", *FLINK).out), "all else is as without a planner"


@pytest.mark.usefixtures("nothing_installed")
def test_many_jobs_share_the_line(run: Run, project: Path) -> None:
    Path("flinkcompat.toml").write_text(HEAD + ORDERS + CLICKS, encoding="utf-8")
    for name in ("orders", "clicks"):
        Path(f"jobs/{name}.sql").write_text(INCOMPATIBLE, encoding="utf-8")
    for command in (("diff", "--against", "git:HEAD"), ("plan", "orders", "--against", "git:HEAD"), ("lint",)):
        result = run(*command)
        assert result.out.count("planner install") == result.out.count(MISSING) == 1, command
    pair = json.dumps({"id": 1, "old": SUM, "new": SUM.replace("SUM", "MAX")})
    result = run("batch", "-", "--engine", "flink", stdin=f"{pair}\n{pair}\n".encode())
    assert (result.out.count("planner"), result.err.count(MISSING)) == (0, 1)
    result = run("audit", "jobs", *FLINK, "--old-engine-version", "2.3", "--engine-version", "2.2")
    assert " ".join(result.out.split()).count(MISSING) == 1


@pytest.mark.usefixtures("nothing_installed")
def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(old=SUM, new=SUM.replace("SUM(v)", "MAX(v)"))
    Path("flinkcompat.toml").write_text('engine = "flink"\nplanner = "always"\nfail_on = "never"\n', encoding="utf-8")
    assert run("check", "old.sql", "new.sql").code == 2
    assert run("check", "old.sql", "new.sql", "--planner", "auto").code == 0
    monkeypatch.setenv(PLANNER_VARIABLE, "never")
    assert run("check", "old.sql", "new.sql").code == 0
    assert run("check", "old.sql", "new.sql", "--planner", "always").code == 2


def test_the_file_lets_connectors_connect_unless_the_environment_says_otherwise(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NETWORK_VARIABLE, "refuse")
    Path("flinkcompat.toml").write_text('planner_network = "allow"\n', encoding="utf-8")
    project_for(None, Path())
    assert os.environ[NETWORK_VARIABLE] == "refuse"
    monkeypatch.delenv(NETWORK_VARIABLE)
    project_for(None, Path())
    assert os.environ[NETWORK_VARIABLE] == "allow"


@pytest.mark.usefixtures("nothing_installed")
def test_always_is_an_error_where_it_is_missing(run: Run) -> None:
    save(old=SUM, new=SUM.replace("SUM(v)", "MAX(v)"))
    result = run("check", "old.sql", "new.sql", *FLINK, "--planner", "always")
    assert result.code == 2
    assert result.err == "flinkcompat: Flink 2.3.0 is not on this machine: run flinkcompat planner install 2.3\n"


@pytest.mark.usefixtures("nothing_installed")
def test_it_is_not_asked_about_another_layout_or_engine(run: Run) -> None:
    save(old=SUM, new=SUM.replace(", SUM", ",\n  SUM"))
    assert "ground" not in report_of(run("check", "old.sql", "new.sql", *FLINK, "--format", "json"))
    save(new=SUM.replace("SUM", "MAX"))
    assert "ground" not in report_of(run("check", "old.sql", "new.sql", "--engine", "vvr", "--format", "json"))
    result = run("check", "old.sql", "new.sql", "--engine", "vvr", "--planner", "always")
    assert (result.code, "add --engine flink" in result.err) == (2, True)


def test_a_line_without_a_planner(run: Run) -> None:
    result = run("planner", "install", "1.18")
    assert result.code == 2
    assert "lines with a planner: 2.3, 2.2" in result.err


def test_the_lines_of_the_project_are_installed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "flinkcompat.toml").write_text(
        '[deployments.a]\nscript = "a.sql"\nengine = "flink"\nengine_version = "1.18.1"\n'
        '[deployments.b]\nscript = "b.sql"\nengine = "vvr"\n'
    )
    result = run("planner", "install", "--config", str(tmp_path / "flinkcompat.toml"))
    assert "there is no planner for Flink 1.18" in result.err
    result = run("planner", "install", "--config", "/dev/null")
    assert (result.code, "begin with flinkcompat init" in result.err) == (2, True)


@pytest.mark.slow
@pytest.mark.usefixtures("flink")
def test_the_planner_sees_no_secret(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said, ask = [], Daemon.ask

    def recorded(self: Daemon, question: Mapping[str, Any]) -> dict[str, Any]:
        said.append(json.dumps(question))
        said.append(json.dumps(ask(self, question)))
        return json.loads(said[-1])

    monkeypatch.setattr(Daemon, "ask", recorded)
    lookup = (
        "SET 'fs.s3.secret-key' = 'hunter2-set';\n"
        "CREATE TABLE shops (k STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'jdbc', "
        "'url' = 'jdbc:mysql://u:hunter2-url@h/db', 'table-name' = 's', 'password' = 'hunter2-ddl');"
    )
    save(old=lookup + SUM, new=lookup + SUM.replace("FROM orders", "FROM orders WHERE v > 0"))
    setting = ("--set", "fs.oss.accessKeySecret=hunter2-option")
    result = run("check", "old.sql", "new.sql", *FLINK, *setting, "--allow-secrets", "--format", "json")
    assert report_of(result)["ground"].startswith("planned by Flink 2.3.0")
    assert len(said) > 2
    assert "CREATE TABLE shops" in said[0]
    assert not [each for each in said if "hunter2" in each]
    close_all()


@pytest.mark.slow
@pytest.mark.usefixtures("flink")
def test_what_a_reader_sees(run: Run, snapshot: SnapshotAssertion) -> None:
    refused = SUM.replace("SUM(v)", "CAST(AVG(v) + COUNT(*) AS BIGINT)")
    respelled = SUM.replace("FROM orders", "FROM orders WHERE k IN ('a', 'b')")
    save(old=SUM, new=refused, of=respelled, nope=SUM.replace("SUM(v)", "SUM(nope)"))
    save(other=respelled.replace("k IN ('a', 'b')", "k = 'a' OR k = 'b'"))
    shown = {}
    for name, (old, new) in {"refused": ("old", "new"), "spelling": ("of", "other")}.items():
        shown[name] = run("check", f"{old}.sql", f"{new}.sql", *FLINK, "--planner", "always").out
    assert shown == snapshot
    refusal = "nope.sql:3:34: Flink 2.3.0 refuses it: Column 'nope' not found in any table"
    for command in (("check", "old.sql", "nope.sql"), ("check", "/dev/null", "nope.sql")):
        result = run(*command, *FLINK)
        assert (result.code, refusal in result.err) == (2, True)
    result = run("lint", "old.sql", "nope.sql", *FLINK)
    refusal = refusal.replace(": ", ": error: input-not-readable: ", 1)
    assert (result.code, refusal in result.out, "1 planned by Flink 2.3.0" in result.out) == (2, True, True)
    assert run("lint", "old.sql", *FLINK).out.endswith("1 script: 1 read; planned by Flink 2.3.0\n")
    deployed = report_of(run("check", "nope.sql", "old.sql", *FLINK, "--format", "json"))
    VALIDATOR.validate(deployed)
    assert (deployed["outcome"], deployed["ground"]) == ("unknown", "planned by Flink 2.3.0, the proposed script alone")
    assert "--old-engine-version" in deployed["findings"][0]["message"]
    assert "2.3: ready: Flink 2.3.0 in " in run("planner", "status").out
    save(of_kafka=V1)
    planned = {
        ("check", "old.sql", "new.sql", *FLINK, "--explain-plan"): "Planned by Flink 2.3.0",
        ("migrate", "old.sql", "new.sql", "--dry-run"): "MIGRATABLE",
        ("migrate", "old.sql", "nope.sql", "--dry-run"): "nope.sql:3:34: Flink 2.3.0 refuses it: Column 'nope'",
        ("migrate", "of_kafka.sql", "of_kafka.sql", "--dry-run"): "needs org.apache.flink:flink-sql-connector-kafka",
    }
    for command, words in planned.items():
        result = run(*command)
        assert words in result.out + result.err, command
    of_job = ("--savepoint", str(MIGRATED / "old"))
    scripts = [str(MIGRATED / f"{name}.sql") for name in ("old", "new")]
    assert "Planned by Flink 2.3.0" in run("check", *scripts, *FLINK, *of_job).out
    other = ("--set", "table.optimizer.agg-phase-strategy=ONE_PHASE")
    for command, words in (
        (
            ("check", *scripts, *FLINK),
            "does not contain, so the job runs a different script or different settings (--old-set)",
        ),
        (
            ("migrate", *scripts, "--dry-run"),
            "operators of the deployed script differ from the operators of the job",
        ),
    ):
        result = run(*command, *of_job, *other)
        assert words in " ".join((result.out + result.err).split()), command
    close_all()
