"""Questions that are asked again (second approver, reviewer, escalation), and their answers.

A reviewer is a person other than the author. Airflow stores only one answer of a task, and never changes the text and
the users of a question. Therefore, the question lists every user who may answer now or later. An approval by the
author, or an answer by a user who may not answer yet, is refused here. Then the question is asked again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.providers.standard.version_compat import AIRFLOW_V_3_3_PLUS
from airflow.sdk.execution_time.hitl import HITLUser, upsert_hitl_detail

from airflow_flinkcompat.airflow.operators import summary as summaries
from airflow_flinkcompat.airflow.tasks import telemetry
from airflow_flinkcompat.airflow.tasks.base import task_ids

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.airflow.operators.summary import Summary
from dataclasses import asdict, dataclass, field
from email.utils import parseaddr
from typing import Self

REJECT = "Reject"
REASON = "reason"
"""Name of the form field for the reason."""
_LONGEST_REASON = 2_000


class AskingAgain(HITLOperator):
    """A question about a change, with the rules of :class:`FlinkSqlApprovalOperator` about approvers."""

    deployment: str

    def _set_who(
        self,
        approvers_needed: int,
        author_may_approve: bool | None,
        authors: Mapping[str, str | Sequence[str]] | None,
        escalate_to: str | Mapping[str, str] | Sequence[str | Mapping[str, str]],
        escalate_after: timedelta | float | None,
    ) -> None:
        """Set the rules for answers. Raises ValueError if nobody could decide, or Airflow is too old."""
        if approvers_needed not in (1, 2):
            raise ValueError(f"approvers_needed is {approvers_needed!r}: write 1 or 2")
        self.approvers_needed = approvers_needed
        self.author_may_approve = approvers_needed == 1 if author_may_approve is None else author_may_approve
        self.authors = {key: task_ids(users) for key, users in (authors or {}).items()}
        self.escalate_to = _people("escalate_to", escalate_to)
        self.escalate_after = _seconds(escalate_after)
        self._check_who()

    def _check_who(self) -> None:
        """Raise ValueError if nobody could decide, or this Airflow cannot ask again."""
        if bool(self.escalate_to) != (self.escalate_after is not None):
            missing, present = (
                ("escalate_after", "escalate_to") if self.escalate_to else ("escalate_to", "escalate_after")
            )
            raise ValueError(f"{present} needs {missing}: set both, or neither")
        if self.escalate_to and not self.assigned_users:
            raise ValueError(
                "escalate_to: everybody may already answer; restrict the users with assigned_users (or approvers)"
            )
        after, total = self.escalate_after, self.response_timeout
        if after is not None and total is not None and after >= total.total_seconds():
            raise ValueError(
                "escalate_after must be shorter than response_timeout, because nobody may answer after response_timeout"
            )
        may = {str(user["id"]) for user in self.assigned_users or ()} | {person.id for person in self.escalate_to}
        if may and len(may) < self.approvers_needed:
            raise ValueError(f"approvers_needed is {self.approvers_needed}, and only {', '.join(may)} may answer")
        if self._asks_again and not AIRFLOW_V_3_3_PLUS:
            raise ValueError("approvers_needed=2, author_may_approve=False and escalate_to need Airflow 3.3")

    @property
    def _asks_again(self) -> bool:
        return self.approvers_needed > 1 or not self.author_may_approve or bool(self.escalate_to)

    def _ask(self, context: Context) -> Any:
        if not AIRFLOW_V_3_3_PLUS:
            return HITLOperator.execute(self, context)
        from airflow.sdk.exceptions import TaskAwaitingInput

        now = time.time()
        until = None if self.response_timeout is None else now + self.response_timeout.total_seconds()
        asked = AskedQuestion(now, until, None if self.escalate_after is None else now + self.escalate_after)
        users = self.assigned_users
        if self.escalate_to:
            # Airflow never changes the users who may answer a question.
            self.assigned_users = [*(users or ()), *(HITLUser(id=each.id, name=each.name) for each in self.escalate_to)]
        try:
            return HITLOperator.execute(self, context)
        except TaskAwaitingInput:
            self._note(context, asked)
            self._park(asked)
        finally:
            self.assigned_users = users

    def _note(self, context: Context, asked: AskedQuestion, refused: str = "") -> None:
        """Push the state of the question to XCom, because Airflow itself stores only the first state."""
        if self._asks_again:
            question = {
                "approvers_needed": self.approvers_needed,
                "answers": asked.answers_so_far(),
                "refused": refused,
            }
            context["ti"].xcom_push(key=summaries.QUESTION, value=question)

    def _park(self, asked: AskedQuestion) -> NoReturn:
        """Suspend the task until the next answer, at most until the question escalates or ends."""
        from airflow.sdk.exceptions import TaskAwaitingInput

        left = None if asked.next_time is None else timedelta(seconds=max(asked.next_time - time.time(), 1.0))
        raise TaskAwaitingInput(method_name="execute_complete", kwargs={"asked": asked.to_dict()}, timeout=left)

    def _escalate(self, context: Context, summary: Summary, asked: AskedQuestion, event: Mapping[str, Any]) -> NoReturn:
        names = [person.name for person in self.escalate_to]
        self.log.warning("No decision so far: from now on, %s may also answer", ", ".join(names))
        if event.get("timedout"):
            # Airflow has only one time-out, and chose the default when it expired. Since then, nobody can answer.
            self._ask_airflow_again(context)
        telemetry.notify(self, context, self.notifiers, self._facts("escalated", summary, to=names))
        self._park(replace(asked, escalates_at=None))

    def _agreed(
        self, context: Context, summary: Summary, asked: AskedQuestion, answer: Mapping[str, Any]
    ) -> tuple[Answer, ...]:
        """The answers that decide. If answers are missing, or the new answer is refused, ask again."""
        user = answer["responded_by_user"]
        by, option = Person.of(user if isinstance(user, Mapping) else vars(user)), answer["chosen_options"][0]
        author = summary.origin.get("author")
        by_author = None if self.author_may_approve else is_author(by, author, self.authors)
        own = {str(each["id"]) for each in self.assigned_users or ()}
        refusal = ""
        if asked.escalates_at is not None and by.id not in own and by.id in {each.id for each in self.escalate_to}:
            at = datetime.fromtimestamp(asked.escalates_at, UTC).isoformat(timespec="seconds")
            refusal = f"{by.name} may answer from {at} on, if none of {', '.join(sorted(own))} decides earlier"
        elif option != REJECT and by_author:
            refusal = f"{by.name} made this change ({author}), so a different person must approve it"
        if refusal:
            why = f"The answer {option!r} does not apply: {refusal}"
            self._note(context, asked, why)
            self._ask_again(context, summary, asked, why)
        unknown = "" if self.author_may_approve or option == REJECT else doubt(by, author, by_author)
        if unknown:
            self.log.warning("%s", unknown)
        asked = asked.with_answer(Answer(by, option, reason_of(answer.get("params_input")), unknown))
        agreed = asked.agreed(option)
        if option == REJECT or len(agreed) >= self.approvers_needed:
            return agreed
        self._note(context, asked)
        answers = "; ".join(f"{each.by.name} chose {each.choice!r}" for each in asked.answers)
        self._ask_again(
            context,
            summary,
            asked,
            f"{answers}. The question returns until {self.approvers_needed} people choose the same answer",
        )

    def _ask_again(self, context: Context, summary: Summary, asked: AskedQuestion, why: str) -> NoReturn:
        self.log.warning("%s", why)
        self._ask_airflow_again(context)
        telemetry.notify(self, context, self.notifiers, self._facts("asked again", summary, why=why))
        self._park(asked)

    def _ask_airflow_again(self, context: Context) -> None:
        """Ask again: Airflow clears the answer, but keeps the first text of the question."""
        upsert_hitl_detail(
            context["ti"].id,
            options=self.options,
            subject=self.subject,
            body=self.body,
            params=self.serialized_params,
        )

    def _facts(self, event: str, summary: Summary, **more: Any) -> dict[str, Any]:
        """Facts for a notifier, which the context contains under the key ``flinkcompat``."""
        known = {"outcome": summary.outcome, "report": summary.report, "author": summary.origin.get("author")}
        return {"event": event, "deployment": self.deployment, **known, **more}

    def _who(self, summary: Summary) -> str:
        """Text about the required approvers, which stays the same when the question is asked again."""
        from airflow_flinkcompat.compat.reports.markdown import code_span

        lines = []
        if self.approvers_needed > 1:
            lines.append(
                f"**{self.approvers_needed} people must choose the same answer.** This question is asked again until "
                f"they do; one *{REJECT}* is enough."
            )
        if not self.author_may_approve:
            author = summary.origin.get("author")
            lines.append(
                f"Its author, {code_span(author)}, may reject it but not approve it."
                if author
                else "Its author may not approve it, but the author is unknown."
            )
        if self.escalate_to and self.escalate_after is not None:
            names = ", ".join(code_span(person.name) for person in self.escalate_to)
            after = timedelta(seconds=self.escalate_after)
            lines.append(f"Answers of {names} apply if nobody else decides within {after}.")
        return "\n\n".join(lines)


def is_time_up(event: Mapping[str, Any]) -> bool:
    """True if nobody answered in time: Airflow reports a time-out, or chose the default."""
    return bool(event.get("timedout")) or event.get("error_type") == "timeout"


def reason_of(answers: Mapping[str, Any] | None) -> str | None:
    """The reason in an answer, with masked secrets; None without a reason."""
    from airflow_flinkcompat.secrets.redact import mask_secrets, shortened

    text = mask_secrets(str((answers or {}).get(REASON) or "").strip())
    return (text if len(text) <= _LONGEST_REASON else shortened(text, _LONGEST_REASON)) or None


def reasons_of(answers: Sequence[Answer]) -> str | None:
    return "; ".join(f"{each.by.name}: {each.reason}" for each in answers if each.reason) or None


def _people(name: str, users: str | Mapping[str, str] | Sequence[str | Mapping[str, str]]) -> tuple[Person, ...]:
    try:
        return tuple(map(Person.of, [users] if isinstance(users, str | Mapping) else users))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _seconds(span: timedelta | float | None) -> float | None:
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if seconds is not None and not seconds > 0:
        raise ValueError(f"escalate_after must be a time above 0, not {span!r}")
    return seconds


@dataclass(frozen=True)
class Person:
    """An Airflow user."""

    id: str
    name: str

    @classmethod
    def of(cls, user: str | Mapping[str, Any]) -> Person:
        """Parse a user from an id or from ``{"id", "name"}``. Raises ValueError."""
        if isinstance(user, str) and user:
            return cls(user, user)
        if isinstance(user, Mapping) and user.get("id") and set(user) <= {"id", "name"}:
            return cls(str(user["id"]), str(user.get("name") or user["id"]))
        raise ValueError(f"{user!r} is not a user; write an id, or a table with id and name")

    def is_called(self, names: Sequence[str]) -> bool:
        """True if one of ``names`` is this user's id or name, ignoring case."""
        return bool({self.id.casefold(), self.name.casefold()} & {name.casefold() for name in names})


