"""Jobs as Flink's planner would submit them."""

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
"""Number of an exec node in an operator's name. It increases with every plan that a process creates."""
_PROXY = re.compile(r"^jdk\.proxy\d+\.\$Proxy\d+$")
"""Class name of a stand-in for a connector. The number in the name increases within a process."""
_EXPECTED = re.compile(r"\s*Was expecting(?: one of)?:.*", re.DOTALL)
_IN_STATEMENT = re.compile(r",? at line \d+, column \d+\.?$")
"""Position at the end of an error message, relative to the start of the statement."""
_NOT_WHOLE = re.compile(
    r"Object '[^']*' not found|Cannot find table|No match found for function signature|"
    r"(?:[Tt]able|View|[Dd]atabase|[Cc]atalog|[Ff]unction|Model)\b.{0,200}(?:does not exist|doesn't exist|not found)|"
    r"Could not find (?:any|an implementation)|Could not (?:load|find) (?:class|function)|Cannot instantiate|"
    r"ClassNotFound|NoClassDefFound|implementation class",
    re.DOTALL,
)
"""Errors about a missing declaration or jar. Flink may plan the script on a different machine."""
_TROUBLE = (
    "Connect", "Timeout", "UnknownHost", "Socket", "SQLException", "OutOfMemory", "StackOverflow", "IOException",
    "ClassNotFound", "NoClassDef", "Linkage", "NoSuchMethod", "NullPointer", "IndexOutOfBounds",
)  # fmt: skip
"""Exceptions that this machine causes, rather than the script."""
_LASTS = re.compile(
    r"(?:(?:DROP|ALTER)(?!\s+TEMPORARY)|CREATE\s+(?:OR\s+ALTER\s+)?MATERIALIZED|CALL|UPDATE|DELETE|TRUNCATE|ANALYZE"
    r"|REFRESH|ADD|REMOVE|(?:UN)?LOAD|STOP|COMPILE|EXECUTE\s+PLAN)\b",
    re.IGNORECASE,
)
_SHOWS = re.compile(r"(?:SHOW|DESC|DESCRIBE|EXPLAIN|HELP|CLEAR|QUIT|EXIT)\b", re.IGNORECASE)
_OF_STATEMENT = re.compile(
    r"FETCH is missed|function signature DEFAULT\b|SQL validation failed\. Cannot invoke|Unsupported call: DESCRIPTOR"
)
"""Errors about a form of a statement that no declaration of its tables makes valid."""
_PLACEHOLDER = "${"
"""Start of a template placeholder. The value that replaces the placeholder may have a different type."""
_BEFORE_TABLES = ("SqlParserException", "CalciteContextException", "SqlValidatorException")
"""Exceptions of the parser and validator, which do not depend on connectors."""


CONNECTOR_BASES = frozenset(("source", "committer", "sink writer"))
"""Values of ``PlannedOperator.basis`` for operators that were not started, but whose state is known."""


def readable_name(operator: str) -> str:
    """The name of an operator without the number of its exec node."""
    return _NODE.sub("", operator)


@dataclass(frozen=True)
class PlannerRefusal:
    """The reason why Flink cannot plan a script.

    Attributes:
        message: Flink's error message.
        place: The statement, or the position within the statement if Flink reports one.
        conclusive: True if every Flink refuses the script; False if only something missing on this machine
            prevents a plan.
        by_stand_in: True if only the stand-in for a connector makes the refusal inconclusive.
    """

    message: str
    place: Span | None
    conclusive: bool
    by_stand_in: bool = False

    def is_due_to_version(self, other: PlannerRefusal | None) -> bool:
        """True if this version of Flink refuses a script for a reason that a different version does not have.

        ``other`` is the refusal of the same script by the different version, with the same stand-ins.
        """
        return (self.conclusive or self.by_stand_in) if other is None else (self.conclusive and not other.conclusive)

    @classmethod
    def of(
        cls,
        chain: Sequence[Mapping[str, str]],
        statement: Span | None,
        stand_ins: Collection[str] = (),
        catalogs: Collection[str] = (),
    ) -> PlannerRefusal:
        """Derive Flink's refusal of a script from a chain of Java exceptions.

        If ``catalogs`` were replaced, an existing database proves nothing, because a catalog in memory starts with a
        database.
        """
        texts = [each["message"] for each in chain]
        classes = " ".join(each["class"].rpartition(".")[2] for each in chain)
        located = next((text for text in texts if _PLACE.search(text)), "")
        message = next((text for text in reversed(texts) if text not in ("", "null")), classes)
        missing = any(map(_NOT_WHOLE.search, texts)) or any(word in classes for word in _TROUBLE)
        missing |= any(_PLACEHOLDER in text for text in texts)
        missing |= bool(catalogs) and "DatabaseAlreadyExistException" in classes
        by_stand_in = not missing and bool(stand_ins) and not any(word in classes for word in _BEFORE_TABLES)
        message = _IN_STATEMENT.sub("", _EXPECTED.sub("", message))
        if any(each["class"].endswith("ClassNotFoundException") and each["message"] == message for each in chain):
            message = f"class {message} was not found: pass its jar with --jar FILE"
        conclusive = not (missing or by_stand_in)
        return cls(shorten(message, 400, placeholder=" …"), _placed(located, statement), conclusive, by_stand_in)


