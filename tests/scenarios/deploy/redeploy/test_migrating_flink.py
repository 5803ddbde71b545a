"""A real Flink goes on from a savepoint that a redeploy rewrote; where it does not, the former job does."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side as Script
from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, RolledBack, Wait, Waiting, deploy
from airflow_flinkcompat.deploy.catching_up import CatchUp
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, DeployingEntry, MigratedEntry, Review, StoppedEntry
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.savepoint_writing import SavepointWriting
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.deploy.warm_restart import WarmRestart
from airflow_flinkcompat.exec_graph.layout import StateLayout, Unknown
from airflow_flinkcompat.exec_graph.migration import Accept, MigrationExtent
from airflow_flinkcompat.exec_graph.nodes import layout
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.warm_start import WarmStart
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.csv_job import SETTINGS, Files, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

OPTIONS = Options(settle_seconds=1, start_timeout=120)
FIRST = [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")]  # the last one ends minute 0, opens minute 1
SECOND = [("ann", 7, "01:20"), ("ann", 1, "02:10")]  # ends minute 1
COLUMNS = "customer STRING, total BIGINT, since TIMESTAMP(3), most BIGINT"
OLD = {"columns": COLUMNS, "select": "customer, SUM(amount), window_start, MAX(amount)"}
NEW = {"columns": COLUMNS, "select": "customer, MAX(amount), window_start, SUM(amount)"}
"""The metrics change places: Flink alone goes on with one read for the other, without a word."""
MINUTE_0 = 'ann,3,"2026-01-01 00:00:00",2'
MINUTE_1_OLD, MINUTE_1_NEW = 'ann,12,"2026-01-01 00:01:00",7', 'ann,7,"2026-01-01 00:01:00",12'


def script(files: Files, **changes: str) -> Script:
    return Script(files.script(**changes), dict(SETTINGS), engine="flink", engine_version="2.3.0", source="orders.sql")


SAME = re.compile("history and the savepoint are equal for 1 keys or windows")


def first(target: SqlGatewayTarget, ledger: Ledger, files: Files) -> DeployedEntry:
    files.arrive("1.csv", FIRST)
    entry = deploy(target, ledger, script(files, **OLD), checked_old_sha256=None, options=OPTIONS, log=print)
    wait_for(lambda: files.rows() == [MINUTE_0], "minute 0 is written")
    return entry


def narrow(target: SqlGatewayTarget, ledger: Ledger, files: Files) -> DeployedEntry:
    """A job of one metric, whose window of minute 1 is open."""
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 50, "01:10")])
    entry = deploy(target, ledger, script(files), checked_old_sha256=None, options=OPTIONS, log=print)
    wait_for(lambda: files.rows() == ['ann,1,"2026-01-01 00:00:00"'], "minute 0 is written")
    return entry


def after_minute_1(files: Files) -> list[str]:
    files.arrive("2.csv", SECOND)
    wait_for(lambda: len(files.rows()) >= 2, "minute 1 is written")
    return files.rows()


def migrated(
    flink: LocalFlink,
    target: SqlGatewayTarget | JobManagerTarget,
    ledger: Ledger,
    new: Script,
    **changes: Any,
) -> DeployedEntry:
    head = ledger.head()
    assert head is not None
    cluster = Cluster(
        target, TargetLocation("sql-gateway", {"gateway": flink.gateway_url, "jobmanager": flink.jobmanager_url})
    )
    given: dict[str, Any] = {
        "at_least": MigrationExtent.WHOLE,
        "plan_dir": None,
        "rehearsed": True,
        "log": print,
        **changes,
    }
    return deploy(
        target,
        ledger,
        new,
        start_mode="migrated",
        checked_old_sha256=head.sha256,
        review=Review("incompatible"),
        migration=SavepointMigration(Script.of(head.job), new, cluster, head.job_id, **given),
        options=OPTIONS,
        log=given["log"],
    )


def damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off the end of every savepoint that is rewritten from now on."""
    write = SavepointMigration.write

    def damaged(self: SavepointMigration, savepoint: str, folder: str, prepared: str | None) -> Any:
        found = write(self, savepoint, folder, prepared)
        metadata = Path(folder.removeprefix("file:")) / "_metadata"
        metadata.write_bytes(metadata.read_bytes()[:-40])
        return found

    monkeypatch.setattr(SavepointMigration, "write", damaged)


