"""Rules about the whole script: settings, versions, dependencies and several changes together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import format_operator, format_setting, format_value
from airflow_flinkcompat.compat.changes.settings import enabled_fires
from airflow_flinkcompat.compat.engines.flink import settings as flink_settings
from airflow_flinkcompat.compat.engines.flink.upgrade import UPGRADE_FIRST
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, windowed
from airflow_flinkcompat.compat.rules.functions import aggregates_in
from airflow_flinkcompat.compat.verdict import Verdict, documented, inferred, right, unknown
from airflow_flinkcompat.model import Outcome, Reason
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan.operators import AggregateOperator


def _doubts(change: Change) -> Iterable[str]:
    """Parts of an unchanged script that the vendor's console questions."""
    for pair in change.pipelines:
        if any(segment.functions for segment in pair.segments[1]):
            yield "a table function"
        if aggregates_in(pair.new, "python"):
            yield "a Python aggregate"
        for operators in pair.operators:
            side = operators.new
            if isinstance(side, AggregateOperator) and side.window is not None:
                if side.segment.window_filters:
                    yield "a filter on window fields"
                if side.window_computations:
                    yield "a computation on window fields"
                if side.window_aggregates:
                    yield "an aggregate over a window field"
                if side.grouping_sets is not None:
                    yield "grouping sets"
        if enabled_fires(pair.new_pipeline):
            yield "early or late fire"


EQUAL = inferred(Outcome.COMPATIBLE, "both versions are equal, but no restore was run on this version of Flink")


@Rule(
    code="unchanged",
    title="Nothing changed",
    vvr=inferred(Outcome.COMPATIBLE, "both versions are equal after normalization"),
    flink=right("w-unchanged", "w-reformat-comment-alias", "w-interval-spelling", "w-named-args"),
    rationale="Layout, comments, aliases, keyword case, CTEs and the spelling of intervals do not affect state.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer,  sum(amount) AS total")),
    level=Level.UNCHANGED,
)
def unchanged(change: Change) -> Iterable[RuleMatch]:
    if change.unchanged:
        doubts = ", ".join(dict.fromkeys(_doubts(change)))
        note = f"; VVR's console may still question this because of {doubts}" if doubts else ""
        flink = unchanged.flink
        same_here = {} if change.new.version in flink.versions else {"flink": EQUAL}
        yield RuleMatch(f"nothing that affects state changed{note}", verdicts=same_here)


TUNING_ON_VVR = unknown("no vendor page covers this setting")
ON_FLINK = unknown("no restore across this change was measured")
SETTINGS_ON_VVR: Mapping[str, Verdict] = {
    "pipeline.name": inferred(Outcome.COMPATIBLE, "the name of a job does not affect state"),
    "table.exec.state.ttl": inferred(Outcome.COMPATIBLE, "stored values keep their old time to live"),
    # Both settings change only the vendor's check, not the job.
    "table.optimizer.state-compatibility.ignore-filter": inferred(
        Outcome.COMPATIBLE, ("the setting affects only the vendor's check")
    ),
    "table.optimizer.state-compatibility.ignore-sink": inferred(
        Outcome.COMPATIBLE, ("the setting affects only the vendor's check")
    ),
}
TUNED = inferred(Outcome.COMPATIBLE, "the setting affects neither the plan nor the state")
NOTES: Mapping[str, str] = {
    settings.TTL: "; stored values keep their old time to live until they are next updated",
    "parallelism.default": "; without table.exec.source.idle-timeout, an idle source blocks every window",
}


def _setting_on_vvr(key: str, on_flink: Verdict | None) -> Verdict:
    """Verdict on a setting; an undocumented setting is compatible if it affects neither plan nor state."""
    if key in SETTINGS_ON_VVR:
        return SETTINGS_ON_VVR[key]
    tunes = not flink_settings.depends_on_tables(key) and key != "state.backend.type"
    return TUNED if tunes and on_flink is not None and on_flink.outcome is Outcome.COMPATIBLE else TUNING_ON_VVR


