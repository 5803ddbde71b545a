from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink import lookups
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred, measured
from airflow_flinkcompat.model import Consequence, Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    if not all(map(lookups.is_lookup, (pair.old, pair.new))):
        return
    old, new = lookups.modes(pair)
    if (old, new) == (LookupMode.ASYNCHRONOUS, LookupMode.SYNCHRONOUS):
        yield RuleMatch("lookup join: it is no longer asynchronous", (), f"{old.value} lookup", f"{new.value} lookup")


SCRIPT = (
    "CREATE TABLE names (customer STRING, name STRING)\n"
    "WITH ('connector' = 'hbase-2.2', 'table-name' = 'names', 'lookup.async' = '{0}');\n"
    "CREATE TABLE named (customer STRING, name STRING) WITH ('connector' = 'print');\n"
    "INSERT INTO named\nSELECT orders.customer, names.name\n"
    "FROM orders JOIN names FOR SYSTEM_TIME AS OF orders.arrived ON orders.customer = names.customer;"
)
RULE = Rule(
    code="lookup-mode-changed",
    title="An asynchronous lookup became synchronous",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no page speaks of it"),
        "flink": measured(
            Outcome.INCOMPATIBLE,
            "al-stateless-pending-hint-sync",
            "al-group-pending-hint-sync",
            consequence=Consequence.SILENTLY_WRONG,
        ),
    },
    rationale="Rows that waited for an answer when the savepoint was taken are in the state of the asynchronous "
    "operator. A synchronous lookup takes no notice of them: they are lost without an error. Where none waited, "
    "nothing is lost.",
    example=Example(SCRIPT.format("true"), SCRIPT.format("false")),
    find=find,
    not_applicable=("vvr",),
)