@dataclass(frozen=True)
class Answer:
    """A user's choice and reason. ``doubt`` describes unknown facts about the user."""

    by: Person
    choice: str
    reason: str | None = None
    doubt: str = ""


@dataclass(frozen=True)
class AskedQuestion:
    """A question with its present answers and deadlines. Times are seconds since the epoch.

    ``at`` is the time at which the question was first asked, and ``until`` its deadline (None: no deadline). From
    ``escalates_at`` on, additional users may answer (None: there are no such users, or they may already answer).
    ``answers`` are the valid answers, one for each user.
    """

    at: float
    until: float | None = None
    escalates_at: float | None = None
    answers: tuple[Answer, ...] = field(default=())

    def with_answer(self, answer: Answer) -> AskedQuestion:
        """Add an answer to the question, which replaces an earlier answer of the same user."""
        others = (each for each in self.answers if each.by.id != answer.by.id)
        return replace(self, answers=(*others, answer))

    def agreed(self, choice: str) -> tuple[Answer, ...]:
        return tuple(each for each in self.answers if each.choice == choice)

    def answers_so_far(self) -> list[dict[str, str | None]]:
        """The answers so far, to show to the next person."""
        return [{"by": each.by.name, "choice": each.choice, "reason": each.reason} for each in self.answers]

    @property
    def next_time(self) -> float | None:
        """Time at which the question escalates or ends without an answer; None if never."""
        return min(filter(None, (self.escalates_at, self.until)), default=None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        answers = (Answer(**{**each, "by": Person(**each["by"])}) for each in row["answers"])
        return cls(**{**row, "answers": tuple(answers)})


def is_author(person: Person, author: str | None, known: Mapping[str, Sequence[str]]) -> bool | None:
    """True if a user made the change; None if the author's user is unknown."""
    if not author:
        return None
    names = [part for part in parseaddr(author) if part] or [author]
    called = [user for key, users in known.items() if key.casefold() in {n.casefold() for n in names} for user in users]
    if called:
        return person.is_called(called)
    return True if person.is_called(names) else None


def doubt(person: Person, author: str | None, by_author: bool | None) -> str:
    """Text that a user may be the author of the change; "" if this is known."""
    if by_author is not None:
        return ""
    if author is None:
        return f"it is unknown if {person.name} made the change, because its author is unknown"
    return f"it is unknown if {person.name} is its author, {author}"
