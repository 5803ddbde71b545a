from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.format import format_setting
from airflow_flinkcompat.compat.engines.flink import emission
from airflow_flinkcompat.compat.engines.flink import settings as flink_settings
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Basis, Outcome, Reason

ON_VVR = Verdict(Outcome.UNKNOWN, Basis.INFERRED, "no page of the vendor's speaks of this setting", Reason.NOT_COVERED)
ON_FLINK = Verdict(Outcome.UNKNOWN, Basis.INFERRED, "nobody measured a restore across it here", Reason.NOT_COVERED)
VVR: Mapping[str, Verdict] = {
    "pipeline.name": inferred(Outcome.COMPATIBLE, "a name takes no part in state"),
    "table.exec.state.ttl": inferred(Outcome.COMPATIBLE, "values stored before keep their old time to live"),
    # Both switch what is checked, not what runs.
    "table.optimizer.state-compatibility.ignore-filter": inferred(Outcome.COMPATIBLE, "a switch of the check itself"),
    "table.optimizer.state-compatibility.ignore-sink": inferred(Outcome.COMPATIBLE, "a switch of the check itself"),
}
TUNED = inferred(Outcome.COMPATIBLE, "it affects neither the plan nor the state")
NOTES: Mapping[str, str] = {
    emission.TTL: "; stored values keep their old time to live until they are next updated",
    "parallelism.default": "; without table.exec.source.idle-timeout an idle source holds back every window",
}


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("setting"):
        key = difference.key.partition("/")[2]
        if key.startswith(emission.PREFIX):
            continue  # judged by what each query makes of it
        on_flink = flink_settings.verdict(key, difference.before, difference.after, change)
        yield RuleMatch(
            f"setting {key} changed{NOTES.get(key, '')}",
            (difference.key,),
            format_setting(key, difference.before),
            format_setting(key, difference.after),
            verdicts={"vvr": _on_vvr(key, on_flink), "flink": on_flink or ON_FLINK},
            options=(key,),
        )


def _on_vvr(key: str, on_flink: Verdict | None) -> Verdict:
    """What no page speaks of, and what takes part in no plan of Flink's either, does nothing to state there."""
    if key in VVR:
        return VVR[key]
    tunes = not flink_settings.asks_for_tables(key) and key != "state.backend.type"
    return TUNED if tunes and on_flink is not None and on_flink.outcome is Outcome.COMPATIBLE else ON_VVR


RULE = Rule(
    code="setting-changed",
    title="A setting changed",
    scope=RuleScope.SCRIPT,
    verdicts={"vvr": ON_VVR, "flink": ON_FLINK},
    rationale="Many settings change the operators a query is planned into, or how their state is laid out; only those "
    "that were measured or documented are known not to.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "SET 'table.exec.mini-batch.enabled' = 'true';\n" + windowed("customer, SUM(amount)"),
        outcomes={"flink": Outcome.INCOMPATIBLE},
    ),
    find=find,
    beside_operators=True,
)
