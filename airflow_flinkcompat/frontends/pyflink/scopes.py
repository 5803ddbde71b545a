"""Names of a program, and the functions, classes, modules and files to which they are bound."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.table_api.values import (
    Container,
    Described,
    LanguageObject,
    Ref,
    UnknownValue,
    Value,
)

RUNS_CODE = (
    "exec", "eval", "compile", "__import__", "globals", "locals", "vars", "getattr", "setattr", "delattr", "super",
)  # fmt: skip
"""Builtins that may do anything with an object."""
KNOWS_NO_TABLES = frozenset(
    """
    yaml toml tomli dotenv requests numpy pandas boto3 pydantic pydantic_settings jinja2 click attr attrs loguru
    structlog redis psycopg2 google pytz dateutil scipy sklearn torch transformers sentence_transformers tensorflow
    joblib openai sqlalchemy pymysql mysql pymongo elasticsearch jmespath bs4 httpx aiohttp avro fastavro
    typing_extensions confluent_kafka kafka faker ujson orjson simplejson colorlog
    """.split()  # noqa: SIM905 -- a list of names
)
"""Libraries that can use a table only if the program passes the table as an argument."""
_EXPORTED = {
    "pyflink.table": """
        AggregateFunction AsyncScalarFunction ChangelogMode CompiledPlan DataTypes DataView
        EnvironmentSettings ExplainDetail Expression FormatDescriptor FunctionContext GroupWindowedTable
        GroupedTable ListView MapView Module ModuleEntry OverWindowedTable PlanReference ResultKind Row
        RowKind ScalarFunction Schema SqlDialect StatementSet StreamTableEnvironment Table
        TableAggregateFunction TableConfig TableDescriptor TableEnvironment TableFunction TablePipeline
        TableResult TableSchema UserDefinedType WindowGroupedTable
    """,
    "pyflink.table.expressions": """
        CURRENT_RANGE CURRENT_ROW UNBOUNDED_RANGE UNBOUNDED_ROW and_ array atan2 call call_sql coalesce col
        concat concat_ws convert_tz current_database current_date current_time current_timestamp
        current_watermark date_format descriptor e from_unixtime if_then_else json json_array json_array_agg
        json_object json_object_agg json_string lit local_time local_timestamp log map_ negative not_
        null_of or_ pi rand rand_integer range_ row row_interval source_watermark temporal_overlaps
        timestamp_diff to_date to_timestamp to_timestamp_ltz unix_timestamp uuid with_columns
        without_columns
    """,
    "pyflink.table.window": "GroupWindow Over OverWindow Session Slide Tumble",
    "pyflink.table.udf": """
        AggregateFunction AsyncScalarFunction FunctionContext ScalarFunction TableAggregateFunction
        TableFunction udaf udf udtaf udtf
    """,
    "pyflink.table.types": "DataTypes Row RowKind UserDefinedType",
    "pyflink.datastream": """
        AggregateFunction AsyncDataStream AsyncFunction AsyncRetryPredicate AsyncRetryStrategy
        BroadcastConnectedStream BroadcastProcessFunction BroadcastStream CheckpointConfig CheckpointStorage
        CheckpointingMode CoFlatMapFunction CoMapFunction CoProcessFunction ConnectedStreams CountWindow
        CustomCheckpointStorage CustomStateBackend DataStream DataStreamSink EmbeddedRocksDBStateBackend
        ExternalizedCheckpointRetention FileSystemCheckpointStorage FilterFunction FlatMapFunction
        GlobalWindow HashMapStateBackend JobManagerCheckpointStorage KeySelector
        KeyedBroadcastProcessFunction KeyedCoProcessFunction KeyedProcessFunction KeyedStream MapFunction
        MemorySize MergingWindowAssigner OutputTag Partitioner PredefinedOptions ProcessFunction
        ProcessWindowFunction ReduceFunction RuntimeContext RuntimeExecutionMode SinkFunction
        SlotSharingGroup SourceFunction StateBackend StreamExecutionEnvironment TimeDomain TimeWindow
        TimerService Trigger TriggerResult Window WindowAssigner WindowFunction WindowedStream
    """,
    "pyflink.common": """
        AssignerWithPeriodicWatermarksWrapper ByteArraySchema CompletableFuture ConfigOption ConfigOptions
        Configuration DeserializationSchema Duration Encoder ExecutionConfig InputDependencyConstraint
        Instant JobClient JobExecutionResult JobID JobStatus RestartStrategies RestartStrategyConfiguration
        Row RowKind SerializationSchema SimpleStringSchema Time TypeInformation TypeSerializer Types
        WatermarkStrategy
    """,
}
STARS: Mapping[str, tuple[str, ...]] = {module: tuple(names.split()) for module, names in _EXPORTED.items()}
"""Names that ``from pyflink.… import *`` binds, by module (PyFlink 2.3.0)."""


class ProgramEnded(Exception):
    """Signal that the program ends."""


@dataclass(eq=False)
class NameScope:
    """The bound names of a module or of one function call; ``outer`` is the enclosing scope."""

    names: dict[str, Value] = field(default_factory=dict)
    outer: NameScope | None = None
    file: str = ""
    """The file of a module; empty for the program itself."""
    package: str = ""
    """The package of a module, from which relative imports start."""

    @property
    def module(self) -> NameScope:
        """The scope of the enclosing module."""
        return self if self.outer is None else self.outer.module

    def find(self, name: str) -> Value | None:
        """The value of a name; None if nothing binds it."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


