"""The parts of a rehearsal that need no Flink."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.compat import InputError
from airflow_flinkcompat.deploy.rehearsal.place import missing_slots
from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal, StoredOperator
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.model import RehearsalFinding
from tests.unit.deploy.flink.test_clients import Server, jobmanager, ok

FIXTURES = Path(__file__).parents[3] / "fixtures" / "rehearsal"
JOB, OTHER = "a" * 32, "b" * 32
FIRST, SECOND = "1" * 32, "2" * 32
WINDOW = StoredOperator(FIRST, "GlobalWindowAggregate[12]", True)
SOURCE = StoredOperator(SECOND, "Source: orders[8]", True)


# ------------------------------------------------------------------------------------------------------ the cluster
def of(server: Server) -> SqlGatewayTarget:
    return SqlGatewayTarget("http://gateway.test:8083", jobmanager(server))


def test_slots_that_are_missing_are_named() -> None:
    overview = {"GET /overview": [ok(**{"slots-available": 1, "slots-total": 8})]}
    fixed = Server(
        {**overview, "GET /jobmanager/config": [httpx.Response(200, json=[{"key": "rest.port", "value": 1}])]}
    )
    assert missing_slots(of(fixed), 1) == ""
    assert missing_slots(of(fixed), 3).startswith("3 free slots required, but the cluster has 1 of 8")
    row = {"key": "kubernetes.cluster-id", "value": "x"}
    growing = Server({**overview, "GET /jobmanager/config": [httpx.Response(200, json=[row])]})
    assert missing_slots(of(growing), 3) == ""


# --------------------------------------------------------------------------------------------------- what is read
FINDINGS = {
    "restored": Rehearsal(
        RehearsalFinding.RESTORED,
        job_id=JOB,
        live="RUNNING, no restart meanwhile",
        claimed=(WINDOW, SOURCE),
        unclaimed=(StoredOperator("4558" * 8, "StreamingFileWriter", True),),
        begun=(StoredOperator("99" * 16, "Deduplicate[4]", True),),
        basis=("operators in the cluster's log",),
    ),
    "refused": Rehearsal(
        RehearsalFinding.REFUSED,
        "IllegalStateException: Cannot map …",
        at="submit",
        job_id=JOB,
        live="RUNNING",
        dropped=(WINDOW,),
    ),
    "failed": Rehearsal(RehearsalFinding.REFUSED, "State D does not exist in the NFA", at="run", job_id=JOB),
    "untold": Rehearsal(
        RehearsalFinding.INCONCLUSIVE,
        "source orders (mysql-cdc) cannot be read next to the live job",
        live="not touched",
    ),
    "left": Rehearsal(
        RehearsalFinding.INCONCLUSIVE, "the JobManager does not answer", left=(f"job {JOB} may still start",)
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_what_a_reader_sees(name: str, snapshot: SnapshotAssertion) -> None:
    found = FINDINGS[name]
    assert "\n".join(found.lines()) == snapshot
    assert json.loads(json.dumps(found.to_dict()))["finding"] == str(found.finding)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.sql", "b.sql", "--job-id", JOB], "'sql-gateway' requires the address of its gateway"),
        (["a.sql", "b.sql", "--job-id", JOB, "--gateway", "http://g:1"], "its jobmanager: add --jobmanager URL"),
        (["a.sql", "b.sql", "--job-id", JOB, "--target", "gatway"], "there is no target 'gatway'. Installed targets: "),
        (
            ["a.sql", "b.sql", "--job-id", JOB, "--target", "jobmanager", "--jobmanager", "http://j:1"],
            "rehearsals are not possible on the JobManager at http://j:1",
        ),
        (
            ["a.sql", "b.sql", "--job-id", JOB, "--gateway", "nowhere", "--jobmanager", "http://j:1"],
            "is not the address",
        ),
        (
            ["a.sql", "c.sql", "--job-id", JOB, "--gateway", "http://g:1", "--jobmanager", "http://j:1"],
            "defines no job",
        ),
    ],
)
def test_bad_input_is_told(arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.sql", "b.sql"):
        Path(name).write_text("INSERT INTO k SELECT * FROM s;", encoding="utf-8")
    Path("c.sql").write_text("SET 'a' = 'b';", encoding="utf-8")
    result = CliRunner().invoke(cli, ["rehearse", *arguments])
    told = str(result.exception) if isinstance(result.exception, InputError) else result.output
    assert words in told
    assert result.exit_code != 0
