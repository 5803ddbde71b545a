"""Facts about ``kafka`` and ``upsert-kafka``, by restores on Flink 2.3 with connector 5.0.0-2.2."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.connectors.facts import (
    BY_OFFSET,
    EARLIEST,
    ConnectorFacts,
    KeyDemand,
    Known,
    ListedPlaces,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
    Startup,
    facts,
)

_ANY_PROPERTY = ("ks-stateless-client-property", "ks-tumble-client-property", "kafka-source-group-fetch")
_SECURITY = facts(
    OptionEffect.CREDENTIALS, "Kafka's page about client configuration", "properties.sasl.*", "properties.ssl.*",
    "properties.security.*",
)  # fmt: skip
_ISOLATION = OptionFact(
    "properties.isolation.level",
    OptionEffect.DELIVERY_GUARANTEE,
    document="Kafka's page about client configuration",
    note="read_uncommitted also reads records of open and aborted transactions; how a source that resumes from stored "
    "offsets treats such records was not measured",
    default="read_uncommitted",
)
_STARTUP = (
    "ks-stateless-startup-latest",
    "ks-stateless-startup-timestamp",
    "ks-tumble-startup-group-offsets",
    "ks-group-startup-specific",
)
_BEGINNING = "only a start without state uses this option; this job resumes from the stored offsets"
_WATERMARK = ("ks-tumble-wm-idle", "ks-group-wm-align")
_TOPICS = ListedPlaces(
    separator=";",
    reordered=("ks-stateless-topic-list-same", "ks-group-topic-list-same"),
    added=("ks-stateless-topic-added",),
    from_beginning=("scan.startup.mode", "earliest-offset"),
    pattern="topic-pattern",
    matched=("ks-tumble-topic-pattern",),
)
_READS = OptionFact(
    "topic",
    OptionEffect.READ,
    ("ks-stateless-topic-changed", "ks-tumble-topic-changed", "ks-group-topic-changed"),
    listed=_TOPICS,
)
_BOUND = OptionFact(
    "scan.bounded.*",
    OptionEffect.BOUNDED_END,
    ("ks-tumble-bounded-latest",),
    note="a restored source ignores this option: it reads partitions without an end, so the "
    "last windows never emit a result",
)
_SCAN_PARALLELISM = OptionFact(
    "scan.parallelism",
    OptionEffect.STATE,
    ("ks-stateless-scan-parallelism-2", "ks-group-scan-parallelism-2"),
    note="a source with a separate parallelism is not chained, and every operator after the source gets a different id",
)
_DISCOVERY = OptionFact(
    "scan.topic-partition-discovery.interval",
    OptionEffect.TUNES,
    ("ks-stateless-discovery", "ks-tumble-discovery-off", "ks-group-discovery"),
)
_BROKERS = OptionFact("properties.bootstrap.servers", OptionEffect.ADDRESS, ("ks-group-bootstrap",))
_PATTERN = replace(_READS, key="topic-pattern", ids=(), document="Kafka SQL connector page")
_ALL_FROM_BEGINNING = replace(_TOPICS, from_beginning=("", ""))
_KEY = ("ks-tumble-key-fields", "ks-group-key-fields")

_SOURCE = SourceFacts(
    positions=SourceState.PARTITIONS,
    projection=Known.NO,
    filters=Known.NO,
    watermark=Known.YES,
    metadata=Known.YES,
    appends=Known.YES,
    options=(
        _READS,
        _PATTERN,
        _BROKERS,
        OptionFact(
            "properties.group.id",
            OptionEffect.TUNES,
            (
                "ks-stateless-group-id",
                "ks-stateless-group-id-removed",
                "ks-tumble-group-id-removed",
                "ks-group-group-id",
            ),
            note="only a start without state uses the committed offsets of the group; this job "
            "resumes from the stored offsets",
        ),
        *_SECURITY,
        _ISOLATION,
        OptionFact("properties.*", OptionEffect.TUNES, _ANY_PROPERTY),
        OptionFact("scan.startup.*", OptionEffect.STARTUP, _STARTUP, note=_BEGINNING),
        _BOUND,
        _DISCOVERY,
        _SCAN_PARALLELISM,
        OptionFact("scan.watermark.*", OptionEffect.TUNES, _WATERMARK),
        OptionFact("key.fields", OptionEffect.DECODING, _KEY),
        OptionFact("key.fields-prefix", OptionEffect.DECODING, document="Kafka SQL connector page"),
        OptionFact("value.fields-include", OptionEffect.DECODING, _KEY),
        OptionFact("key.format", OptionEffect.DECODING, _KEY),
    ),
    startup=Startup(
        choices=BY_OFFSET,
        option="scan.startup.mode",
        default="group-offsets",
        more=(
            "scan.startup.timestamp-millis",
            "scan.startup.specific-offsets",
            "properties.group.id",
            "properties.auto.offset.reset",
        ),
        positions=True,
    ),
    document="KafkaDynamicSource (5.0): SupportsReadingMetadata, SupportsWatermarkPushDown",
)
_SINK_PARALLELISM = OptionFact(
    "sink.parallelism",
    OptionEffect.STATE,
    ("sk-stateless-direct-kafka-parallelism-2", "sk-group-direct-kafka-parallelism-2"),
    note="the writer has state, and a writer with a separate parallelism is not chained",
)
_EXACTLY_ONCE = (
    "sk-stateless-kafka-eo-alo",
    "sk-stateless-kafka-alo-eo",
    "sk-tumble-kafka-alo-eo",
    "sk-tumble-kafka-eo-alo",
)
_GUARANTEE = OptionFact(
    "sink.delivery-guarantee", OptionEffect.DELIVERY_GUARANTEE, (*_EXACTLY_ONCE, "sk-stateless-kafka-alo-none")
)
_SINK = SinkFacts(
    state=SinkState.TRANSACTIONS,
    operators=2,
    state_survives_columns=True,
    upserts=Known.NO,
    updates=Known.NO,
    options=(
        OptionFact("topic", OptionEffect.TARGET, ("sk-stateless-kafka-topic", "sk-stateless-kafka-eo-topic")),
        OptionFact("properties.bootstrap.servers", OptionEffect.TARGET, ("sk-stateless-kafka-bootstrap",)),
        *_SECURITY,
        OptionFact("properties.*", OptionEffect.TUNES, ("sk-stateless-kafka-properties",)),
        _GUARANTEE,
        replace(
            _GUARANTEE,
            key="sink.semantic",
            document="KafkaDynamicTableFactory: validateDeprecatedSemantic treats the value as the delivery guarantee",
            alias_of="sink.delivery-guarantee",
        ),
        OptionFact("sink.transactional-id-prefix", OptionEffect.DELIVERY_GUARANTEE, ("sk-stateless-kafka-eo-prefix",)),
        OptionFact(
            "sink.transaction-naming-strategy",
            OptionEffect.DELIVERY_GUARANTEE,
            ("sk-stateless-kafka-eo-naming",),
            note="the stored state can be restored if the connector that wrote the savepoint has this option",
        ),
        OptionFact(
            "sink.partitioner",
            OptionEffect.TUNES,
            ("kafka-sink-stateless-partitioner", "kafka-sink-tumble-partitioner"),
        ),
        OptionFact("key.fields", OptionEffect.DECODING, ("sk-stateless-kafka-key-fields",)),
        OptionFact("key.format", OptionEffect.DECODING, ("sk-stateless-kafka-key-fields",)),
        _SINK_PARALLELISM,
    ),
    ids=("sk-stateless-kafka-unchanged", "sk-stateless-kafka-eo-unchanged"),
    document="KafkaDynamicSink (5.0): a KafkaSink with a committer and a writer that stores transaction ids",
)
_UPSERT_SINK = SinkFacts(
    state=SinkState.TRANSACTIONS,
    operators=2,
    state_survives_columns=True,
    upserts=Known.YES,
    upserts_appended=Known.YES,
    updates=Known.NO,
    primary_key=KeyDemand.ALWAYS,
    options=(
        OptionFact("topic", OptionEffect.TARGET, ("sk-group-upsert-topic", "sk-group-direct-kafka-topic")),
        OptionFact("properties.bootstrap.servers", OptionEffect.TARGET, ("sk-stateless-kafka-bootstrap",)),
        *_SECURITY,
        OptionFact("properties.*", OptionEffect.TUNES, ("sk-stateless-kafka-properties",)),
        OptionFact("sink.delivery-guarantee", OptionEffect.DELIVERY_GUARANTEE, ("sk-group-upsert-eo-alo",)),
        OptionFact("sink.transactional-id-prefix", OptionEffect.DELIVERY_GUARANTEE, ("sk-group-upsert-eo-alo",)),
        OptionFact("sink.buffer-flush.*", OptionEffect.TUNES, ("sk-group-upsert-buffer-removed",)),
        replace(_SINK_PARALLELISM, ids=("sk-group-upsert-parallelism-2", "sk-group-direct-kafka-parallelism-2")),
    ),
    ids=("sk-group-upsert-unchanged",),
    document="UpsertKafkaDynamicTableFactory (5.0): the sink of KafkaDynamicSink",
)

_RELEASE = "flink-sql-connector-kafka 5.0.0-2.2"
_READS_OLDER = (
    "restores of up-kafka-tumble, up-kafka-sink-exactly-once, up-upsert-kafka-source and up-upsert-kafka-sink-group "
    "from Flink 1.20 to 2.3"
)

CONNECTORS = (
    ConnectorFacts(
        ("kafka",),
        _SOURCE,
        _SINK,
        formats=("value.format", "format"),
        releases=_RELEASE,
        reads_older_state=_READS_OLDER,
    ),
    ConnectorFacts(
        ("upsert-kafka",),
        replace(
            _SOURCE,
            appends=Known.NO,
            upserts=Known.YES,
            options=(
                replace(_READS, listed=_ALL_FROM_BEGINNING),
                replace(_PATTERN, listed=_ALL_FROM_BEGINNING),
                _BROKERS,
                *_SECURITY,
                _ISOLATION,
                OptionFact("properties.*", OptionEffect.TUNES, _ANY_PROPERTY),
                _BOUND,
                _DISCOVERY,
                _SCAN_PARALLELISM,
                OptionFact("scan.watermark.*", OptionEffect.TUNES, _WATERMARK),
            ),
            startup=Startup(choices={EARLIEST: {}}, itself="with the earliest record of the topic, as always"),
            document="UpsertKafkaDynamicTableFactory (5.0): a KafkaDynamicSource that reads from the earliest offset",
        ),
        _UPSERT_SINK,
        formats=("value.format",),
        releases=_RELEASE,
        reads_older_state=_READS_OLDER,
    ),
)
