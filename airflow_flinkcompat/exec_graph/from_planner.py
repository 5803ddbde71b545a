"""Jobs as Flink's own planner would submit them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.sql import Statement

_PLACE = re.compile(r"\bline (\d+), column (\d+)")
_NODE = re.compile(r"\[\d+\]")
"""The number of an exec node in an operator's name, which grows with every plan of the process."""
_PROXY = re.compile(r"^jdk\.proxy\d+\.\$Proxy\d+$")
"""The number in the name of a stand-in class for a connector, which grows in the process."""
_EXPECTED = re.compile(r"\s*Was expecting(?: one of)?:.*", re.DOTALL)
_IN_STATEMENT = re.compile(r",? at line \d+, column \d+\.?$")
"""The position at the end of an error message, counted from the beginning of the statement."""
_NOT_WHOLE = re.compile(
    r"Object '[^']*' not found|Cannot find table|No match found for function signature|"
    r"(?:[Tt]able|View|[Dd]atabase|[Cc]atalog|[Ff]unction|Model)\b.{0,200}(?:does not exist|doesn't exist|not found)|"
    r"Could not find (?:any|an implementation)|Could not (?:load|find) (?:class|function)|Cannot instantiate|"
    r"ClassNotFound|NoClassDefFound|implementation class",
    re.DOTALL,
)
"""Errors about a declaration or jar that is absent here; Flink may plan the script elsewhere."""
_TROUBLE = (
    "Connect", "Timeout", "UnknownHost", "Socket", "SQLException", "OutOfMemory", "StackOverflow", "IOException",
    "ClassNotFound", "NoClassDef", "Linkage", "NoSuchMethod", "NullPointer", "IndexOutOfBounds",
)  # fmt: skip
"""Exceptions caused by this machine rather than by the script."""
_LASTS = re.compile(
    r"(?:(?:DROP|ALTER)(?!\s+TEMPORARY)|CREATE\s+(?:OR\s+ALTER\s+)?MATERIALIZED|CALL|UPDATE|DELETE|TRUNCATE|ANALYZE"
    r"|REFRESH|ADD|REMOVE|(?:UN)?LOAD|STOP|COMPILE|EXECUTE\s+PLAN)\b",
    re.IGNORECASE,
)
_SHOWS = re.compile(r"(?:SHOW|DESC|DESCRIBE|EXPLAIN|HELP|CLEAR|QUIT|EXIT)\b", re.IGNORECASE)
_PLACEHOLDER = "${"
"""The start of a placeholder, whose value may have another type."""
_BEFORE_TABLES = ("SqlParserException", "CalciteContextException", "SqlValidatorException")
"""Exceptions of the parser and validator, which do not depend on connectors."""


def readable_name(operator: str) -> str:
    """Return the name of an operator without the number of its node."""
    return _NODE.sub("", operator)


@dataclass(frozen=True)
class PlannerRefusal:
    """The reason why Flink does not plan a script.

    Attributes:
        message: Flink's own sentence.
        place: The statement, or the place in it where Flink names one.
        conclusive: True if every Flink refuses the script; False if only something missing here prevents a plan.
    """

    message: str
    place: Span | None
    conclusive: bool

    @classmethod
    def of(
        cls,
        chain: Sequence[Mapping[str, str]],
        statement: Span | None,
        stand_ins: Collection[str] = (),
        catalogs: Collection[str] = (),
    ) -> PlannerRefusal:
        """The refusal that a chain of exceptions shows. A catalog in memory has a database from the start."""
        texts = [each["message"] for each in chain]
        classes = " ".join(each["class"].rpartition(".")[2] for each in chain)
        located = next((text for text in texts if _PLACE.search(text)), "")
        message = next((text for text in reversed(texts) if text not in ("", "null")), classes)
        missing = any(map(_NOT_WHOLE.search, texts)) or any(word in classes for word in _TROUBLE)
        missing |= any(_PLACEHOLDER in text for text in texts)
        missing |= bool(catalogs) and "DatabaseAlreadyExistException" in classes
        missing |= bool(stand_ins) and not any(word in classes for word in _BEFORE_TABLES)
        message = _IN_STATEMENT.sub("", _EXPECTED.sub("", message))
        if any(each["class"].endswith("ClassNotFoundException") and each["message"] == message for each in chain):
            message = f"class {message} is not found; name its jar with --jar FILE"
        return cls(shorten(message, 400, placeholder=" …"), _placed(located, statement), not missing)


def changes_what_lasts(statement: str) -> bool:
    """Return whether a statement has lasting effects outside of the session, or requires some."""
    return _LASTS.match(statement) is not None


def _placed(message: str, statement: Span | None) -> Span | None:
    """The position within the script of a position within one of its statements."""
    found = _PLACE.search(message)
    if statement is None or found is None:
        return statement
    line, column = int(found[1]), int(found[2])
    column += statement.column - 1 if line == 1 else 0
    line += statement.line - 1
    return Span(statement.source, line, column, line, column)