def test_metrics_change_places_and_the_open_window_keeps_both(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    first(target, ledger, files)
    entry = migrated(local_flink, target, ledger, script(files, **NEW))
    (stopped,) = [each.stop.savepoint for each in ledger.entries() if isinstance(each, StoppedEntry)]
    (done,) = [each for each in ledger.entries() if isinstance(each, MigratedEntry)]
    assert (entry.start.savepoint, entry.start.migrated_from) == (done.migrated_to, stopped)
    assert target.restored_from(str(entry.job_id)).snapshot == done.migrated_to
    assert done.migration["kept"] == "whole"
    assert done.evidence == ("rehearsed: a job of the new script was restored from the savepoint",)
    assert target.running(ledger.deployment) == (entry.job_id,)
    assert sum(not job.terminal for job in target.jobs()) == 1, "neither template nor rehearsal runs on"
    assert after_minute_1(files) == [MINUTE_0, MINUTE_1_NEW]


def keyed(files: Files, *metrics: str) -> Script:
    """A job without watermarks, whose sums and maxima are updated by each row."""
    tables, _, _ = files.script().partition("CREATE TABLE totals")
    text = f"""{tables.replace(", WATERMARK FOR ts AS ts", "")}
    CREATE TABLE totals (customer STRING, {metrics[0]} BIGINT, {metrics[1]} BIGINT) WITH (
      'connector' = 'filesystem', 'path' = '{files.sink.as_uri()}', 'format' = 'debezium-json',
      'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.rolling-policy.check-interval' = '100 ms');
    INSERT INTO totals SELECT customer, {", ".join(METRICS[name] for name in metrics)} FROM orders GROUP BY customer;
    """
    return Script(text, dict(SETTINGS), engine="flink", engine_version="2.3.0", source="orders.sql")


METRICS = {"total": "SUM(amount)", "most": "MAX(amount)"}


def changes(files: Files) -> list[tuple[int, int]]:
    """The new value of each change that the sink has committed: total and maximum."""
    rows = [json.loads(row)["after"] for row in files.rows()]
    return sorted((row["total"], row["most"]) for row in rows if row is not None)


def test_the_new_script_catches_up_before_the_stop(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    """Rows that arrive after the migration of the state are in the state of the new job, and are written once."""
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 5, "00:20")])
    old, new = keyed(files, "total", "most"), keyed(files, "most", "total")
    deploy(target, ledger, old, checked_old_sha256=None, options=OPTIONS, log=print)
    wait_for(lambda: len(changes(files)) == 2, "the first rows are written")
    said: list[str] = []

    def log(line: str) -> None:
        print(line)
        said.append(line)
        if line.startswith("caught up with the live job"):
            files.arrive("2.csv", [("ann", 7, "00:30")])
            wait_for(lambda: len(changes(files)) == 3, "the next row is written")

    with ExitStack() as opened:
        entry = migrated(local_flink, target, ledger, new, log=log, catch_up="always", hold=opened.enter_context)
    (done,) = [each for each in ledger.entries() if isinstance(each, MigratedEntry)]
    assert entry.start.savepoint == done.migrated_to
    assert done.evidence == ("a job of the new script restored this state, and read all rows up to the stop",)
    assert [line for line in said if line.startswith("caught up with the stopped job")]
    savepoints = {each.name for each in (local_flink.work_dir / "savepoints").iterdir()}
    assert not [name for name in savepoints if name.startswith("caught-up")], "prepared state is deleted"
    assert target.running(ledger.deployment) == (entry.job_id,)
    assert sum(not job.terminal for job in target.jobs()) == 1, "the job with stand-ins has ended"
    files.arrive("3.csv", [("ann", 2, "00:40")])
    wait_for(lambda: len(changes(files)) > 3, "the last row is written")
    assert changes(files) == [(1, 1), (6, 5), (13, 7), (15, 7)]


def copying(files: Files, *metrics: str) -> Script:
    """The job of ``keyed`` with another sink nearer to the source. A stand-in for this sink changes operator ids."""
    made = keyed(files, *metrics)
    tables, _, query = made.script.partition("INSERT INTO")
    text = f"""{tables}
    CREATE TABLE copies (customer STRING, amount BIGINT) WITH (
      'connector' = 'filesystem', 'path' = '{Files(files.root / "copies").sink.as_uri()}', 'format' = 'csv',
      'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.rolling-policy.check-interval' = '100 ms');
    EXECUTE STATEMENT SET BEGIN
    INSERT INTO copies SELECT customer, amount FROM orders;
    INSERT INTO {query.replace("customer", "UPPER(customer)")}
    END;
    """
    return replace(made, script=text)


