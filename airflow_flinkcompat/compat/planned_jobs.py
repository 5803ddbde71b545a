"""The jobs that Flink's own planner makes of two scripts, and the end of a restore from one to the other.

The order is Flink's: what it refuses to plan, operators that no longer exist, state that cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Any

from airflow_flinkcompat.model import Consequence, Span
from airflow_flinkcompat.sql import Statement

_DEFAULT_MAX_PARALLELISM = 128
"""Flink's own maximum for a parallelism of at most 85, where none is set."""
_PLACE = re.compile(r"\bline (\d+), column (\d+)")
_SINK = re.compile(r"Sink: (?P<legacy>\w+)|(?P<table>\w+): (?:Writer|Committer)")
_SHOWS = frozenset(("SHOW", "DESCRIBE", "DESC", "EXPLAIN", "HELP"))
_NUMBER = re.compile(r"\$\d+$")
_NODE = re.compile(r"\[\d+\]")
"""The number of an ExecNode in an operator's name, which counts on in a process."""
_EXPECTED = re.compile(r"\s*Was expecting(?: one of)?:.*", re.DOTALL)
_IN_STATEMENT = re.compile(r",? at line \d+, column \d+\.?$")
"""The place at the end of a sentence, which counts from the beginning of the statement."""
_NOT_WHOLE = re.compile(
    r"Object '[^']*' not found|Cannot find table|No match found for function signature|"
    r"(?:[Tt]able|View|[Dd]atabase|[Cc]atalog|[Ff]unction|Model)\b.{0,200}(?:does not exist|doesn't exist|not found)|"
    r"Could not find (?:any|an implementation)|Could not (?:load|find) (?:class|function)|Cannot instantiate|"
    r"ClassNotFound|NoClassDefFound|implementation class",
    re.DOTALL,
)
"""Errors that say what the script lacks here, a declaration or a jar: elsewhere Flink may plan it."""
_TROUBLE = (
    "Connect", "Timeout", "UnknownHost", "Socket", "SQLException", "OutOfMemory", "StackOverflow", "IOException",
    "ClassNotFound", "NoClassDef", "Linkage", "NoSuchMethod", "NullPointer",
)  # fmt: skip
"""Exceptions that say something of this machine rather than of the script."""

_JOB_NOT_PLANNED = re.compile(
    r"(?:\s|--[^\n]*\n)*(?:EXECUTE\s+PLAN|COMPILE\s+AND\s+EXECUTE|CREATE\s+(?:OR\s+ALTER\s+)?MATERIALIZED)\b",
    re.IGNORECASE,
)
"""Statements that run a job of their own, which the planner passes over."""
_PLACEHOLDER = "${"
"""The beginning of a placeholder, whose value may be of another type."""
_BEFORE_TABLES = ("SqlParserException", "CalciteContextException", "SqlValidatorException")
"""Exceptions of the parser and the validator, which do not ask what a connector can do."""


@dataclass(frozen=True)
class PlannerRefusal:
    """The reason why Flink does not plan a script.

    Attributes:
        message: Flink's own sentence.
        place: The statement, or the place in it where Flink names one.
        conclusive: Whether Flink refuses the script everywhere; otherwise something is missing here.
    """

    message: str
    place: Span | None
    conclusive: bool

    @classmethod
    def of(
        cls, chain: Sequence[Mapping[str, str]], statement: Span | None, stand_ins: Collection[str] = ()
    ) -> PlannerRefusal:
        """The refusal that a chain of exceptions shows.

        Args:
            chain: Exceptions from the outermost to its root cause, a class and a message each.
            statement: The place of the statement.
            stand_ins: The tables whose connector or format is absent. What they take and hand on is a guess, so only
                syntax and names are refused for certain where there are any.

        Returns:
            The refusal.
        """
        texts = [each["message"] for each in chain]
        classes = " ".join(each["class"].rpartition(".")[2] for each in chain)
        located = next((text for text in texts if _PLACE.search(text)), "")
        message = next((text for text in reversed(texts) if text not in ("", "null")), classes)
        missing = any(map(_NOT_WHOLE.search, texts)) or any(word in classes for word in _TROUBLE)
        missing |= any(_PLACEHOLDER in text for text in texts)
        missing |= bool(stand_ins) and not any(word in classes for word in _BEFORE_TABLES)
        message = _IN_STATEMENT.sub("", _EXPECTED.sub("", message))
        return cls(shorten(message, 400, placeholder=" …"), _placed(located, statement), not missing)


