"""Prediction of a restore by Flink's planner: the diff of two planned scripts, and its limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from airflow_flinkcompat.exec_graph.diff import diff, operator_effects
from airflow_flinkcompat.exec_graph.from_planner import PlannedScript, SubmittedJob
from airflow_flinkcompat.exec_graph.model import (
    NOTHING,
    ExecGraph,
    Restore,
    RestoreEffect,
    StateEffect,
    StateKind,
    StateSpec,
)

_SINK = re.compile(r"Sink: (?P<legacy>\w+)|(?P<table>\w+): (?:Writer|Committer)")
_COUNTED = (
    "contains a counter of the client: table.exec.uid.generation is ALWAYS, or rows come from a process table function "
    "without a uid"
)
SCRIPT = "script"
"""The place of a refusal that concerns the script and no operator."""
_NUMBER = re.compile(r"\$\d+$")
_JOB_NOT_PLANNED = re.compile(
    r"(?:\s|--[^\n]*\n)*(?:EXECUTE\s+PLAN|COMPILE\s+AND\s+EXECUTE|CREATE\s+(?:OR\s+ALTER\s+)?MATERIALIZED)\b",
    re.IGNORECASE,
)
"""Statements that run a job that Flink's planner does not plan."""


class ConditionKind(StrEnum):
    """Kinds of facts outside of a script on which an upgrade depends, each as the code of a rule."""

    SINK = "undeclared-sink"
    TYPES = "undeclared-types"
    CLASS = "absent-class"
    CONNECTOR = "untried-connector"