def refuses_statement(chain: Sequence[Mapping[str, str]]) -> bool:
    """True if Flink refuses a statement for any declarations of its tables and functions."""
    texts = [each["message"] for each in chain]
    parsed = not any(each["class"].endswith(("SqlParserException", "SqlParseException")) for each in chain)
    return not any(_PLACEHOLDER in text for text in texts) and (not parsed or any(map(_OF_STATEMENT.search, texts)))


def changes_what_lasts(statement: str) -> bool:
    """True if a statement has lasting effects outside of the session, or depends on such effects."""
    return _LASTS.match(statement) is not None


def _placed(message: str, statement: Span | None) -> Span | None:
    """Convert a position within a statement to a position within the script."""
    found = _PLACE.search(message)
    if statement is None or found is None:
        return statement
    line, column = int(found[1]), int(found[2])
    column += statement.column - 1 if line == 1 else 0
    line += statement.line - 1
    return Span(statement.source, line, column, line, column)


@dataclass(frozen=True)
class PlannedOperator:
    """An operator of a job that Flink planned but did not run.

    Attributes:
        id: The OperatorID, under which a savepoint stores the operator's state.
        name: The operator's name in Flink's web interface.
        kind: The class of the operator.
        keeps: ``yes`` if the operator keeps state, ``no`` if it keeps none, ``may`` if that is uncertain.
        basis: The evidence for ``keeps``; ``opened`` if the operator was started.
        component: The class of the operator's source, sink or function.
        max_parallelism: The operator's explicit maximum parallelism; 0 or less if none is set.
        uid: The uid that the script sets or Flink generates.
        states: The options of each state that the operator registers, by name; None if the operator was not
            started.
        counted: True if the OperatorID contains a counter of Flink's client, and so changes with each start.
        chain: The task in which the operator is chained to other operators; None if the planner does not show the
            task.
        inputs: The OperatorIDs of the operators whose output the operator reads.
        ends: True if every upstream source is bounded, or may be bounded.
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
        """Read one operator of the planner's answer; a uid that starts with a digit contains a counter."""
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
        """True if the operator keeps state or may keep state."""
        return self.keeps != "no"


@dataclass(frozen=True)
class SubmittedJob:
    """A job that Flink planned but did not run.

    Attributes:
        operators: The operators, sources first.
        plan: The compiled plan as JSON; None if Flink compiles none.
        restores: The exceptions of Flink's dry restore of this job from the other script's job, by OperatorID; empty
            if Flink accepted all state.
        savepoint: A savepoint of the job that was taken before its first row, in Flink's format, encoded in Base64.
    """

    operators: tuple[PlannedOperator, ...]
    plan: Any = field(default=None, repr=False)
    restores: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict, repr=False)
    savepoint: str = field(default="", repr=False)


def _operators(answered: Sequence[Mapping[str, Any]]) -> tuple[PlannedOperator, ...]:
    """Read the operators of a job, sources first."""
    found: dict[int, PlannedOperator] = {}
    for place, each in enumerate(answered):
        inputs = [found[node] for node in each.get("inputs", ()) if node in found]
        found[each.get("node", -1 - place)] = PlannedOperator.of(each, inputs)
    return tuple(found.values())


@dataclass(frozen=True)
class PlannedScript:
    """The jobs that Flink plans for a script.

    Attributes:
        flink: The Flink release that planned the script.
        jobs: The jobs of the script, in order.
        refusal: The reason why Flink cannot plan the whole script; None if it can.
        stand_ins: The connector or format whose jar is missing, by table.
        catalogs: The type of each catalog that a catalog in memory replaces, by name.
        guessed: ``source`` or ``sink`` if the abilities of a stand-in of that kind were guessed.
        lookups: The tables that have a stand-in and are used in lookups.
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

    @property
    def is_incomplete(self) -> bool:
        """True if Flink lacks a declaration or a class that exists elsewhere."""
        return self.refusal is not None and not self.refusal.conclusive

    @classmethod
    def of(cls, answer: Mapping[str, Any], statements: Sequence[Statement]) -> PlannedScript:
        """Read the planner's answer for a script."""
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
