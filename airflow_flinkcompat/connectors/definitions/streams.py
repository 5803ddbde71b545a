"""Facts about Kinesis, Pulsar and sockets, by the source code of the connectors; no restore was run."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    EARLIEST,
    ISO,
    LATEST,
    TIMESTAMP,
    ConnectorFacts,
    Known,
    OptionEffect,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
    Startup,
    facts,
)

_POSITION = "source.init.position"
_KINESIS = "Kinesis connector page (5.0)"
_PULSAR = "Pulsar connector page, PulsarTableOptions (4.1)"
_AWS = "Flink's list of connectors: AWS 6.0.0 is for Flink 2.0"
_SOCKET = "Flink's page about user-defined sources and sinks, which contains this connector as an example"
_STORED = "the savepoint stores positions in the old stream, and their use by a restored source was not measured"
_BEGINNING = (
    "this option is the starting position without state; its effect on partitions that a "
    "restored source has not started to read was not measured"
)
_END = (
    "the savepoint stores each partition with its old end; the effect of a different end on a "
    "restored source was not measured"
)
_ASYNC_WRITER = "AsyncSinkBase: the writer stores its buffered requests"
_PULSAR_SOURCE = (
    *facts(OptionEffect.READ, _PULSAR, "topics", note=_STORED),
    *facts(OptionEffect.ADDRESS, _PULSAR, "service-url"),
    *facts(OptionEffect.STARTUP, _PULSAR, "source.start.*", note=_BEGINNING),
    *facts(OptionEffect.BOUNDED_END, _PULSAR, "source.stop.*", note=_END),
    *facts(OptionEffect.DECODING, _PULSAR, "key.fields", "key.format"),
)
_PULSAR_SINK = SinkFacts(
    state=SinkState.TRANSACTIONS,
    operators=2,
    options=(
        *facts(OptionEffect.TARGET, _PULSAR, "topics", "service-url"),
        *facts(OptionEffect.DELIVERY_GUARANTEE, _PULSAR, "pulsar.sink.deliveryGuarantee"),
    ),
    document="PulsarSink (4.1): a TwoPhaseCommittingSink, whose committer stores transactions",
)


def _pulsar(name: str, appends: Known) -> ConnectorFacts:
    return ConnectorFacts(
        (name,),
        SourceFacts(
            positions=SourceState.PARTITIONS,
            projection=Known.NO,
            filters=Known.NO,
            watermark=Known.NO,
            metadata=Known.YES,
            appends=appends,
            options=_PULSAR_SOURCE,
            document="PulsarTableSource (4.1): only SupportsReadingMetadata; the source stores "
            "partitions and the last message",
        ),
        _PULSAR_SINK,
        formats=("value.format", "format"),
    )


CONNECTORS = (
    ConnectorFacts(
        ("kinesis",),
        SourceFacts(
            positions=SourceState.SHARDS,
            projection=Known.NO,
            filters=Known.NO,
            watermark=Known.NO,
            metadata=Known.YES,
            appends=Known.YES,
            options=(
                *facts(OptionEffect.READ, _KINESIS, "stream.arn", "stream", note=_STORED),
                *facts(OptionEffect.CREDENTIALS, _KINESIS, "aws.credentials.*"),
                *facts(OptionEffect.STARTUP, _KINESIS, "source.init.*", "scan.stream.initpos*", note=_BEGINNING),
                *facts(OptionEffect.TUNES, _KINESIS, "source.shard.discovery.interval", "source.shard.get-records.*"),
                *facts(OptionEffect.TUNES, _KINESIS, "source.reader.empty-records-fetch-interval"),
            ),
            startup=Startup(
                choices={
                    EARLIEST: {_POSITION: "TRIM_HORIZON"},
                    LATEST: {_POSITION: "LATEST"},
                    TIMESTAMP: {
                        _POSITION: "AT_TIMESTAMP",
                        "source.init.timestamp": ISO,
                        "source.init.timestamp.format": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
                    },
                },
                option=_POSITION,
                default="LATEST",
                more=("source.init.timestamp",),
            ),
            document="KinesisDynamicSource (5.0): only SupportsReadingMetadata; the source "
            "stores sequence numbers of shards",
        ),
        SinkFacts(
            state=SinkState.WRITER,
            operators=1,
            upserts=Known.NO,
            updates=Known.NO,
            options=(
                *facts(OptionEffect.TARGET, _KINESIS, "stream.arn", "stream"),
                *facts(OptionEffect.CREDENTIALS, _KINESIS, "aws.credentials.*"),
            ),
            document=f"KinesisStreamsSink (5.0), an {_ASYNC_WRITER}",
        ),
        formats=("format",),
        releases=_AWS,
    ),
    ConnectorFacts(
        ("firehose", "sqs"),
        sink=SinkFacts(
            state=SinkState.WRITER,
            operators=1,
            upserts=Known.NO,
            updates=Known.NO,
            options=facts(OptionEffect.CREDENTIALS, _KINESIS, "aws.credentials.*"),
            document=f"KinesisFirehoseSink, SqsSink (5.0), an {_ASYNC_WRITER}",
        ),
        formats=("format",),
        releases=_AWS,
    ),
    ConnectorFacts(
        ("dynamodb",),
        sink=SinkFacts(
            state=SinkState.WRITER,
            operators=1,
            upserts=Known.YES,
            options=facts(OptionEffect.CREDENTIALS, _KINESIS, "aws.credentials.*"),
            document=f"DynamoDbSink (5.0), an {_ASYNC_WRITER}",
        ),
        releases=_AWS,
    ),
    _pulsar("pulsar", Known.YES),
    _pulsar("upsert-pulsar", Known.NO),
    ConnectorFacts(
        ("socket",),
        SourceFacts(
            positions=SourceState.NOTHING,
            projection=Known.NO,
            filters=Known.NO,
            watermark=Known.NO,
            metadata=Known.NO,
            options=(
                *facts(OptionEffect.READ, _SOCKET, "hostname", "port"),
                *facts(OptionEffect.DECODING, _SOCKET, "byte-delimiter"),
            ),
            document=f"{_SOCKET}: a SourceFunction that stores nothing",
        ),
        formats=("format",),
    ),
)