@dataclass(frozen=True)
class PlannedOperator:
    """An operator of a job before submission.

    Attributes:
        id: Its OperatorID, by which a savepoint knows it.
        name: Its name in Flink's web interface.
        kind: The class of the operator.
        keeps: ``yes``, ``no`` or ``may``.
        basis: The basis of ``keeps``; ``opened`` if the operator was started.
        component: The class of its source, sink or function.
        max_parallelism: Its own maximum parallelism; 0 or less if none is set.
        uid: The uid that the script sets or Flink generates.
        states: The options of each state that it registers, by name; None if it was not started.
        counted: True if its OperatorID contains a counter of the client, so that it changes with each start.
        chain: The task that it shares with other operators; None if the planner does not show it.
        inputs: The OperatorIDs of the operators that it reads.
        ends: True if every source upstream is bounded, or may be.
    """

    id: str
    name: str
    kind: str
    keeps: str
    basis: str
    component: str
    max_parallelism: int
    uid: str
    states: Mapping[str, Mapping[str, str]] | None
    counted: bool = False
    chain: int | None = None
    inputs: frozenset[str] = frozenset()
    ends: bool = False

    @classmethod
    def of(cls, data: Mapping[str, Any], inputs: Collection[PlannedOperator] = ()) -> PlannedOperator:
        """Read one operator of an answer, after its inputs; a uid that begins with a number is a counter."""
        states = {each["name"]: each["options"] for each in data["states"]} if "states" in data else None
        return cls(
            data["id"], readable_name(data["name"]), data["kind"], data["keeps"], data["basis"],
            _PROXY.sub("stand-in", data["component"]),
            data["max_parallelism"], data["uid"] or "", states,
            (data["uid"] or "")[:1].isdigit() or any(each.counted for each in inputs),
            data.get("chain"), frozenset(each.id for each in inputs),
            all(each.ends for each in inputs) if inputs else bool(data.get("bounded")),
        )  # fmt: skip

    @property
    def stateful(self) -> bool:
        """True if it keeps state, or may."""
        return self.keeps != "no"


@dataclass(frozen=True)
class SubmittedJob:
    """A job before submission.

    Attributes:
        operators: Its operators, sources first.
        plan: Its compiled plan as JSON; None if Flink compiles none.
        restores: The exceptions of Flink's dry restore from the other side's job, by OperatorID; empty if it accepted
        the state.
        savepoint: A savepoint of the job before its first row, in Flink's format and Base64.
    """

    operators: tuple[PlannedOperator, ...]
    plan: Any = field(default=None, repr=False)
    restores: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict, repr=False)
    savepoint: str = field(default="", repr=False)


def _operators(answered: Sequence[Mapping[str, Any]]) -> tuple[PlannedOperator, ...]:
    """Operators, sources first."""
    found: dict[int, PlannedOperator] = {}
    for place, each in enumerate(answered):
        inputs = [found[node] for node in each.get("inputs", ()) if node in found]
        found[each.get("node", -1 - place)] = PlannedOperator.of(each, inputs)
    return tuple(found.values())


@dataclass(frozen=True)
class PlannedScript:
    """The jobs that Flink plans for a script.

    Attributes:
        flink: The release that planned it.
        jobs: Its jobs in order.
        refusal: The reason why Flink does not plan the whole script.
        stand_ins: The connector or format whose jar is absent, by table.
        catalogs: The type of each catalog that one in memory replaces, by name.
        guessed: The kinds of stand-ins with guessed abilities: ``source``, ``sink``.
        lookups: The tables with a stand-in in which rows are looked up.
        lasting: The statements that would change objects outside of the session, in order.
    """

    flink: str
    jobs: tuple[SubmittedJob, ...] = ()
    refusal: PlannerRefusal | None = None
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    catalogs: Mapping[str, str] = field(default_factory=dict)
    lasting: tuple[str, ...] = field(default=(), repr=False)
    lookups: tuple[str, ...] = ()
    guessed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, answer: Mapping[str, Any], statements: Sequence[Statement]) -> PlannedScript:
        """Read the planner's answer about a script."""
        refusal = None
        if "refusal" in answer:
            place = statements[answer["statement"]].span if "statement" in answer else None
            refusal = PlannerRefusal.of(
                answer["refusal"], place, answer.get("stand_ins", ()), answer.get("catalogs", ())
            )
        jobs = tuple(
            SubmittedJob(_operators(job["operators"]), job.get("plan"), job["restores"], job["savepoint"])
            for job in answer.get("jobs", ())
        )
        passed_over = (statements[number].text for number in answer.get("lasting", ()))
        lasting = tuple(text for text in passed_over if not _SHOWS.match(text))
        return cls(
            answer["flink"], jobs, refusal, answer.get("stand_ins", {}), answer.get("catalogs", {}), lasting,
            tuple(answer.get("lookups", ())), frozenset(answer.get("guessed", ())),
        )  # fmt: skip