@dataclass(frozen=True)
class Prediction:
    """The result of a restore, as predicted by Flink's planner.

    Attributes:
        flink: The Flink release that planned both scripts.
        restore: The effects on states: all refusals in Flink's order. Without a refusal, the effects on state
            that Flink drops silently, and on state that is new or was not opened.
        doubt: The reason why the planner cannot decide; "" if it can.
        stand_ins: The connectors and formats whose jars are missing.
        stubs: The names of the tables that have a stand-in.
        lookups: The tables with a stand-in that are used in lookups, so that rows may wait for an answer.
        unproven: Reasons why no change can be compatible, regardless of plans and rules.
        alike: True if every operator of one script has a counterpart of the same class in the other script.
        bare_sinks: The tables without a stand-in whose sinks keep no state in either script.
        assumed: The tables and functions that the script does not declare, and that have assumed declarations.
        conditions: The cases in which the new version refuses the job, because of tables that are not declared or
            classes that are absent, each with its kind.
        contradicted: Differences between the deployed job's savepoint and the plan of its script.
        operators: The worst effect on each stateful operator of either script, also if Flink refuses another operator.
        serializers: The names of the serializers of each operator's keyed state, by OperatorID; only for an upgrade.
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
    contradicted: tuple[str, ...] = ()
    operators: tuple[StateEffect, ...] = ()
    assumed: tuple[str, ...] = ()
    conditions: tuple[tuple[ConditionKind, str], ...] = ()
    serializers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def refusal(self) -> StateEffect | None:
        """The effect for which Flink refuses the restore; None if Flink refuses nothing."""
        return self.restore.refusal

    @property
    def refuses_script(self) -> bool:
        """True if Flink refuses the new script itself, which the older version accepts."""
        return self.refusal is not None and self.refusal.operator == SCRIPT

    @property
    def is_uncertain(self) -> bool:
        """True if equal plans do not prove that the state fits."""
        return bool(self.doubt or self.restore.differences or self.unproven or self.contradicted)


def predicted(
    old: PlannedScript, new: PlannedScript, contradicted: tuple[str, ...] = (), *, upgrade: bool = False
) -> Prediction:
    """Predict the result of a restore; ``upgrade`` is True for one script on two versions of Flink."""
    said = Prediction(
        new.flink,
        stand_ins=tuple(sorted({*old.stand_ins.values(), *new.stand_ins.values()})),
        stubs=tuple(sorted({*old.stand_ins, *new.stand_ins})),
        lookups=tuple(sorted({*old.lookups, *new.lookups})),
        unproven=tuple(_unproven(old, new)),
        contradicted=contradicted,
    )
    if upgrade and new.refusal is not None and new.refusal.is_due_to_version(old.refusal):
        message = f"{new.refusal.place or 'the script'}: {new.refusal.message}"
        return replace(said, restore=Restore((StateEffect(RestoreEffect.REFUSED_AT_SUBMIT, SCRIPT, message=message),)))
    at_fault = next((each.refusal for each in (new, old) if each.refusal is not None), None)
    if at_fault is not None:
        return replace(said, doubt=f"{at_fault.place or 'the script'}: {at_fault.message}")
    if not old.jobs or len(old.jobs) != len(new.jobs):
        return replace(said, doubt=f"the scripts run {len(old.jobs)} and {len(new.jobs)} jobs")
    pairs = list(zip(old.jobs, new.jobs, strict=True))
    operators = [each for pair in pairs for job in pair for each in job.operators]
    if counted := next((each for each in operators if each.counted and each.stateful), None):
        return replace(said, doubt=f"the id of {counted.name} {_COUNTED}")
    graphs = [(_graph(before), _graph(after)) for before, after in pairs]
    restores = [diff(*pair) for pair in graphs]
    said = replace(said, operators=tuple(each for pair in graphs for each in operator_effects(*pair)))
    if refusal := next((each.refusal for each in restores if each.refusal), None):
        return replace(said, restore=Restore((refusal,)))
    return replace(
        said,
        unproven=(*said.unproven, *(each for pair in pairs for each in _unfinished(*pair))),
        restore=Restore(tuple(each for restore in restores for each in restore.states)),
        alike=all(_classes(before) == _classes(after) for before, after in pairs),
        bare_sinks=tuple(
            sorted(_bare_sinks(old) & _bare_sinks(new) - {each.rpartition(".")[2] for each in said.stubs})
        ),
    )


def _graph(job: SubmittedJob) -> ExecGraph:
    specs = (StateSpec(StateKind.OPERATOR, each.name, each.id, planned=each) for each in job.operators if each.stateful)
    return ExecGraph((), tuple(specs), submitted=job)


def _unproven(old: PlannedScript, new: PlannedScript) -> Iterator[str]:
    """Differences that plans do not show: statements with lasting effects that the planner skips."""
    catalogs = bool(old.catalogs or new.catalogs)
    before, after = (
        [" ".join(text.split()) for text in side.lasting if _may_have_lasting_effect(text, catalogs)]
        for side in (old, new)
    )
    if before != after:
        yield "statements with effects outside of the session differ, and the planner skips them"
    for text in new.lasting:
        if _JOB_NOT_PLANNED.match(text):
            yield f"the job of {' '.join(text.split())[:60]} is not planned"


def _unfinished(before: SubmittedJob, after: SubmittedJob) -> Iterator[str]:
    """Yield a reason if the new job connects operators that may have finished to unfinished operators.

    Flink's ``VertexFinishedStateChecker`` refuses such a restore at submit. Plans do not show if a source has ended.
    """
    finished = {each.id for each in before.operators if each.ends}
    if len([each for each in before.operators if not each.inputs]) == 1:
        return  # the whole job finishes with its only source
    for one in (each for each in after.operators if each.id in finished):
        chained = {each.id for each in after.operators if each.chain == one.chain and one.chain is not None}
        if others := (one.inputs | chained) - finished:
            name = next(each.name for each in after.operators if each.id in others)
            yield (
                f"{one.name} may have finished with its source, but {name}, which is chained "
                "to it or upstream of it, has not"
            )
            return


def _may_have_lasting_effect(statement: str, catalogs: bool) -> bool:
    """True if a skipped statement may have a lasting effect; DROP and ALTER only in a replaced catalog."""
    word = statement.split(maxsplit=1)[0].upper() if statement.split() else ""
    return catalogs or word not in ("DROP", "ALTER")


def _bare_sinks(script: PlannedScript) -> set[str]:
    """The tables whose sink operators keep no state, by Flink's operator names."""
    kept: dict[str, bool] = {}
    for each in (operator for job in script.jobs for operator in job.operators):
        if found := _SINK.fullmatch(each.name):
            name = found["legacy"] or found["table"]
            kept[name] = kept.get(name, False) or each.stateful
    return {name for name, stateful in kept.items() if not stateful}


def _classes(job: SubmittedJob) -> list[tuple[str, str, str]]:
    """The classes of each operator and its function, by id and without generated numbers."""
    return sorted(
        ("" if each.counted else each.id, _NUMBER.sub("", each.kind), _NUMBER.sub("", each.component))
        for each in job.operators
    )