@pytest.mark.nightly
@pytest.mark.parametrize("catch_up", [False, "always"], ids=["rewritten", "caught-up"])
def test_a_statement_set_whose_operator_ids_differ_with_stand_ins(
    catch_up: Any, local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    """The template and the jobs with stand-ins have other operator ids. No row is lost or written twice."""
    copies = Files(files.root / "copies")
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 5, "00:20")])
    old, new = copying(files, "total", "most"), copying(files, "most", "total")
    deploy(target, ledger, old, checked_old_sha256=None, options=OPTIONS, log=print)
    wait_for(lambda: len(changes(files)) == 2, "the first rows are written")
    with ExitStack() as opened:
        migrated(local_flink, target, ledger, new, catch_up=catch_up, hold=opened.enter_context)
    (done,) = [each for each in ledger.entries() if isinstance(each, MigratedEntry)]
    assert done.evidence == (
        "a job of the new script restored this state, and read all rows up to the stop"
        if catch_up
        else "rehearsed: a job of the new script was restored from the savepoint",
    )
    place = Path(str(done.migrated_to).removeprefix("file:"))
    assert [*place.parent.glob("migrated-*")] == [place], "the rehearsal has left no copy"
    files.arrive("2.csv", [("ann", 7, "00:30")])
    wait_for(lambda: len(changes(files)) > 2 and len(copies.rows()) > 2, "the last row is written")
    assert changes(files) == [(1, 1), (6, 5), (13, 7)]
    assert copies.rows() == ["ann,1", "ann,5", "ann,7"]


