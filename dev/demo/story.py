"""The story: six versions of one job, and six decisions of the gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, ShadowedEntry
from dev.demo.narration import LIMIT_SECONDS, Narrator, Step, excerpt, require, wait_for
from dev.demo.orders import MINUTE, START, Before, Feed, Row, counts_of, differences, ended, text, totals, windows_of
from dev.demo.parts import PLANNED, Parts
from dev.demo.world import BOUNDARY, DAG_ID, World, result_rows

RESUME = "Resume from savepoint"
MIGRATE = "Migrate the state"
# Event times of the proposed versions: in the middle of a minute, so that a window is open.
PROPOSE_V2, AFTER_V2 = START + 2 * MINUTE + timedelta(seconds=40), START + 4 * MINUTE
PROPOSE_V3, AFTER_V3 = START + 5 * MINUTE + timedelta(seconds=40), START + 7 * MINUTE
PROPOSE_V4 = BOUNDARY + MINUTE
# Two windows of five minutes of the live job alone, plus the watermark's delay.
END = BOUNDARY + 11 * MINUTE
COMPARED = BOUNDARY + 10 * MINUTE
PROPOSE_V5, AFTER_V5 = COMPARED + 2 * MINUTE + timedelta(seconds=40), COMPARED + 7 * MINUTE
PROPOSE_V6, AFTER_V6 = COMPARED + 7 * MINUTE + timedelta(seconds=40), COMPARED + 11 * MINUTE

Moment = Callable[[str, str], None]


@dataclass
class Story:
    """Tell the story with running services. ``moment(name, run id)`` marks a page that is worth a look.

    Every method raises DemoError (or the error of a part) when something is not as it should be.
    """

    world: World
    parts: Parts
    feed: Feed
    narrator: Narrator
    moment: Moment = lambda name, run: None

    def tell(self) -> tuple[Step, ...]:
        """All six versions, in order."""
        first = self.first, self.output_columns, self.source_option
        steps = (*first, self.window_size, self.metric, self.shadow_run)
        return tuple(step() for step in steps)

    # -- v1

    def first(self) -> Step:
        """v1: nothing is deployed yet."""
        began = self._title("v1: orders per item and minute; nothing is deployed yet")
        self.world.propose(1)
        self.feed.go_on(PROPOSE_V2)
        self.parts.client.unpause(DAG_ID, timeout=LIMIT_SECONDS)
        run = self.parts.run_number(1)
        self.parts.follow(run, {"deploy_first": "success"})
        states = self.parts.finish(run)
        entry = self.parts.deployed()
        self.parts.require_running(entry)
        require(states["backfill"] == "skipped", "a first deployment needs no backfill, but one was started")
        self._wait_for_feed()
        rows = self._expect_minutes(START + 2 * MINUTE)
        proof = f"started without state and without a backfill; {len(rows)} rows, each equal to the sum of its orders"
        self.narrator.proved(proof)
        return self._step(began, "v1", "first version", run, "deploy_first", (proof,), job_id=entry.job_id, rows=rows)

    # -- v2

    def output_columns(self) -> Step:
        """v2: one more output column, so the state still fits."""
        began = self._title("v2: one more output column, the average price")
        run, before = self._propose(2, PROPOSE_V2)
        self._follow_check(run, "compatible")
        self.parts.follow(run, {"resume": "success"})
        self.parts.finish(run)
        proofs, facts = self._resumed(before, AFTER_V2)
        return self._step(began, "v2", "output columns", run, "resume", proofs, **facts)

    # -- v3

    def source_option(self) -> Step:
        """v3: a source format option changes that nobody has measured, so a person decides."""
        began = self._title("v3: a price that is not a number is read as NULL (options of the source's format)")
        run, before = self._propose(3, PROPOSE_V3)
        self._follow_check(run, "unknown")
        self._ask(run, before, "approval")
        self._answer(run, RESUME)
        self.parts.follow(run, {"resume": "success"})
        self.parts.finish(run)
        approved_by = self.parts.deployed().review.approved_by
        require(approved_by, "the ledger does not say who approved")
        proofs, facts = self._resumed(before, AFTER_V3, broken=True)
        broken = [order for order in self.feed.orders() if order.price is None]
        require(broken, "no order with a price that is no number came")
        self.parts.require_running(self.parts.deployed())
        proofs = (
            f"waited for a person; approved by {approved_by}",
            *proofs,
            "an order with the price n/a arrived, and the job kept running",
        )
        return self._step(
            began, "v3", "source option", run, "approve → resume", proofs, approved_by=approved_by, **facts
        )

    # -- v4

    def window_size(self) -> Step:
        """v4: the window size changes; the state cannot be used, so Spark recomputes history."""
        began = self._title("v4: windows of five minutes instead of one")
        self._run_on(PROPOSE_V4)
        self._expect_minutes(BOUNDARY)
        moved = self.world.move_to_archive(self.feed.arrived, BOUNDARY)
        self.narrator.say(
            f"moved {moved} files with orders before {BOUNDARY:%H:%M} into the archive, which no job reads"
        )
        run, _ = self._propose(4, PROPOSE_V4)
        self._follow_check(run, "incompatible")
        self.moment("check", run)
        self.parts.follow(run, {"restart": "success"})
        entry = self.parts.deployed()
        self.parts.require_running(entry)
        folder = self.world.totals_5_minutes
        wanted = totals(self.feed.orders(), 5, average=True, before=BOUNDARY)
        missing = len(wanted) - len(ended(result_rows(folder, by="job"), BOUNDARY))
        self.narrator.say(
            f"the new job started without state: it lacks {missing} of {len(wanted)} rows up to {BOUNDARY:%H:%M}"
        )
        self.feed.go_on(END)
        self.parts.follow(run, {"backfill": "success"})
        self.parts.finish(run)
        self._wait_for_feed()
        joined, proofs, facts = self._join(wanted)
        truth = ended(self.parts.rows_from_scratch(), COMPARED)
        if difference := differences(joined, truth):
            require(False, f"the joined result differs from Flink's from-scratch run:\n{difference}")
        proof = (
            f"all {len(joined)} rows of the {windows_of(joined)} windows up to {COMPARED:%H:%M}, backfill and live job "
            "together, equal Flink's own from-scratch run"
        )
        self.narrator.proved(proof)
        facts |= {
            "joined": joined,
            "from_scratch": truth,
            "restored_path": self.parts.jobs.restored_from(str(entry.job_id)),
        }
        self.moment("end-backfill", run)
        return self._step(began, "v4", "window size", run, "restart + backfill", (*proofs, proof), **facts)

    def _join(self, wanted: list[Row]) -> tuple[list[Row], tuple[str, ...], dict[str, Any]]:
        """Rows of both jobs up to COMPARED, once the live job has written its rows; returns the proofs."""
        folder = self.world.totals_5_minutes
        both = totals(self.feed.orders(), 5, average=True, before=COMPARED)
        live_wanted = ended(both, COMPARED, after=BOUNDARY)
        self._expect(live_wanted, lambda: ended(result_rows(folder, by="job"), COMPARED), "the live job's windows")
        live, filled = result_rows(folder, by="job"), result_rows(folder, by="backfill")
        lacking = ended(live, BOUNDARY)
        require(not lacking, f"the live job wrote windows that the backfill owns: {lacking[:3]}")
        difference = differences(filled, wanted)
        require(not difference, f"the backfill's rows are not the missing ones:\n{difference}")
        proofs = (
            f"the live job has 0 of the {len(wanted)} rows up to {BOUNDARY:%H:%M}; the backfill added {len(filled)}",
        )
        self.narrator.proved(proofs[0])
        facts = {"live_alone": live, "backfilled": filled, "missing_before": len(wanted) - len(lacking)}
        return ended(result_rows(folder), COMPARED), proofs, facts

    # -- v5

    def metric(self) -> Step:
        """v5: a metric is added, which Flink alone refuses; a person chooses to migrate the state."""
        began = self._title("v5: one more metric, the highest price")
        run, before = self._propose(5, PROPOSE_V5)
        self._follow_check(run, "incompatible")
        self._ask(run, before, "approval-migration")
        alone = self.parts.restored_by_flink_alone(4, 5)
        refused = f"Flink alone does not restore v5 from a savepoint of v4: {alone.finding} at {alone.at}"
        require(alone.at is not None, f"Flink alone should refuse the savepoint, but it says {alone.lines()[0]}")
        self.narrator.proved(refused)
        self._answer(run, MIGRATE)
        proof = self._follow_migration(run)
        self._run_on(AFTER_V5)
        begin, end = COMPARED, COMPARED + 5 * MINUTE
        wanted = ended(totals(self.feed.orders(), 5, average=True, before=end), end, after=begin)
        rows = self._rows_of_the_job
        self._expect(wanted, lambda: [row[:-1] for row in rows(begin, end)], "the window that was open")
        window, stopped_at = rows(begin, end), self.parts.stopped_at()
        both, facts = self._open_window(before, window, f"; its highest price since the switch is {window[0][-1]}")
        since = (order for file in self.feed.arrived if file.at > stopped_at for order in file.orders)
        facts |= {"alone": alone, "since": [order for order in since if begin <= order.at < end]}
        return self._step(began, "v5", "a metric", run, "approve → migrate", (refused, proof, both), **facts)

    # -- v6

    def shadow_run(self) -> Step:
        """v6: the order of metrics changes; a shadow run compares the rows before the state is migrated."""
        began = self._title("v6: the highest price comes first, and the DAG compares rows before the switch")
        self.world.add_shadow_run()
        self.feed.go_on(PROPOSE_V6)
        self.parts.wait_for_task(self.parts.run_number(6), "shadow")
        run, before = self._propose(6, PROPOSE_V6)
        self._follow_check(run, "incompatible")
        self.parts.follow(run, {"shadow": "success"})
        compared, shadow = self._compared()
        proof = self._follow_migration(run)
        self._run_on(AFTER_V6)
        begin, end = COMPARED + 5 * MINUTE, COMPARED + 10 * MINUTE
        wanted = ended(totals(self.feed.orders(), 5, average=True, highest=True, before=end), end, after=begin)

        def found() -> list[Row]:  # with the highest price as the last column, as in v5
            return sorted((*row[:3], *row[4:], row[3]) for row in self._rows_of_the_job(begin, end))

        window = self._expect(wanted, found, "the window that was open")
        both, facts = self._open_window(before, window, f"; its highest price is {window[0][-1]}")
        facts |= shadow
        self.moment("end-shadow", run)
        return self._step(began, "v6", "order of metrics", run, "shadow → migrate", (compared, proof, both), **facts)

    def _compared(self) -> tuple[str, dict[str, Any]]:
        """Prove that the rows of the shadow run are equal; returns the proof and values."""
        checked, shadowed = self.parts.last(CheckedEntry), self.parts.last(ShadowedEntry)
        shadow = shadowed.shadow
        require((shadow["finding"], shadowed.branch) == ("equal", "migrate"), shadowed.message)
        (sink,) = shadow["sinks"]
        begin, end = checked.written.timestamp(), shadowed.written.timestamp()
        orders = sum(len(file.orders) for file in self.feed.arrived if begin < file.at < end)
        require(sink["new_changes"] and orders, f"{orders} orders arrived during the shadow run, which found {sink}")
        proof = (
            f"shadow run: v5 wrote {sink['old_changes']} rows from a savepoint, and v6 equal rows from the migrated "
            f"savepoint; {orders} orders arrived meanwhile"
        )
        self.narrator.proved(proof)
        return proof, {"shadow": shadow, "orders_meanwhile": orders}

    # -- what the steps share

    def _ask(self, run: str, before: Before, moment: str) -> None:
        """Follow the run until it asks a person; nothing is deployed before."""
        self.parts.follow(run, {"approve": "awaiting_input"})
        question = self.parts.client.question(DAG_ID, run, "approve")
        self.narrator.say(f"Airflow asks: {question['subject']}\n{excerpt(question['body'])}")
        self.narrator.say(f"possible answers: {' · '.join(question['options'])}")
        self.moment(moment, run)
        require(self.parts.deployed().number == before.entry, "something was deployed before anybody answered")

    def _answer(self, run: str, choice: str) -> None:
        self.narrator.say(f"answering through the REST API: {choice}")
        state = self.parts.client.answer(DAG_ID, run, "approve", choice, timeout=LIMIT_SECONDS)
        require(state == "success", f"the approval ended as {state}")

    def _follow_migration(self, run: str) -> str:
        """Follow a run until its migrated job runs; returns the proof."""
        self.parts.follow(run, {"migrate": "success"})
        self.parts.finish(run)
        entry = self.parts.deployed()
        self.parts.require_running(entry)
        start = entry.start
        require(start.start_mode == "migrated", f"the job was started {start.start_mode}")
        former, rewritten = (str(path).rsplit("/", 1)[-1] for path in (start.migrated_from, start.savepoint))
        proof = f"restored from {rewritten}, rewritten from {former}"
        self.narrator.proved(proof)
        return proof

    def _title(self, text: str) -> float:
        self.narrator.title(text)
        return self.narrator.seconds

    def _step(
        self, began: float, version: str, change: str, run: str, branch: str, proofs: tuple[str, ...], **facts: Any
    ) -> Step:
        verdict = str(self.parts.verdict(run)["outcome"] or "first deployment")
        seconds = self.narrator.seconds - began
        self.narrator.say(f"{version} took {seconds:.0f} s")
        return Step(version, change, verdict, branch, proofs, seconds, {"run": run, **facts})

    def _run_on(self, goal: datetime, *, broken: bool = False) -> None:
        """Let orders arrive until event time is at ``goal`` and the job has seen them."""
        self.feed.go_on(goal, broken=broken)
        self._wait_for_feed()

    def _wait_for_feed(self) -> None:
        wait_for(
            "the job to see the orders that arrived",
            self.feed.there,
            moved=self.parts.rows,
            say=self.narrator.say,
            alive=self.parts.check_job,
            seen=lambda: f"The feed is at {self.feed.clock}, the job's watermark is {self.parts.watermark()}",
        )

    def _propose(self, number: int, at: datetime) -> tuple[str, Before]:
        """Write the next version for the DAG; returns the run that detects it, and the state before."""
        run = self.parts.run_number(number)
        self.parts.follow(run, {"changed": "deferred"})
        self._run_on(at)
        self.parts.client.wait_until_parked(DAG_ID, run, "changed", timeout=LIMIT_SECONDS)
        before = Before(self.feed.arrived, self.parts.deployed().number, at)
        self.narrator.say(f"orders up to {at:%H:%M:%S} have arrived; the script is now v{number}")
        self.world.propose(number)
        return run, before

    def _follow_check(self, run: str, outcome: str) -> None:
        """Follow the run until its check ends, and require this outcome."""
        self.parts.follow(run, {"check": "success"})
        verdict = self.parts.verdict(run)
        lines = "".join(f"\n{row['outcome']}: {row['message']}" for row in verdict["findings"])
        self.narrator.say(f"verdict: {verdict['outcome']}, {verdict['ground']} → branch {verdict['branch']}{lines}")
        require(verdict["outcome"] == outcome, f"the check should find the change {outcome}, not {verdict['outcome']}")
        ground = f"planned by Flink {PLANNED}"
        require(verdict["ground"].startswith(ground), f"it should be {ground}, not {verdict['ground'] or 'unasked'}")

    def _resumed(
        self, before: Before, goal: datetime, *, broken: bool = False
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Prove that the job resumed from its savepoint with an open window; returns the proofs and values."""
        entry = self.parts.deployed()
        self.parts.require_running(entry)
        require(entry.start.start_mode == "savepoint", f"the job was started {entry.start.start_mode}")
        proof = f"restored from {str(entry.start.savepoint).rsplit('/', 1)[-1]}"
        self.narrator.proved(proof)
        self._run_on(goal, broken=broken)
        rows = self._expect_minutes(goal - MINUTE)
        window = [row for row in rows if row[0] == text(before.at.replace(second=0))]
        both, facts = self._open_window(before, window)
        read, since = self.parts.orders_read(str(entry.job_id)), len(list(self.feed.orders())) - before.orders
        require(
            0 < read <= since,
            f"the new job read {read} orders, but only {since} arrived since: it read older files again",
        )
        once = (
            f"no file was read twice: the new job read {read} orders; {since} arrived since the proposal, and "
            f"{before.orders} before it. All {len(rows)} rows are right, and each was written once"
        )
        self.narrator.proved(once)
        return (proof, both, once), facts | {"orders_read": read, "orders_since": since, "rows": rows}

    def _open_window(self, before: Before, window: list[Row], more: str = "") -> tuple[str, dict[str, Any]]:
        """Check that an open window has orders from before and after the switch; returns proof and values."""
        require(window, "the window that was open has no row")
        entry, stopped_at = self.parts.deployed(), self.parts.stopped_at()
        begin, end = map(datetime.fromisoformat, window[0][:2])
        old = before.counts(begin, end - begin)
        new = counts_of([file for file in self.feed.arrived if file.at > stopped_at], begin, end - begin)
        require(all(old.get(row[2]) and new.get(row[2]) for row in window), "no window has rows of both sides")
        item, total, count = window[0][2:5]
        proof = (
            f"window {begin:%H:%M} was open: {item} = {total} from {count} orders; at least {old[item]} were read "
            f"before the savepoint, at least {new[item]} after it{more}"
        )
        self.narrator.proved(proof)
        return proof, {
            "job_id": entry.job_id,
            "savepoint": entry.start.savepoint,
            "migrated_from": entry.start.migrated_from,
            "restored_path": self.parts.jobs.restored_from(str(entry.job_id)),
            "open_window": window,
            "orders_before": old,
            "orders_after": new,
        }

    def _rows_of_the_job(self, begin: datetime, end: datetime) -> list[Row]:
        """Rows by five minutes that the jobs wrote for the windows between two times."""
        return ended(result_rows(self.world.totals_5_minutes, by="job"), end, after=begin)

    def _expect_minutes(self, before: datetime) -> list[Row]:
        """Wait until the results by the minute up to ``before`` are complete, each row once and exact."""

        # v1 writes no average; later versions do.
        def found() -> list[Row]:
            return [row[:5] for row in ended(result_rows(self.world.totals), before)]

        wanted = totals(self.feed.orders(), 1, average=False, before=before)
        return self._expect(wanted, found, f"the windows up to {before:%H:%M}")

    def _expect(self, wanted: list[Row], found: Callable[[], list[Row]], what: str) -> list[Row]:
        def complete() -> list[Row] | None:
            rows = found()
            # Committed rows stay: a surplus row never becomes right, but a missing row may still arrive.
            require(
                not Counter(rows) - Counter(wanted),
                f"{what}: the rows are not those added up by hand:\n{differences(rows, wanted)}",
            )
            return rows if rows == wanted else None

        return wait_for(
            f"{what} to be written",
            complete,
            moved=self.parts.rows,
            say=self.narrator.say,
            alive=self.parts.check_job,
            seen=lambda: f"Rows that are still missing:\n{differences(found(), wanted)}",
        )
