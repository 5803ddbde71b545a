from collections.abc import Iterable, Iterator

from airflow_flinkcompat import connectors
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import LITERAL_ROWS, Difference, table_parts
from airflow_flinkcompat.compat.changes.format import format_value, shortened
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.table_use import uses_of
from airflow_flinkcompat.compat.engines.flink import stateless
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    combined,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rule_builders.options.matches import options_judged
from airflow_flinkcompat.compat.rule_builders.options.option_verdict import OptionVerdict
from airflow_flinkcompat.connectors import TableUse
from airflow_flinkcompat.model import Basis, Outcome, Reason
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import sources

RENAMED = measured(Outcome.COMPATIBLE, "x-source-rename", note="the same declaration under another name")
UNLIKE = Verdict(Outcome.UNKNOWN, Basis.INFERRED, "the tables are not declared alike: not measured", Reason.NOT_COVERED)

BY_NAME = Verdict(
    Outcome.UNKNOWN,
    Basis.INFERRED,
    "the stored positions are of the old table: what a restored source makes of them in another one was not measured",
    Reason.NOT_COVERED,
)


SHARED = Verdict(
    Outcome.UNKNOWN,
    Basis.INFERRED,
    "one job scans a table once for all who read it: a scan that comes or goes gives others new ids (measured: "
    "read-twice-join-join-apart, read-twice-set-set-apart)",
    Reason.NOT_COVERED,
)


READ_ONCE = inferred(Outcome.INCOMPATIBLE, "CommonExecValues: a source of these rows, which ends")


def _literal(read: object) -> bool:
    """Whether what is read are rows that stand in the script: one row is part of the query itself."""
    return isinstance(read, tuple) or read == LITERAL_ROWS


def other_reads(change: Change) -> Iterator[tuple[PipelinePair, Difference]]:
    """Where another table is read, in operators and outputs alike."""
    for pipeline in change.pipelines:
        below = (difference for pair in pipeline.operators for difference in pair.differences)
        for difference in (*pipeline.differences, *below):
            if difference.part.startswith("source") and not difference.part.startswith("source hints"):
                yield pipeline, difference


def _unlike(pair: PipelinePair, old: Table, new: Table) -> Verdict:
    """The stored positions hold no name of a table, and no column: they fit where the same is read in the same way."""
    if old.options != new.options:
        return UNLIKE
    return stateless.settled(pair, UNLIKE, *stateless.SOURCE_NAME)


def _named_by_place(table: Table) -> bool:
    """Whether a table's name may say which data it stands for: a catalog's own connector looks them up by it."""
    connector = table.option("connector")
    if connector is None:
        return table.option("connector.type") is None
    if connector not in connectors.catalogue():
        return True
    table_name_option = connectors.source(connector).table_name_option
    return bool(table_name_option) and table.option(table_name_option) is None


def _scanned_apart(change: Change, pair: PipelinePair, names: tuple[str, str]) -> bool:
    """Whether a job may scan more or fewer tables than before: not where all who read one table now read the other."""
    job = (pair, *change.companions(pair))
    readers = [[source.table for each in job for source in sources((each.old, each.new)[place])] for place in range(2)]
    moved = [found.count(name) for found, name in zip(readers, names, strict=True)]
    return moved[0] != moved[1] or names[1] in readers[0] or names[0] in readers[1]


def _judged(change: Change, pair: PipelinePair, old: Table | None, new: Table | None) -> OptionVerdict | None:
    """What another declaration comes to where only options differ; None where nothing differs."""
    if old is None or new is None:
        return OptionVerdict("", UNLIKE)
    before, after = table_parts(old), table_parts(new)
    uses = [used for used in uses_of(change, old.name) if used.use is not TableUse.SINK]
    if any(map(_named_by_place, (old, new))) and any(used.use is TableUse.SOURCE for used in uses):
        return OptionVerdict("the data may be found by the name of the table", BY_NAME)
    if any(before[part] != after[part] for part in before if part != "options"):
        return OptionVerdict("", _unlike(pair, old, new))
    found = options_judged(old.name, before["connector"], before["options"], after["options"], uses)
    return found and OptionVerdict(found.says, combined((found.verdict, RENAMED)))


def find(change: Change) -> Iterable[RuleMatch]:
    tables = [{table.name: table for table in program.tables} for program in change.programs]
    for pair, difference in other_reads(change):
        if all(map(_literal, (difference.before, difference.after))):
            before, after = (shortened(format_value(rows)) for rows in (difference.before, difference.after))
            yield RuleMatch(
                "other literal rows are read: rows of a script are read once, and a job that has read them gets no "
                "others by a restore",
                (difference.key,),
                before,
                after,
                difference.before_span,
                difference.after_span,
                verdicts={"flink": READ_ONCE, "vvr": READ_ONCE},
            )
            continue
        old, new = (tables[i].get(name) for i, name in enumerate((difference.before, difference.after)))
        names = (str(difference.before), str(difference.after))
        tables_read = isinstance(difference.before, str) and isinstance(difference.after, str)
        apart = tables_read and _scanned_apart(change, pair, names)
        judged = OptionVerdict("others of the job read it too", SHARED) if apart else _judged(change, pair, old, new)
        declared = (d.key for d in change.parts("declared") if d.key.split("/")[1] in names)
        yield RuleMatch(
            "another table is read",
            (difference.key, *declared),
            *names,
            difference.before_span,
            difference.after_span,
            verdicts={"flink": judged.verdict} if judged else {},
            notes={"flink": f": {judged.says}" if judged and judged.says else ""},
        )


RULE = Rule(
    code="source-renamed",
    title="Another source table",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Source table page (its summary): table renamed"),
        "flink": RENAMED,
    },
    rationale="VVR finds a source's state by the table's name. Open-source Flink does not look at names. A table whose "
    "options do not say what is read is found by its name, though, and positions of one table mean nothing in another.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TABLE purchases (customer STRING, amount BIGINT, order_time TIMESTAMP(3),\n"
        "  WATERMARK FOR order_time AS order_time) WITH ('connector' = 'kafka', 'topic' = 'orders');\n"
        + windowed("customer, SUM(amount)").replace("TABLE orders", "TABLE purchases"),
        outcomes={"flink": Outcome.UNKNOWN},
    ),
    find=find,
    beside_operators=True,
    case_dependent=("flink",),
)