@Rule(
    code="setting-changed",
    title="A setting changed",
    vvr=TUNING_ON_VVR,
    flink=ON_FLINK,
    rationale=(
        "Many settings change the planned operators or the layout of their state. Only measured or documented "
        "settings are known to be safe."
    ),
    example=Example(
        windowed("customer, SUM(amount)"),
        "SET 'table.exec.mini-batch.enabled' = 'true';\n" + windowed("customer, SUM(amount)"),
        outcomes={"flink": Outcome.INCOMPATIBLE},
    ),
    parts=("setting",),
    beside_operators=True,
)
def setting_changed(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("setting"):
        key = difference.key.partition("/")[2]
        if key.startswith(settings.PREFIX):
            continue  # a separate rule judges emit settings for each query
        on_flink = flink_settings.verdict(key, difference.before, difference.after, change)
        yield RuleMatch(
            f"setting {key} changed{NOTES.get(key, '')}",
            (difference.key,),
            format_setting(key, difference.before),
            format_setting(key, difference.after),
            verdicts={"vvr": _setting_on_vvr(key, on_flink), "flink": on_flink or ON_FLINK},
            options=(key,),
        )


@Rule(
    code="engine-version-changed",
    title="Engine or engine version differs",
    vvr=documented(Outcome.UNKNOWN, "Overview: versions must match", Reason.VERSION),
    flink=unknown("the verdict needs the planners of both versions", Reason.VERSION),
    rationale=(
        "A different version may plan different operators for the same SQL, or read their state differently. Only "
        "Flink's planners of both versions show this. They check that the new version plans the same operators and "
        "that its serializers can read their state. Without the planners, the verdict is unknown. If the script "
        "changes with the upgrade, the planners compare the deployed script on the old version with the new script on "
        "the new version. A changed setting, hint or table must be compatible on both versions."
    ),
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)"), versions=("2.3", "1.20")),
    parts=("engine",),
    level=Level.VERSION,
    case_dependent=("flink",),
)
def engine_version_changed(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("engine"):
        sides = difference.before, difference.after
        of_flink = ENGINE_FACTS[change.new.engine].flink_lines is None
        if change.old.engine != change.new.engine or not of_flink:
            yield RuleMatch("the engine or its version differs", (difference.key,), *sides)
            continue
        yield RuleMatch(_needs_planners(change), (difference.key,), *sides)


def _needs_planners(change: Change) -> str:
    old, new = change.versions
    message = (
        f"Flink {old} to {new}: only the planners of both versions show whether the new one reads the state: "
        f"flinkcompat planner install {old}, flinkcompat planner install {new}"
    )
    return f"{message}; or {UPGRADE_FIRST}" if len(change.differences) > 1 else message


KIND = "ResourceStatement"


@Rule(
    code="dependency-changed",
    title="A library was added, removed or replaced",
    vvr=documented(Outcome.UNKNOWN, "Overview: verify a changed connector or UDF dependency manually", Reason.OPAQUE),
    flink=unknown("the code of a library is not inspected", Reason.OPAQUE),
    rationale=(
        "A custom connector or function may have state. A different version of the library may store that state "
        "differently."
    ),
    example=Example(
        "ADD JAR '/lib/tidy-1.jar';\n" + windowed("customer, SUM(amount)"),
        "ADD JAR '/lib/tidy-2.jar';\n" + windowed("customer, SUM(amount)"),
    ),
    parts=("statement",),
)
def dependency_changed(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("statement"):
        if difference.key.startswith(tuple(f"statement/{sign}{KIND} " for sign in "+-")):
            yield RuleMatch(
                "a different library is loaded; the check does not inspect its connectors and functions",
                (difference.key,),
                "" if difference.before is None else format_value(difference.before),
                "" if difference.after is None else format_value(difference.after),
            )


def _target(difference: Difference, change: Change) -> str | None:
    """The sink whose table, connector or options a difference changes; None for other differences."""
    if difference.part == "sink":
        return str(difference.after)
    place, _, rest = difference.key.partition("/")
    table, _, part = rest.rpartition("/")
    target = place == "table" and part in ("connector", "options") and change.pipelines_into(table)
    return table if target else None


def items(change: Change) -> list[str]:
    """The items of a change as VVR's check counts them: changed metrics, sinks, and filters before state."""
    # Two operators of one query may have the same name but are two changes.
    found: dict[tuple[str, str], str] = {}
    for pair in change.operators:
        if pair.fates is not None and pair.fates.changed:
            found["metrics", pair.path] = f"the metrics of {format_operator(pair)}"
        if pair.parts & {"filters", "window filters"}:
            found["condition", pair.path] = f"a condition below {format_operator(pair)}"
    for difference in change.differences:
        target = _target(difference, change)
        if target is not None:
            found["sink", target] = f"sink {target}"
    return list(found.values())


TOTALS_SINK = "CREATE TABLE {0} (customer STRING, total BIGINT) WITH ('connector' = 'print');\nINSERT INTO {0}\n"


@Rule(
    code="several-changes",
    title="Several changes together",
    vvr=documented(Outcome.UNKNOWN, "Overview: more than one item changed at once", Reason.SEVERAL_CHANGES),
    # On open-source Flink, several changes together have no additional effect.
    flink=inferred(Outcome.COMPATIBLE, "each change is judged separately"),
    rationale=(
        "VVR's check is inconclusive if metrics, sinks and filters change together, unless one of the changes is "
        "incompatible."
    ),
    example=Example(
        TOTALS_SINK.format("totals") + windowed("customer, SUM(amount), MAX(item)"),
        TOTALS_SINK.format("sums") + windowed("customer, SUM(amount), MIN(item)"),
    ),
    not_applicable=("flink",),
)
def several_changes(change: Change) -> Iterable[RuleMatch]:
    found = items(change)
    if len(found) > 1:
        yield RuleMatch(f"{len(found)} items changed together: {', '.join(found)}")


RAW_SET = "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\nEXECUTE STATEMENT SET BEGIN\n"
RAW_PART = "INSERT INTO raw SELECT {0} FROM orders;\n"


@Rule(
    code="pairing-ambiguous",
    title="Ambiguous pairing of queries",
    vvr=unknown(reason=Reason.AMBIGUOUS),
    flink=unknown(reason=Reason.AMBIGUOUS),
    rationale="The check does not guess which queries belong together.",
    example=Example(
        RAW_SET + RAW_PART.format("customer") + RAW_PART.format("item") + "END;",
        RAW_SET + RAW_PART.format("UPPER(customer)") + RAW_PART.format("UPPER(item)") + "END;",
    ),
    parts=("pairing",),
)
def pairing_ambiguous(change: Change) -> Iterable[RuleMatch]:
    if change.ambiguous:
        names = ", ".join(name or "a bare SELECT" for name in change.ambiguous)
        yield RuleMatch(
            f"several queries write to {names}, and the check cannot tell which query replaced which",
            change.claim("pairing"),
        )


DATA_STREAM = """\
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
t_env = StreamTableEnvironment.create(env)
words = env.from_collection(["a", "b"]).map(lambda word: {})
t_env.create_temporary_view("words", words)
t_env.execute_sql("CREATE TABLE seen (word STRING) WITH ('connector' = 'print')")
t_env.execute_sql("INSERT INTO seen SELECT * FROM words")
"""


@Rule(
    code="opaque-part-changed",
    title="An opaque part may have changed",
    vvr=unknown("the state of DataStreams is not inspected", Reason.NOT_READ),
    flink=unknown("the state of DataStreams is not inspected", Reason.NOT_READ),
    rationale=(
        "A DataStream of a PyFlink program, or rows from pandas, form one opaque source or sink with unknown state. "
        "This part is unchanged if only the layout and comments of the program changed. After any other change, its "
        "state is unknown because DataStream operator ids depend on the whole job."
    ),
    example=Example(DATA_STREAM.format("word.upper()"), DATA_STREAM.format("word.lower()"), language="python"),
    parts=("opaque",),
    level=Level.REST,
)
def opaque_part_changed(change: Change) -> Iterable[RuleMatch]:
    old, new = (program.opaque for program in change.programs)
    if old == new:
        return
    said = (
        "the program changed, and the check does not inspect one of its parts: a DataStream, or rows from outside SQL"
    )
    before, after = (f"a program of digest {digest}" if digest else "no such part" for digest in (old, new))
    yield RuleMatch(said, change.claim("opaque"), before, after)
