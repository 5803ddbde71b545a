"""Measured restores, rehearsed: which pairs, and what a rehearsal has to find.

How each pair really ended is in ``tests/fixtures/measured``: there the old job was stopped and the new one started in
its place. Here the old job goes on, and a rehearsal beside it has to come to the same.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from airflow_flinkcompat.deploy import JobManager, SqlGateway
from airflow_flinkcompat.deploy.flink.execution import ScriptRunner
from airflow_flinkcompat.deploy.flink.statements import prepare
from airflow_flinkcompat.deploy.plans import unresolved
from airflow_flinkcompat.deploy.rehearsal import Cluster, Finding, Patience, Rehearsal, RehearsalOptions, rehearse
from measure.progress import Arrival, wait_read, wait_running
from tests import measured
from tests.measured import Restore

ROWS: Mapping[str, list[str]] = json.loads((measured.FOLDER / "rows.json").read_text(encoding="utf-8"))
"""Table → its rows before the savepoint, as the pairs were run with."""
QUICK = RehearsalOptions(patience=Patience(settle=0.3, start=60, savepoint=60, clean_up=60))
_TABLE = re.compile(
    r"CREATE TABLE (?P<table>\w+) \((?:(?!CREATE TABLE).)*?'path'='(?P<path>file:///data[^']*)'", re.DOTALL
)

_RIGHT = """w-unchanged w-reformat-comment-alias w-add-window-start x-view-rename x-pipeline-name x-cte u-ttl-add
g-earlyfire-add ga-alias-subquery rj-unchanged tn-rank-add ms-unchanged ij-narrower dd-pa-unchanged wd-unchanged"""
_WRONG_WITHOUT_A_WORD = """w-mod-max-min w-size-1to2-ws g-mod-max-min t-mod-agg-sum-max ga-reorder-sametypes
oa-rows-2-to-4 tn-n-up rj-keys-reorder dd-ra-to-rd"""
_REFUSED_AT_RESTORE = """w-add-agg w-tumble-to-hop w-distinct-add g-add-agg t-order-col u-add-agg x-source-b-int
ga-key-type oa-add-count tn-part-add rj-key-add ij-input-add-col ga-key-notnull"""
_REFUSED_AT_SUBMIT = """w-reorder w-tumble-to-session w-filter-nonwindow-add x-onephase g-proctime g-add-key
x-maxparallelism-change x-stmtset-add-samesource x-stmtset-remove ga-key-del ga-minibatch-on oa-where-add rj-third-add
ms-two-sources-add-last"""
IDS = tuple(f"{_RIGHT} {_WRONG_WITHOUT_A_WORD} {_REFUSED_AT_RESTORE} {_REFUSED_AT_SUBMIT}".split())


def pairs() -> list[Restore]:
    """The restores of ``IDS``, each with a sink."""
    files = ("flink-2.3-restores.json", "flink-2.3-restores-wide.json")
    found = {pair.id: pair for file in files for pair in measured.load(file, wrap=True, only=IDS)}
    return [found[each] for each in IDS]


def expected(pair: Restore) -> tuple[Finding, str]:
    """The finding, and where it is refused."""
    if pair.outcome.startswith("refused_at_"):
        return Finding.REFUSED, pair.outcome.removeprefix("refused_at_")
    assert pair.outcome.startswith("restored_"), pair.outcome
    return Finding.RESTORED, ""


@dataclass(frozen=True)
class Script:
    """A side, reduced to what a rehearsal needs of it."""

    script: str
    settings: Mapping[str, str]
    source: str


@contextmanager
def running(gateway: SqlGateway, jobs: JobManager, side: Script, name: str) -> Iterator[str]:
    """The side as a live job, every task of it running; it does not outlive the block."""
    job_id = uuid.uuid4().hex
    prepared, runner = prepare(side.script, side.source), ScriptRunner(unresolved, gateway)
    config = {"$internal.pipeline.job-id": job_id, "pipeline.name": name, "table.dml-sync": "false"}
    with gateway.session(side.settings) as session:
        for statement in prepared.setup:
            runner.run(session, statement, statement.text)
        runner.run(session, prepared.job, prepared.job_sql, config)
    try:
        wait_running(jobs, job_id)
        yield job_id
    finally:
        status = jobs.status(job_id)
        if status and not status.terminal:
            jobs.cancel(job_id)


def rehearsed(gateway: SqlGateway, jobs: JobManager, pair: Restore, folder: Path) -> Rehearsal:
    """What a rehearsal finds while the old side runs and has read its rows."""
    old, new = (
        Script(_placed(text, folder), settings, f"{name}.sql")
        for text, settings, name in ((pair.old, pair.settings_old, "old"), (pair.new, pair.settings_new, "new"))
    )
    with running(gateway, jobs, old, pair.id) as job_id:
        rows = {table: len(ROWS[name]) for table, name in _tables(pair.old).items()}
        wait_read(jobs, job_id, Arrival(rows, {}))
        return rehearse(Cluster(gateway, jobs), job_id, old, new, QUICK, log=print)


def _tables(script: str) -> dict[str, str]:
    """Declared table → the name of its rows."""
    return {match["table"]: _rows_of(match["path"]) for match in _TABLE.finditer(script)}


def _rows_of(path: str) -> str:
    return path.removeprefix("file:///data").strip("/") or "MyTable"


def _placed(script: str, folder: Path) -> str:
    """The script over rows in ``folder``, which are put there; its sink's name is a keyword."""
    script = re.sub(r"(CREATE TABLE|INSERT INTO) Result\b", r"\1 `Result`", script)
    for match in _TABLE.finditer(script):
        rows = folder / _rows_of(match["path"])
        if not rows.exists():
            hidden = folder / f".{rows.name}"
            shutil.rmtree(hidden, ignore_errors=True)
            hidden.mkdir(parents=True)
            (hidden / "before.csv").write_text("\n".join(ROWS[rows.name]) + "\n", encoding="utf-8")
            hidden.rename(rows)
    return re.sub(
        r"'path'='(file:///data[^']*)'", lambda match: f"'path'='{(folder / _rows_of(match[1])).as_uri()}'", script
    )
