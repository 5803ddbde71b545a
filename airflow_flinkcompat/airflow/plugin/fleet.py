"""List of all deployments in all ledgers, read from the index, restricted to the user and filtered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from airflow_flinkcompat.airflow.plugin import changes, models, views
from airflow_flinkcompat.airflow.plugin.ledgers import FoundLedgers, NamedLedger, Rights, dags_of, deployments_of
from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry
from airflow_flinkcompat.deploy.ledger.listing import deployment_rows
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from airflow_flinkcompat.model.engine import line_of
from airflow_flinkcompat.secrets import mask_secrets


class Attention(StrEnum):
    """Reasons why a deployment may need attention."""

    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Listed:
    """A deployment of a ledger and its status."""

    ledger: NamedLedger
    name: str
    row: DeploymentRow | LedgerError
    attention: frozenset[Attention]

    @property
    def team(self) -> str | None:
        """The responsible team at the last check."""
        if not isinstance(self.row, DeploymentRow):
            return None
        origin = self.row.checked or self.row.head
        return origin.team if origin else None

    def has(self, words: Sequence[str]) -> bool:
        """True if every word occurs in a name, an owner, a commit or the job id."""
        texts = [self.name, *dags_of(self.row)]
        if isinstance(self.row, DeploymentRow):
            for each in (self.row.head, self.row.checked):
                if each is not None:
                    texts += filter(None, (each.team, each.owned_by, each.author, each.commit, each.job_id))
        searched = "\n".join(texts).casefold()
        return all(word in searched for word in words)


@dataclass(frozen=True)
class ListFilter:
    """Filter of the deployments: any of several kinds of attention, the team, and all words of a text."""

    attention: frozenset[Attention] = frozenset()
    team: str | None = None
    text: str = ""
    ledger: str | None = None

    def takes(self, one: Listed) -> bool:
        """True if a deployment passes the filter."""
        return (
            (not self.attention or bool(self.attention & one.attention))
            and self.team in (None, one.team)
            and self.ledger in (None, one.ledger.id)
            and one.has(self.text.casefold().split())
        )


def attention_of(row: DeploymentRow | LedgerError, now: datetime) -> frozenset[Attention]:
    """Reasons why a deployment may need attention."""
    if not isinstance(row, DeploymentRow):
        return frozenset({Attention.UNREADABLE})
    state = views.unfinished_state(row, now)
    found = {
        Attention.PENDING: row.pending is not None,
        Attention.IN_FLIGHT: state == "in flight",
        Attention.INTERRUPTED: state == "interrupted",
        Attention.FAILED: row.failed is not None,
    }
    return frozenset(each for each, there in found.items() if there)


def seen(ledgers: Iterable[NamedLedger], rights: Rights, now: datetime) -> tuple[list[Listed], dict[str, LedgerError]]:
    found, errors = [], {}
    for ledger in ledgers:
        try:
            rows = deployment_rows(ledger.uri)
        except LedgerError as error:
            errors[ledger.id] = error
            continue
        found += [
            Listed(ledger, name, row, attention_of(row, now)) for name, row in rows.items() if rights.sees(ledger, row)
        ]
    return sorted(found, key=lambda each: (each.name, each.ledger.id)), errors


def deployment_list(
    found: FoundLedgers, rights: Rights, wanted: ListFilter, limit: int, offset: int, now: datetime | None = None
) -> models.DeploymentList:
    now = now or datetime.now(UTC)
    all_seen, errors = seen(found.ledgers, rights, now)
    left = [each for each in all_seen if wanted.takes(each)]
    of_kind = {kind: sum(1 for each in all_seen if kind in each.attention) for kind in Attention}
    return models.DeploymentList(
        deployments=[
            views.deployment(each.ledger, each.name, each.row, rights, now) for each in left[offset : offset + limit]
        ],
        total=len(left),
        counts=models.AttentionCounts(all=len(all_seen), **of_kind),
        lines=_lines(all_seen),
        teams=sorted({mask_secrets(each.team) for each in all_seen if each.team}),
        ledgers=[_ledger(each, rights, errors.get(each.id)) for each in found.ledgers],
        problems=list(found.problems) if rights.reads_connections else [],
    )


def _lines(listed: Iterable[Listed]) -> list[models.LineCount]:
    found: dict[tuple[str, str], list[Listed]] = {}
    for each in listed:
        if isinstance(each.row, DeploymentRow) and (head := each.row.head):
            line = line_of(head.engine_version)
            found.setdefault((head.engine, line), []).append(each)
    return [
        models.LineCount(
            engine=engine,
            line=line,
            deployments=len(jobs),
            pending=sum(Attention.PENDING in each.attention for each in jobs),
            failed=sum(Attention.FAILED in each.attention for each in jobs),
        )
        for (engine, line), jobs in sorted(found.items())
    ]


def _ledger(ledger: NamedLedger, rights: Rights, error: LedgerError | None) -> models.LedgerItem:
    reads = rights.reads_ledger(ledger)
    why = (
        ""
        if error is None
        else mask_secrets(str(error))
        if reads
        else "this ledger cannot be listed: ask the administrator of Airflow"
    )
    return models.LedgerItem(
        id=ledger.id,
        uri=mask_secrets(ledger.uri) if reads else None,
        connections=[each.conn_id for each in ledger.connections if rights.reads_connection(each)],
        error=why or None,
    )


def entries_and_row(
    ledger: NamedLedger, name: str
) -> tuple[tuple[LedgerEntry, ...] | LedgerError, DeploymentRow | LedgerError]:
    """Entries of a deployment and its row. The row is available even if old entries are damaged."""
    try:
        entries = ledger.entries(name)
        return entries, DeploymentRow(name).after_all(entries)
    except LedgerError as error:
        try:
            return error, ledger.open(name).row()
        except LedgerError:
            return error, error


def changes_of_run(
    found: FoundLedgers, rights: Rights, dag_id: str, run_id: str, task_id: str | None
) -> list[models.ChangePage]:
    """The changes that a DAG run is about, in deployments that the user may see."""
    everything = seen(found.ledgers, rights, datetime.now(UTC))[0]
    names = deployments_of(dag_id, run_id)
    of_dag = [each for each in everything if each.name in names or dag_id in dags_of(each.row)]
    read = [(each, entries_and_row(each.ledger, each.name)[0]) for each in of_dag]
    histories = [(one, entries) for one, entries in read if not isinstance(entries, LedgerError)]
    for task in (task_id, None) if task_id else (None,):
        proposals = [
            (one, entries, proposal)
            for one, entries in histories
            for proposal in changes.proposals_of_run(entries, dag_id, run_id, task)
        ]
        if proposals:
            return [changes.change(one.ledger, one.name, entries, each, rights) for one, entries, each in proposals]
    return []
