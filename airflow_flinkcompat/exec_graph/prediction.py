"""The diff of two jobs as Flink's planner would submit them: operator ids, states and their serializers are exact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from airflow_flinkcompat.exec_graph.diff import NOTHING, Restore, RestoreEffect, StateEffect
from airflow_flinkcompat.exec_graph.from_planner import PlannedScript, SubmittedJob

REFUSED_AT_SUBMIT, REFUSED_AT_RESTORE = RestoreEffect.REFUSED_AT_SUBMIT, RestoreEffect.REFUSED_AT_RESTORE
_DEFAULT_MAX_PARALLELISM = 128
"""Flink's own maximum for a parallelism of at most 85, where none is set."""
_SINK = re.compile(r"Sink: (?P<legacy>\w+)|(?P<table>\w+): (?:Writer|Committer)")
_SHOWS = frozenset(("SHOW", "DESCRIBE", "DESC", "EXPLAIN", "HELP"))
_COUNTED = (
    "contains a counter of the client: table.exec.uid.generation is ALWAYS, or rows come from a process table function "
    "without a uid"
)
_NUMBER = re.compile(r"\$\d+$")
_JOB_NOT_PLANNED = re.compile(
    r"(?:\s|--[^\n]*\n)*(?:EXECUTE\s+PLAN|COMPILE\s+AND\s+EXECUTE|CREATE\s+(?:OR\s+ALTER\s+)?MATERIALIZED)\b",
    re.IGNORECASE,
)
"""Statements that run a job of their own, which the planner passes over."""


@dataclass(frozen=True)
class Prediction:
    """The end of a restore of the new job from the old one's savepoint, as Flink's planner shows it.

    Attributes:
        flink: The release that planned both.
        restore: The effects on states: refusals in the order in which Flink finds them, else what it drops without a
            word, and what is new or was not opened.
        doubt: Why the planner cannot tell, "" where it can.
        stand_ins: The connectors and formats whose jars are absent.
        stubs: The names of the tables that have them.
        lookups: Those among them that rows are looked up in, which may wait for an answer.
        unproven: Why nothing is compatible, whatever the plans and the rules say.
        alike: Whether every operator has a counterpart of its class.
        bare_sinks: The tables without a stand-in whose sinks keep nothing on either side.
    """

    flink: str
    restore: Restore = NOTHING
    doubt: str = ""
    stand_ins: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    alike: bool = False
    bare_sinks: tuple[str, ...] = ()

    @property
    def refusal(self) -> StateEffect | None:
        """The state over which Flink refuses the restore; None where it refuses nothing."""
        return next(iter(self.restore.having(REFUSED_AT_SUBMIT, REFUSED_AT_RESTORE)), None)

    @property
    def is_uncertain(self) -> bool:
        """True if anything keeps equal plans from proving that the state fits."""
        return bool(self.doubt or self.restore.differences or self.unproven)


