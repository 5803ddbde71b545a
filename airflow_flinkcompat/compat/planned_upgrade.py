"""Verdict on an unchanged script that two versions of Flink plan, per operator and connector.

The planners decide, whatever the rules read in the script. They do not show the state of connectors, which the
catalogue of connectors covers, the code of functions, which an upgrade does not change, and settings of the runtime,
whose defaults no test compares between versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.upgrade import (
    Judged,
    connector_effects,
    judged_by_planners,
    refused_by_connectors,
)
from airflow_flinkcompat.compat.report import Finding, RestoredOperator
from airflow_flinkcompat.compat.restore_verdict import EQUAL, RestoreVerdict
from airflow_flinkcompat.compat.rule import Example, Rule, windowed
from airflow_flinkcompat.compat.rules import script, statements
from airflow_flinkcompat.compat.verdict import expected, unknown
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateEffect
from airflow_flinkcompat.exec_graph.prediction import ConditionKind, Prediction
from airflow_flinkcompat.model import Reason

_EFFECTS: Mapping[RestoreEffect, str] = {
    RestoreEffect.REFUSED_AT_SUBMIT: "refused at submit",
    RestoreEffect.REFUSED_AT_RESTORE: "refused at restore",
    RestoreEffect.SILENTLY_WRONG: "silently wrong",
    RestoreEffect.DROPPED: "silently wrong",
    RestoreEffect.EMPTY: "begins empty",
    RestoreEffect.UNKNOWN: "unknown",
    RestoreEffect.RIGHT: "right",
}
"""Words for the effect of an upgrade on one operator."""

_TOTALS = windowed("customer, SUM(amount)")
_OF_OUR_OWN = "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'of-our-own');\n"


def _condition(code: str, title: str, why: str, reason: Reason, rationale: str, script: str) -> Rule:
    return Rule(
        code=code,
        title=title,
        vvr=unknown("plans apply only to open-source Flink"),
        flink=unknown(why, reason),
        rationale=f"The planners of both versions plan the same job. {rationale}",
        example=Example(script, script),
        not_applicable=("vvr",),
    )


UNDECLARED_SINK = _condition(
    "undeclared-sink",
    "A sink without a declaration",
    "the declaration of the sink decides",
    Reason.UNDECLARED,
    "But the script does not declare its sink. From 2.3 on, Flink refuses an INSERT into a sink with a primary key by "
    "which the query does not update its rows. So the upgrade is compatible unless the sink has such a key.",
    f"INSERT INTO totals\n{_TOTALS}",
)
UNDECLARED_TYPES = _condition(
    "undeclared-types",
    "Columns without declared types",
    "the types of the columns decide",
    Reason.UNDECLARED,
    "But the script does not declare a table that it reads. With some types of its columns, the new version reads the "
    "state of the job; with others, it refuses the state. So the upgrade is compatible if the columns are of the first "
    "types.",
    "SELECT customer, MAX(rate / 7) FROM rates GROUP BY customer;",
)
ABSENT_CLASS = _condition(
    "absent-class",
    "A function without its class",
    "the class of the function decides",
    Reason.OPAQUE,
    "But the class of an aggregate function is absent. Its state is an accumulator of this class. So the upgrade is "
    "compatible if both versions store the accumulator alike.",
    windowed("customer, best(amount)"),
)
UNTRIED_CONNECTOR = _condition(
    "untried-connector",
    "A connector without a measured upgrade",
    "the connector's release for the new version decides",
    Reason.VERSION,
    "The new version reads the state of all operators of Flink. But a connector reads its own state with its own jar, "
    "and no restore or document shows that the release for the new version does so. So the upgrade is compatible if "
    "that release exists and reads the state.",
    f"{_OF_OUR_OWN}INSERT INTO totals\n{_TOTALS}",
)
CONDITIONS: Mapping[ConditionKind, Rule] = {
    ConditionKind.SINK: UNDECLARED_SINK,
    ConditionKind.TYPES: UNDECLARED_TYPES,
    ConditionKind.CLASS: ABSENT_CLASS,
    ConditionKind.CONNECTOR: UNTRIED_CONNECTOR,
}
"""Rules for jobs that are compatible on a condition."""


@dataclass(frozen=True)
class PlannedUpgrade:
    """An unchanged script with the answers of two planners.

    Attributes:
        restore: The diff of the planned jobs.
        prediction: The predicted result of a restore, without a doubt.
    """

    restore: RestoreVerdict
    prediction: Prediction

    @classmethod
    def of(cls, restore: RestoreVerdict) -> PlannedUpgrade | None:
        """The upgrade; None if the script changed, or if a planner has no answer."""
        prediction = restore.prediction
        if prediction is None or prediction.doubt or not restore.change.is_upgrade:
            return None
        return cls(restore, prediction)

    @property
    def _change(self) -> Change:
        return self.restore.change

    def findings(self) -> Iterator[tuple[Rule, Finding]]:
        """Yield the findings of both planners, each with the rule that explains it."""
        refusal = self.prediction.refusal
        if self.prediction.refuses_script and refusal is not None:
            rule, message = statements.statement_refused, f"Flink {self.prediction.flink}: {refusal.message}"
            yield rule, Finding.of(rule, expected("Flink's planner"), message)
        else:
            yield from ((rule, finding) for rule, finding in self.restore.findings() if rule is not EQUAL)
        before, after = self._change.versions
        for each in self._judged():
            rule = script.engine_version_changed
            if each.refused or each.conditional:
                rule = statements.statement_refused if each.refused else UNTRIED_CONNECTOR
            yield rule, Finding.of(rule, each.verdict, each.message, before=before, after=after)

    def _judged(self) -> tuple[Judged, ...]:
        connectors = connector_effects(self._change, self.restore.compared.plans[1])
        differences = self.restore.compared.restore.differences
        if self.prediction.refusal is not None or any(each.effect.consequence for each in differences):
            return refused_by_connectors(self._change, connectors)  # other findings name the effects on state
        doubts = [each for each in differences if not (self.prediction.alike and _is_only_in_one_plan(each))]
        return judged_by_planners(self._change, self.prediction, doubts, connectors)


def restored_operators(restore: RestoreVerdict) -> tuple[RestoredOperator, ...]:
    """The effect of a new version on each stateful operator and connector; empty without planners."""
    change, prediction = restore.change, restore.prediction
    if prediction is None or prediction.doubt or change.old.version == change.new.version:
        return ()
    planned = [
        RestoredOperator(
            each.operator, _EFFECTS[each.effect], each.message,
            prediction.serializers.get(each.old.id, ()) if each.old is not None else (),
        )
        for each in prediction.operators
        if each.effect is not RestoreEffect.RIGHT or not each.is_of_connector
    ]  # fmt: skip
    connectors = connector_effects(change, restore.compared.plans[1])
    return (*planned, *(RestoredOperator(each.name, _EFFECTS[each.effect], each.message) for each in connectors))


def _is_only_in_one_plan(effect: StateEffect) -> bool:
    """True if only fields differ that the plan format of one version lacks.

    Such a field does not affect the state if the operators have equal classes and Flink accepts their states.
    """
    before, after = ({name for _, name in (() if each is None else each.facets)} for each in (effect.old, effect.new))
    return effect.effect is RestoreEffect.UNKNOWN and bool(effect.facets) and {*effect.facets} <= before ^ after
