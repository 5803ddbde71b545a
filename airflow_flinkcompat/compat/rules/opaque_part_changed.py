from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.model import Outcome, Reason

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


def find(change: Change) -> Iterable[RuleMatch]:
    old, new = (program.opaque for program in change.programs)
    if old == new:
        return
    said = "the program changed, and a part of it is not looked into: a DataStream, or rows that come from elsewhere"
    before, after = (f"a program of digest {digest}" if digest else "no such part" for digest in (old, new))
    yield RuleMatch(said, change.claim("opaque"), before, after)


RULE = Rule(
    code="opaque-part-changed",
    title="A part that is not looked into may have changed",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "what DataStreams keep is not read", Reason.NOT_READ),
        "flink": inferred(Outcome.UNKNOWN, "what DataStreams keep is not read", Reason.NOT_READ),
    },
    rationale="A DataStream of a PyFlink program, or rows from pandas, are one opaque source or sink: what they keep "
    "is not known. They are the same where nothing of the program changed but its layout and comments; after any other "
    "change nobody can tell, for identities of DataStream operators depend on all of the job.",
    example=Example(DATA_STREAM.format("word.upper()"), DATA_STREAM.format("word.lower()"), language="python"),
    find=find,
    level=Level.REST,
)