@dataclass(eq=False)
class Function(LanguageObject):
    """A function of the program, with the default values of its parameters at its definition."""

    node: ast.FunctionDef | ast.Lambda
    frame: NameScope
    defaults: dict[str, Value]

    @property
    def name(self) -> str:
        """The name of the function in messages."""
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "a lambda"


@dataclass(eq=False)
class Class(LanguageObject):
    """A class of the program; ``function`` is its kind of Flink function, or ""."""

    node: ast.ClassDef
    frame: NameScope
    function: str = ""
    plain: bool = False
    """True if the class contains only data: no function, and no unknown base class."""


@dataclass(eq=False)
class Module(LanguageObject):
    """A module next to the program."""

    name: str
    frame: NameScope


@dataclass(eq=False)
class File(LanguageObject):
    """An opened text file, with its text or, if the text is unknown, its name as an input."""

    text: str | None
    name: str = ""
    reason: str = ""
    read: bool = False
    """True if the file was read to its end."""


@dataclass(eq=False)
class Arguments(LanguageObject):
    """A command-line parser, with the type of each argument; None for an unsupported argument."""

    types: dict[str, str | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """The input name of each argument."""
    plain: bool = True
    """True if only the command line and the declared defaults determine the values."""
    parsed: bool = False


def knows_no_tables(ref: Ref) -> bool:
    """True if an imported name cannot reach tables by itself."""
    return ref.module in sys.stdlib_module_names or ref.module in KNOWS_NO_TABLES


def touches(value: Value) -> bool:
    """True if a value is a table, contains a table, or may act on a table."""
    match value:
        case UnknownValue(tables=tables):
            return tables
        case Ref(module="builtins", name=name):
            return name in RUNS_CODE
        case Ref():
            return not knows_no_tables(value)
        case Container(dict(inner)):
            return any(map(touches, inner.values()))
        case Container(list(inner)):
            return any(map(touches, inner))
        case Function() | Class() | Module():
            return True
    return isinstance(value, Described)


def lose(value: Value, reason: str) -> None:
    """Mark the content of a container, and of every container inside it, as unknown."""
    if isinstance(value, Container) and not value.broken:
        value.broken = reason
        for inner in value.value.values() if isinstance(value.value, dict) else value.value:
            lose(inner, reason)