@pytest.mark.nightly
@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_a_run_that_is_killed_while_it_catches_up_is_resumed(
    written: bool,
    local_flink: LocalFlink,
    target: SqlGatewayTarget,
    ledger: Ledger,
    files: Files,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process ends after the stop, before or after the new script has read the last rows."""
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 5, "00:20")])
    old, new = keyed(files, "total", "most"), keyed(files, "most", "total")
    deploy(target, ledger, old, checked_old_sha256=None, options=OPTIONS, log=print)
    wait_for(lambda: len(changes(files)) == 2, "the first rows are written")
    advance = CatchUp.advance

    def killed(self: CatchUp, state: str, last: str, folder: str, seconds: float) -> None:
        stopped = any(isinstance(each, StoppedEntry) for each in ledger.entries())
        if written or not stopped:
            advance(self, state, last, folder, seconds)
        if stopped:
            raise KeyboardInterrupt

    def attempted() -> None:
        with ExitStack() as opened:
            migrated(local_flink, target, ledger, new, catch_up="always", hold=opened.enter_context)

    with monkeypatch.context() as patched:
        patched.setattr(CatchUp, "advance", killed)
        with pytest.raises(KeyboardInterrupt):
            attempted()
    attempted()
    (done,) = [each for each in ledger.entries() if isinstance(each, MigratedEntry)]
    assert done.evidence == ("a job of the new script restored this state, and read all rows up to the stop",)
    assert len([each for each in ledger.entries() if isinstance(each, StoppedEntry)]) == 1
    assert not [*files.root.parent.rglob("caught-up-*")]
    assert sum(not job.terminal for job in target.jobs()) == 1
    files.arrive("2.csv", [("ann", 7, "00:30")])
    wait_for(lambda: len(changes(files)) > 2, "the last row is written")
    assert changes(files) == [(1, 1), (6, 5), (13, 7)]


@pytest.mark.nightly
def test_a_metric_is_added_and_the_open_window_keeps_its_sum(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    """The sink gets a column for it; the new metric counts from the switch on."""
    narrow(target, ledger, files)
    migrated(local_flink, target, ledger, script(files, **OLD), at_least=MigrationExtent.PARTIAL)
    assert after_minute_1(files) == ['ann,1,"2026-01-01 00:00:00"', 'ann,57,"2026-01-01 00:01:00",7']


@pytest.mark.nightly
def test_history_is_read_while_the_job_runs_and_at_the_switch_the_rest(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    """The open window has the new metric of all its rows, though the most of them came before the savepoint."""
    narrow(target, ledger, files)
    said: list[str] = []
    with ExitStack() as opened:
        known = KnownHistory({"orders": ""})
        migrated(
            local_flink, target, ledger, script(files, **OLD), history=known, hold=opened.enter_context, log=said.append
        )
    assert not [*files.root.parent.rglob("prepared.json")], "it is deleted once the savepoint is written"
    stop = said.index(next(line for line in said if line.startswith("migrating ")))
    assert any(line.startswith("prepared rows of ") for line in said[:stop]), "before the job was stopped"
    assert any(SAME.search(line) for line in said[:stop])
    assert any(line.endswith("after the prepared rows") for line in said[stop:])
    assert any(line.endswith("is equal when recomputed in plain Python") for line in said[stop:])
    (done,) = [each for each in ledger.entries() if isinstance(each, MigratedEntry)]
    assert done.migration["sent_until"] == "2026-01-01T00:01:10.001"
    assert after_minute_1(files) == ['ann,1,"2026-01-01 00:00:00"', 'ann,57,"2026-01-01 00:01:00",50']


@pytest.mark.nightly
@pytest.mark.parametrize(
    "left", [KeyboardInterrupt(), Waiting("it takes its time", Wait("", 0, 0))], ids=["killed", "waits"]
)
def test_a_run_that_is_taken_up_goes_on_from_what_was_prepared(
    left: BaseException,
    local_flink: LocalFlink,
    target: SqlGatewayTarget,
    ledger: Ledger,
    files: Files,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process ends once the job has stopped, as that of a task that is killed, or waits in the triggerer."""
    narrow(target, ledger, files)
    said: list[str] = []
    new, again = script(files, **OLD), {"history": KnownHistory({"orders": ""}), "log": said.append}

    def ends(*given: object) -> None:
        raise left

    def attempted() -> None:
        with ExitStack() as opened:
            migrated(local_flink, target, ledger, new, hold=opened.enter_context, **again)

    with monkeypatch.context() as patched:
        patched.setattr(SavepointMigration, "write", ends)
        with pytest.raises(type(left)):
            attempted()
    assert [each for each in ledger.entries() if isinstance(each, DeployingEntry) and each.prepared]
    assert [*files.root.parent.rglob("prepared.json")]
    attempted()
    assert sum(line.startswith("taking a savepoint") for line in said) == 1
    assert any(line.endswith("after the prepared rows") for line in said)
    assert not [*files.root.parent.rglob("prepared.json")]
    assert after_minute_1(files) == ['ann,1,"2026-01-01 00:00:00"', 'ann,57,"2026-01-01 00:01:00",50']


@pytest.mark.nightly
def test_where_history_is_not_what_the_job_has_read_nothing_is_stopped(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    """The file has lost a row of the open window since."""
    entry = narrow(target, ledger, files)
    (files.source / "1.csv").write_text("ann,1,2026-01-01 00:00:10\n")
    known = KnownHistory({"orders": ""})
    with ExitStack() as opened, pytest.raises(DeployRefused, match="history differs from the rows that"):
        migrated(local_flink, target, ledger, script(files, **OLD), history=known, hold=opened.enter_context)
    assert target.running(ledger.deployment) == (entry.job_id,)
    assert ledger.head() == entry
    assert not [*files.root.parent.rglob("prepared-*")]


@pytest.mark.nightly
def test_where_history_cannot_be_read_nothing_is_stopped(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    entry = narrow(target, ledger, files)
    known = KnownHistory({"orders": (files.root / "nowhere").as_uri()})
    with (
        ExitStack() as opened,
        pytest.raises(DeployRefused, match="the job keeps running, because its state cannot be computed"),
    ):
        migrated(local_flink, target, ledger, script(files, **OLD), history=known, hold=opened.enter_context)
    assert target.running(ledger.deployment) == (entry.job_id,)
    assert ledger.head() == entry


@pytest.mark.nightly
def test_a_restart_begins_with_all_state_that_history_says(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    """The open window, which is longer now, has the rows that the former job had read."""
    first(target, ledger, files)
    said = started_warm(local_flink, target, ledger, files)
    assert "windows over table orders that end by 2026-01-01T00:01:10.001 count as emitted" in "\n".join(said)
    (done,) = [each for each in ledger.entries() if isinstance(each, MigratedEntry)]
    assert done.evidence == ("rehearsed: a job of the new script was restored from the savepoint",)
    assert after_minute_1(files) == ['ann,15,"2026-01-01 00:00:00",7', MINUTE_0]


def started_warm(flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files) -> list[str]:
    """A redeploy of longer windows, and what it said."""
    head = ledger.head()
    assert head is not None
    longer = script(files, **OLD)
    longer = replace(longer, script=longer.script.replace("INTERVAL '1' MINUTE", "INTERVAL '2' MINUTE"))
    where = TargetLocation("sql-gateway", {"gateway": flink.gateway_url, "jobmanager": flink.jobmanager_url})
    said: list[str] = []
    with ExitStack() as opened:
        restart = WarmRestart(
            longer,
            Cluster(target, where),
            head.job_id,
            lambda own, side, plan: WarmStart.of(own, side, plan, KnownHistory({"orders": ""}), {}),
            plan_dir=None,
            rehearsed=True,
            hold=opened.enter_context,
            log=said.append,
        )
        assert restart.is_possible()
        deploy(
            target,
            ledger,
            longer,
            start_mode="migrated",
            checked_old_sha256=head.sha256,
            review=Review("incompatible"),
            migration=restart,
            options=OPTIONS,
            log=said.append,
        )
    return said


@pytest.mark.nightly
def test_a_jobmanager_alone_has_a_planner_beside_it(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    """Its SQL driver runs the scripts; the Gateway plans them, takes the template and rehearses."""
    files.arrive("1.csv", FIRST)
    with JobManagerTarget(local_flink.jobmanager_url) as alone:
        deploy(alone, ledger, script(files, **OLD), checked_old_sha256=None, options=OPTIONS, log=print)
        wait_for(lambda: files.rows() == [MINUTE_0], "minute 0 is written")
        where = TargetLocation(
            "sql-gateway", {"gateway": local_flink.gateway_url, "jobmanager": local_flink.jobmanager_url}
        )
        entry = migrated(local_flink, alone, ledger, script(files, **NEW), planner=lambda: Cluster(target, where))
        assert alone.running(ledger.deployment) == (entry.job_id,)
    assert after_minute_1(files) == [MINUTE_0, MINUTE_1_NEW]


@pytest.mark.nightly
def test_a_savepoint_that_was_damaged_brings_the_former_job_back(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewritten savepoint loses a file before the rehearsal: Flink refuses it, and nothing is lost."""
    first(target, ledger, files)
    damage(monkeypatch)
    with pytest.raises(RolledBack, match="Rolled back: the script of entry 4 runs again"):
        migrated(local_flink, target, ledger, script(files, **NEW))
    assert after_minute_1(files) == [MINUTE_1_OLD, MINUTE_0]


def misunderstand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of what Flink stores that is wrong for both scripts alike, as that of OVER without time was."""

    def wrong(*given: Any) -> StateLayout | Unknown | None:
        made = layout(*given)
        if not isinstance(made, StateLayout):
            return made
        return replace(made, states=tuple(replace(each, name=f"{each.name}-list") for each in made.states))

    monkeypatch.setattr("airflow_flinkcompat.exec_graph.from_compiled.layout", wrong)


@pytest.mark.nightly
def test_state_that_is_not_understood_stops_nothing(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = first(target, ledger, files)
    misunderstand(monkeypatch)
    # The template is compared first, and finds the same.
    monkeypatch.setattr(SavepointWriting, "prepare", lambda self: None)
    with pytest.raises(
        DeployRefused, match=r"the old plan predicts window-aggs-list .*, but the savepoint contains window-agg"
    ):
        migrated(local_flink, target, ledger, script(files, **NEW))
    assert target.running(ledger.deployment) == (entry.job_id,)
    assert ledger.head() == entry


@pytest.mark.nightly
def test_state_that_is_not_understood_after_the_stop_brings_the_former_job_back(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    first(target, ledger, files)
    misunderstand(monkeypatch)
    monkeypatch.setattr(SavepointMigration, "prepare", lambda self: None)
    with pytest.raises(RolledBack, match="the old plan predicts window-aggs-list"):
        migrated(local_flink, target, ledger, script(files, **NEW))
    assert after_minute_1(files) == [MINUTE_1_OLD, MINUTE_0]


def test_other_windows_are_refused_and_the_job_goes_on(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    entry = first(target, ledger, files)
    other = script(files, **OLD)
    other = replace(other, script=other.script.replace("INTERVAL '1' MINUTE", "INTERVAL '2' MINUTE"))
    with pytest.raises(DeployRefused, match="its windows are longer"):
        migrated(local_flink, target, ledger, other)
    assert target.running(ledger.deployment) == (entry.job_id,)
    assert ledger.head() == entry


@pytest.mark.nightly
def test_a_source_begins_anew_elsewhere_and_the_open_window_keeps_its_sum(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, files: Files
) -> None:
    first(target, ledger, files)
    other = files.root / "elsewhere"
    other.mkdir()
    (other / "1.csv").write_text("ann,7,2026-01-01 00:01:20\nann,1,2026-01-01 00:02:10\n")
    moved = script(files, **NEW)
    moved = replace(moved, script=moved.script.replace(files.source.as_uri(), other.as_uri()))
    with pytest.raises(DeployRefused, match="path changed, so it may read different data"):
        migrated(local_flink, target, ledger, moved)
    migrated(local_flink, target, ledger, moved, at_least=MigrationExtent.PARTIAL, accepted=(Accept.SOURCE_MOVED,))
    files.arrive("2.csv", [("ann", 1000, "01:20")])  # where nobody reads any more
    wait_for(lambda: len(files.rows()) >= 2, "minute 1 is written")
    assert files.rows() == [MINUTE_0, MINUTE_1_NEW]
