"""What an import of everything brings from pyflink: the names each module exports (PyFlink 2.3.0)."""

from __future__ import annotations

from collections.abc import Mapping

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
    "pyflink.table.window": """
        GroupWindow Over OverWindow Session Slide Tumble
    """,
    "pyflink.table.udf": """
        AggregateFunction AsyncScalarFunction FunctionContext ScalarFunction TableAggregateFunction
        TableFunction udaf udf udtaf udtf
    """,
    "pyflink.table.types": """
        DataTypes Row RowKind UserDefinedType
    """,
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
"""By module."""