def _placed(message: str, statement: Span | None) -> Span | None:
    """The place in the script of a place in one of its statements."""
    found = _PLACE.search(message)
    if statement is None or found is None:
        return statement
    line, column = int(found[1]), int(found[2])
    column += statement.column - 1 if line == 1 else 0
    line += statement.line - 1
    return Span(statement.source, line, column, line, column)


@dataclass(frozen=True)
class PlannedOperator:
    """An operator of a job as it would be submitted.

    Attributes:
        id: Its OperatorID, by which a savepoint knows it.
        name: Its name in Flink's web interface.
        kind: The class of the operator.
        keeps: ``yes``, ``no`` or ``may``.
        basis: How that is known; ``opened`` where the operator was started.
        component: The class of its source, sink or function.
        max_parallelism: Its own maximum, 0 or less where none is set.
        uid: The uid that the script sets, or Flink makes for it.
        states: Options by the name of each state that it registers; None where it was not started.
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

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> PlannedOperator:
        """The operator that an answer holds."""
        states = {each["name"]: each["options"] for each in data["states"]} if "states" in data else None
        return cls(
            data["id"], _NODE.sub("", data["name"]), data["kind"], data["keeps"], data["basis"], data["component"],
            data["max_parallelism"], data["uid"] or "", states,
        )  # fmt: skip

    @property
    def stateful(self) -> bool:
        """True if it keeps state, or may."""
        return self.keeps != "no"


@dataclass(frozen=True)
class SubmittedJob:
    """A job as it would be submitted.

    Attributes:
        operators: Its operators, sources first.
        plan: Its compiled plan as JSON; None where Flink compiles none.
        restores: By OperatorID how Flink's dry restore from the other side's job ended: its exceptions, empty if it
            took the state.
        savepoint: A savepoint of the job before its first row, in Flink's format and Base64.
    """

    operators: tuple[PlannedOperator, ...]
    plan: Any = field(default=None, repr=False)
    restores: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict, repr=False)
    savepoint: str = field(default="", repr=False)


@dataclass(frozen=True)
class PlannedScript:
    """The jobs that Flink plans for a script.

    Attributes:
        flink: The release that planned it.
        jobs: Its jobs in order.
        refusal: Why it is not planned to its end.
        stand_ins: By table the connector or format whose jar is absent.
        catalogs: By name the type of each catalog that one in memory stands for.
        guessed: The kinds of stand-ins whose abilities are a guess, ``source`` and ``sink``.
        lookups: The tables among them that rows are looked up in.
        lasting: The statements that would change what lasts outside of the session, in order.
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
        """The script that an answer tells of.

        Args:
            answer: The answer of the planner's process.
            statements: The statements that it was asked about.

        Returns:
            The script.
        """
        said, refusal = answer.get("refusal"), None
        if said is not None:
            place = statements[said["statement"]].span if said["statement"] < len(statements) else None
            refusal = PlannerRefusal.of(said["chain"], place, answer.get("stand_ins", ()))
        elif "failure" in answer:
            refusal = PlannerRefusal.of(answer["failure"], None)
        jobs = tuple(
            SubmittedJob(
                tuple(map(PlannedOperator.of, job["operators"])), job.get("plan"), job["restores"], job["savepoint"]
            )
            for job in answer.get("jobs", ())
        )
        lasting = tuple(statements[number].text for number in answer.get("lasting", ()))
        return cls(
            answer["flink"], jobs, refusal, answer.get("stand_ins", {}), answer.get("catalogs", {}), lasting,
            tuple(answer.get("lookups", ())), frozenset(answer.get("guessed", ())),
        )  # fmt: skip