def predicted(old: PlannedScript, new: PlannedScript) -> Prediction:
    """Predict how a restore ends."""
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
    operators = [each for pair in pairs for job in pair for each in job.operators]
    if counted := next((each for each in operators if each.counted and each.stateful), None):
        return replace(said, doubt=f"the id of {counted.name} {_COUNTED}")
    for before, after in pairs:
        for refusal in _refusals(before, after):
            return replace(said, restore=Restore((refusal,)))
    return replace(
        said,
        unproven=(*said.unproven, *(each for pair in pairs for each in _unfinished(*pair))),
        restore=Restore(tuple(each for pair in pairs for each in (*_losses(*pair), *_novelties(*pair)))),
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


def _unfinished(before: SubmittedJob, after: SubmittedJob) -> Iterator[str]:
    """Operators that may have finished with their bounded source, and that the new job chains to or feeds from others.

    Flink's ``VertexFinishedStateChecker`` refuses such a restore at submit. Whether a source has ended is in its data.
    """
    finished = {each.id for each in before.operators if each.ends}
    if len([each for each in before.operators if not each.inputs]) == 1:
        return  # the whole job finishes with its only source
    for one in (each for each in after.operators if each.id in finished):
        chained = {each.id for each in after.operators if each.chain == one.chain and one.chain is not None}
        if others := (one.inputs | chained) - finished:
            name = next(each.name for each in after.operators if each.id in others)
            yield f"{one.name} may have finished with its source, and {name}, in its task or below it, has not"
            return


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
    """By id the class of each operator and of its function; generated classes are numbered, as some ids are."""
    return sorted(
        ("" if each.counted else each.id, _NUMBER.sub("", each.kind), _NUMBER.sub("", each.component))
        for each in job.operators
    )


def _refusals(before: SubmittedJob, after: SubmittedJob) -> Iterator[StateEffect]:
    """Flink's refusals in the order in which it finds them: at submit, then when state is read."""
    found = {each.id: each for each in after.operators}
    kept = [each for each in before.operators if each.stateful]
    for each in kept:
        if each.id not in found:
            message = f"the new job has no operator with the id of {each.name} ({each.id}), which keeps state"
            yield StateEffect(REFUSED_AT_SUBMIT, each.name, message=message)
    for each in kept:
        stored = each.max_parallelism if each.max_parallelism > 0 else _DEFAULT_MAX_PARALLELISM
        wanted = found[each.id].max_parallelism
        if wanted not in (stored, 0, -1):  # where none is set, Flink takes that of the savepoint
            message = f"the maximum parallelism of {each.name} changes from {stored} to {wanted}"
            yield StateEffect(REFUSED_AT_SUBMIT, each.name, message=message)
    for each in kept:
        if chain := after.restores.get(each.id):
            migration = any(one["class"].endswith("StateMigrationException") for one in chain)
            why = "is laid out otherwise, and Flink does not migrate it" if migration else chain[-1]["message"][:300]
            yield StateEffect(REFUSED_AT_RESTORE, each.name, message=f"the stored state of {each.name} {why}")


def _losses(before: SubmittedJob, after: SubmittedJob) -> Iterator[StateEffect]:
    found = {each.id: each for each in after.operators}

    def dropped(message: str) -> StateEffect:
        return StateEffect(RestoreEffect.DROPPED, one.name, message=message)

    for one in filter(lambda each: each.stateful, before.operators):
        other = found[one.id]
        if not other.stateful:
            yield dropped(f"{one.name} keeps state, {other.name} in its place keeps none")
        elif one.states is not None and other.states is not None:
            gone = sorted(set(one.states) - set(other.states))
            yield from (dropped(f"{one.name}: state {name} is no longer read") for name in gone)
        elif (one.kind, one.component) != (other.kind, other.component):
            yield dropped(f"{one.name}: {other.component or other.kind} takes the place of {one.component or one.kind}")


def _novelties(before: SubmittedJob, after: SubmittedJob) -> Iterator[StateEffect]:
    stored = {each.id: each for each in before.operators}
    for other in filter(lambda each: each.stateful, after.operators):
        one = stored.get(other.id)
        if one is None or not one.stateful:
            yield StateEffect(RestoreEffect.EMPTY, other.name, message=f"{other.name} begins without state")
        elif one.states is None or other.states is None:
            if other.basis not in ("source", "committer", "sink writer"):
                yield StateEffect(RestoreEffect.UNKNOWN, other.name, message=f"{other.name}: its state is unknown")
        else:
            for name in sorted(other.states):
                if name not in one.states:
                    message = f"{other.name}: state {name} begins empty"
                    yield StateEffect(RestoreEffect.EMPTY, other.name, message=message)
                elif one.states[name] != other.states[name]:
                    message = f"{other.name}: state {name} has other options"
                    yield StateEffect(RestoreEffect.UNKNOWN, other.name, message=message)