@dataclass(frozen=True)
class Prediction:
    """The end of a restore of the new job from the old one's savepoint, as Flink's planner shows it.

    Attributes:
        flink: The release that planned both.
        consequence: Where it refuses; None where nothing is refused.
        operator: The name of the operator that it refuses.
        message: Why, in a sentence.
        doubt: Why the planner cannot tell, "" where it can.
        losses: What is dropped or replaced without a refusal.
        novelties: What is new or was not started: not known to matter.
        stand_ins: The connectors and formats whose jars are absent.
        stubs: The names of the tables that have them.
        lookups: Those among them that rows are looked up in, which may wait for an answer.
        unproven: Why nothing is compatible, whatever the plans and the rules say.
        alike: Whether every operator has a counterpart of its class.
        bare_sinks: The tables without a stand-in whose sinks keep nothing on either side.
    """

    flink: str
    consequence: Consequence | None = None
    operator: str = ""
    message: str = ""
    doubt: str = ""
    losses: tuple[str, ...] = ()
    novelties: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    alike: bool = False
    bare_sinks: tuple[str, ...] = ()

    @property
    def is_uncertain(self) -> bool:
        """True if anything keeps equal plans from proving that the state fits."""
        return bool(self.consequence or self.doubt or self.losses or self.novelties or self.unproven)


def predicted(old: PlannedScript, new: PlannedScript) -> Prediction:
    """Predict how a restore ends.

    Args:
        old: What is deployed.
        new: What is proposed; its jobs were restored from savepoints of the old ones.

    Returns:
        The prediction.
    """
    said = Prediction(
        new.flink,
        stand_ins=tuple(sorted({*old.stand_ins.values(), *new.stand_ins.values()})),
        stubs=tuple(sorted({*old.stand_ins, *new.stand_ins})),
        lookups=tuple(sorted({*old.lookups, *new.lookups})),
        unproven=tuple(_unproven(old, new)),
    )
    at_fault = next((each.refusal for each in (new, old) if each.refusal is not None), None)
    if at_fault is not None:
        return replace(said, doubt=f"{at_fault.place or 'the script'}: {at_fault.message}")
    if not old.jobs or len(old.jobs) != len(new.jobs):
        return replace(said, doubt=f"the scripts make {len(old.jobs)} and {len(new.jobs)} jobs")
    pairs = list(zip(old.jobs, new.jobs, strict=True))
    if any(each.uid[:1].isdigit() for pair in pairs for job in pair for each in job.operators):
        return replace(said, doubt="uids are made of a counter of the client (table.exec.uid.generation = ALWAYS)")
    for before, after in pairs:
        for consequence, operator, message in _refusals(before, after):
            return replace(said, consequence=consequence, operator=operator, message=message)
    return replace(
        said,
        losses=tuple(each for pair in pairs for each in _losses(*pair)),
        novelties=tuple(each for pair in pairs for each in _novelties(*pair)),
        alike=all(_classes(before) == _classes(after) for before, after in pairs),
        bare_sinks=tuple(
            sorted(_bare_sinks(old) & _bare_sinks(new) - {each.rpartition(".")[2] for each in said.stubs})
        ),
    )


def _unproven(old: PlannedScript, new: PlannedScript) -> Iterator[str]:
    """What equal jobs say nothing about: statements whose effect lasts, and which the planner passes over."""
    catalogs = bool(old.catalogs or new.catalogs)
    before, after = (
        [" ".join(text.split()) for text in side.lasting if _passed_over(text, catalogs)] for side in (old, new)
    )
    if before != after:
        yield "statements differ that change what lasts outside of the session, and the planner passes them over"
    for text in new.lasting:
        if _JOB_NOT_PLANNED.match(text):
            yield f"the job of {' '.join(text.split())[:60]} is not planned"


def _passed_over(statement: str, catalogs: bool) -> bool:
    """Whether a statement may change what lasts; DROP and ALTER do not where all catalogs are in memory."""
    word = statement.split(maxsplit=1)[0].upper() if statement.split() else ""
    return word not in _SHOWS and (catalogs or word not in ("DROP", "ALTER"))


def _bare_sinks(script: PlannedScript) -> set[str]:
    """The tables whose every writer keeps nothing, by the names that Flink gives its operators."""
    kept: dict[str, bool] = {}
    for each in (operator for job in script.jobs for operator in job.operators):
        if found := _SINK.fullmatch(each.name):
            name = found["legacy"] or found["table"]
            kept[name] = kept.get(name, False) or each.stateful
    return {name for name, stateful in kept.items() if not stateful}


def _classes(job: SubmittedJob) -> list[tuple[str, str, str]]:
    """By id the class of each operator and of its function; generated classes are numbered."""
    return sorted((each.id, _NUMBER.sub("", each.kind), _NUMBER.sub("", each.component)) for each in job.operators)


def _refusals(before: SubmittedJob, after: SubmittedJob) -> Iterator[tuple[Consequence, str, str]]:
    """Flink's refusals in the order in which it finds them: at submit, then when state is read."""
    found = {each.id: each for each in after.operators}
    kept = [each for each in before.operators if each.stateful]
    for each in kept:
        if each.id not in found:
            message = f"the new job has no operator with the id of {each.name} ({each.id}), which keeps state"
            yield Consequence.REFUSED_AT_SUBMIT, each.name, message
    for each in kept:
        stored = each.max_parallelism if each.max_parallelism > 0 else _DEFAULT_MAX_PARALLELISM
        wanted = found[each.id].max_parallelism
        if wanted not in (stored, 0, -1):  # where none is set, Flink takes that of the savepoint
            message = f"the maximum parallelism of {each.name} changes from {stored} to {wanted}"
            yield Consequence.REFUSED_AT_SUBMIT, each.name, message
    for each in kept:
        if chain := after.restores.get(each.id):
            migration = any(one["class"].endswith("StateMigrationException") for one in chain)
            why = "is laid out otherwise, and Flink does not migrate it" if migration else chain[-1]["message"][:300]
            yield Consequence.REFUSED_AT_RESTORE, each.name, f"the stored state of {each.name} {why}"


def _losses(before: SubmittedJob, after: SubmittedJob) -> Iterator[str]:
    found = {each.id: each for each in after.operators}
    for one in filter(lambda each: each.stateful, before.operators):
        other = found[one.id]
        if not other.stateful:
            yield f"{one.name} keeps state, {other.name} in its place keeps none"
        elif one.states is not None and other.states is not None:
            yield from (
                f"{one.name}: state {name} is no longer read" for name in sorted(set(one.states) - set(other.states))
            )
        elif (one.kind, one.component) != (other.kind, other.component):
            yield f"{one.name}: {other.component or other.kind} takes the place of {one.component or one.kind}"


def _novelties(before: SubmittedJob, after: SubmittedJob) -> Iterator[str]:
    stored = {each.id: each for each in before.operators}
    for other in filter(lambda each: each.stateful, after.operators):
        one = stored.get(other.id)
        if one is None or not one.stateful:
            yield f"{other.name} begins without state"
        elif one.states is None or other.states is None:
            if other.basis not in ("source", "committer", "sink writer"):
                yield f"{other.name}: its state is not known"
        else:
            yield from (
                f"{other.name}: state {name} begins empty" for name in sorted(set(other.states) - set(one.states))
            )
            changed = [
                name for name in sorted(set(one.states) & set(other.states)) if one.states[name] != other.states[name]
            ]
            yield from (f"{other.name}: state {name} has other options" for name in changed)
