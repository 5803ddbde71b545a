"""What another option of a table comes to on engine ``flink``, by the effect that the catalogue gives it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from airflow_flinkcompat.compat import Outcome, Report, Side, check
from airflow_flinkcompat.connectors.facts import TableUse
from airflow_flinkcompat.connectors.registry import catalogue, option

SOURCE = "CREATE TABLE seen (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({0});\n"
SINK = "CREATE TABLE kept (a STRING, s BIGINT) WITH ({0});\n"
RUNNING = "INSERT INTO kept SELECT UPPER(a), SUM(b) FROM seen GROUP BY a;\n"
PLAIN = "INSERT INTO kept SELECT UPPER(a), b FROM seen WHERE b > 1;\n"
WINDOWED = (
    "INSERT INTO kept SELECT UPPER(a), SUM(b) FROM TABLE(TUMBLE(TABLE seen, DESCRIPTOR(ts), INTERVAL '1' HOUR))\n"
    "GROUP BY a, window_start, window_end;\n"
)
KAFKA = "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'k:9092', 'format' = 'json'"
PRINT = "'connector' = 'print'"
HUDI = "'connector' = 'hudi', 'path' = 'p'"
ICEBERG = "'connector' = 'iceberg', 'catalog-name' = 'c', 'catalog-table' = 't'"
SEARCH = "'connector' = 'elasticsearch-7', 'hosts' = 'http://e:9200', 'index' = 'i'"
WAREHOUSE = "'connector' = 'doris', 'table.identifier' = 't'"
UPSERTS = KAFKA.replace("kafka", "upsert-kafka").replace("'format'", "'key.format' = 'json', 'value.format'")
CSV_OPTION = ", 'csv.field-delimiter' = ';'"
EARLIEST = ", 'scan.startup.mode' = 'earliest-offset'"
LATEST = ", 'scan.startup.mode' = 'latest-offset'"


def of_source(before: str, after: str, query: str = PLAIN) -> Report:
    return judged((before, after), (PRINT, PRINT), query)


def of_sink(before: str, after: str) -> Report:
    return judged((KAFKA, KAFKA), (before, after), PLAIN)


def judged(source: tuple[str, str], sink: tuple[str, str], query: str, version: str | None = None) -> Report:
    old, new = (SOURCE.format(read) + SINK.format(written) + query for read, written in zip(source, sink, strict=True))
    settings = {"parallelism.default": "1"}
    return check(*(Side(text, settings, engine="flink", engine_version=version) for text in (old, new)))


@pytest.mark.parametrize("query", [PLAIN, RUNNING, WINDOWED])
@pytest.mark.parametrize(
    "added",
    [
        ", 'properties.group.id' = 'g'",
        LATEST,
        ", 'properties.fetch.min.bytes' = '7'",
        ", 'json.ignore-parse-errors' = 'true'",
        ", 'scan.watermark.idle-timeout' = '5 s'",
        ", 'scan.parallelism' = '1'",
        ", 'sink.partitioner' = 'fixed'",
    ],
)
def test_options_that_no_stored_position_holds(query: str, added: str) -> None:
    report = of_source(KAFKA, KAFKA + added, query)
    assert report.outcome is Outcome.COMPATIBLE
    assert report.findings[0].evidence


@pytest.mark.parametrize("connector", sorted(catalogue()))
def test_every_option_that_is_listed_is_judged_and_names_restores_where_it_is_compatible(connector: str) -> None:
    sides = {TableUse.SOURCE: of_source, TableUse.SINK: of_sink}
    for use, facts in catalogue()[connector].options.items():
        for fact in facts if use in sides else ():
            key = fact.key.replace("*", "x")
            report = sides[use](*(f"'connector' = '{connector}', '{key}' = '{value}'" for value in "xy"))
            [found] = report.findings
            assert key in found.message
            assert found.evidence or report.outcome is not Outcome.COMPATIBLE, key


def test_what_is_said_of_a_sink_fits_what_it_stores() -> None:
    stores_nothing = of_sink(STARROCKS, STARROCKS + ", 'sink.semantic' = 'none'").findings[0].message
    assert stores_nothing.endswith("at least once, or perhaps never; the sink stores nothing")
    stores = of_sink(KAFKA, KAFKA + ", 'sink.delivery-guarantee' = 'none'").findings[0].message
    assert stores.endswith("the stored state of the sink can be restored with the new value")


def test_a_parallelism_of_its_own_that_no_restore_shows_is_unknown() -> None:
    report = of_sink(FILES, FILES + ", 'sink.parallelism' = '3'")
    assert report.outcome is Outcome.UNKNOWN
    assert "the writer has state" in report.findings[0].message
    assert of_sink(FILES, FILES + ", 'sink.parallelism' = '1'").outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("query", [PLAIN, RUNNING])
@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("", ", 'properties.isolation.level' = 'read_uncommitted'", Outcome.COMPATIBLE),
        (", 'properties.isolation.level' = 'read_uncommitted'", "", Outcome.COMPATIBLE),
        ("", ", 'properties.isolation.level' = 'read_committed'", Outcome.UNKNOWN),
        (", 'properties.isolation.level' = 'read_committed'", "", Outcome.UNKNOWN),
        ("", ", 'properties.isolation.level' = 'committed'", Outcome.UNKNOWN),
    ],
)
@pytest.mark.parametrize("kafka", [KAFKA, UPSERTS])
def test_records_of_open_transactions_are_another_matter(
    query: str, kafka: str, before: str, after: str, outcome: Outcome
) -> None:
    report = of_source(kafka + before, kafka + after, query)
    assert report.outcome is outcome
    assert ("records of open and aborted transactions" in report.findings[0].message) is (outcome is Outcome.UNKNOWN)


@pytest.mark.parametrize(
    "option", ["sasl.jaas.config", "sasl.mechanism", "security.protocol", "ssl.truststore.location", "sasl.password"]
)
@pytest.mark.parametrize("kafka", [KAFKA, UPSERTS])
def test_who_connects_is_not_said_to_be_how_fast(kafka: str, option: str) -> None:
    secured = f"{kafka}, 'properties.{option}' = 'x'"
    says = "it decides who connects, and how the connection is secured; no stored position contains the option"
    of_written = says.replace("stored position", "state of the sink")
    for report, said in ((of_source(kafka, secured), says), (of_sink(kafka, secured), of_written)):
        assert report.outcome is Outcome.COMPATIBLE
        assert said in report.findings[0].message


@pytest.mark.parametrize("version", ["1.20", "2.3"])
def test_what_a_printed_line_begins_with_is_in_no_state(version: str) -> None:
    report = judged((KAFKA, KAFKA), (PRINT, PRINT + ", 'print-identifier' = 'x'"), PLAIN, version)
    assert report.outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("before", "after"), [("json", ", 'json.encode.decimal-as-plain-number' = 'true'"), ("csv", CSV_OPTION)]
)
@pytest.mark.parametrize("sink", ["kafka", "filesystem"])
def test_options_of_a_format_are_in_no_state_of_a_sink(sink: str, before: str, after: str) -> None:
    place = {"kafka": KAFKA.replace("'json'", f"'{before}'"), "filesystem": FILES.replace("'csv'", f"'{before}'")}[sink]
    report = of_sink(place, place + after)
    assert report.outcome is Outcome.COMPATIBLE
    assert {name.partition("-")[0] for each in report.findings for name in each.evidence} == {"sk"}


def test_where_a_source_begins_is_said_in_one_sentence() -> None:
    assert [finding.message for finding in of_source(KAFKA, KAFKA + LATEST).findings] == [
        "source table seen: scan.startup.mode changed: only a start without state uses this option; this job "
        "resumes from the stored offsets"
    ]


@pytest.mark.parametrize("query", [PLAIN, RUNNING, WINDOWED])
def test_a_topic_that_was_taken_away_is_read_on(query: str) -> None:
    report = of_source(KAFKA, KAFKA.replace("'t'", "'u'"), query)
    assert report.outcome is Outcome.INCOMPATIBLE
    assert "keeps reading t and reads u from the beginning" in report.findings[0].message
    assert report.findings[0].consequence is not None
    kept = "`flinkcompat migrate` with --restart-source may keep the rest"
    assert (kept in report.findings[0].message) is (query != PLAIN)


@pytest.mark.parametrize(
    ("query", "startup", "outcome"),
    [
        (PLAIN, EARLIEST, Outcome.COMPATIBLE),
        (RUNNING, EARLIEST, Outcome.COMPATIBLE),
        (WINDOWED, EARLIEST, Outcome.UNKNOWN),
        (PLAIN, LATEST, Outcome.INCOMPATIBLE),
        (PLAIN, "", Outcome.INCOMPATIBLE),
    ],
)
def test_a_topic_that_comes_is_read_from_its_beginning(query: str, startup: str, outcome: Outcome) -> None:
    old = KAFKA + startup
    assert of_source(old, old.replace("'t'", "'t;u'"), query).outcome is outcome


def test_the_same_topics_in_another_order() -> None:
    old = KAFKA.replace("'t'", "'t;u'")
    assert of_source(old, old.replace("'t;u'", "'u;t'")).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("servers", "outcome"),
    [("k:9092,l:9092", Outcome.COMPATIBLE), ("K:9092", Outcome.COMPATIBLE), ("other:9092", Outcome.UNKNOWN)],
)
def test_brokers_lead_to_one_cluster_where_they_share_one(servers: str, outcome: Outcome) -> None:
    assert of_source(KAFKA, KAFKA.replace("k:9092", servers)).outcome is outcome


@pytest.mark.parametrize(("query", "outcome"), [(PLAIN, Outcome.UNKNOWN), (WINDOWED, Outcome.INCOMPATIBLE)])
def test_an_end_is_taken_no_notice_of(query: str, outcome: Outcome) -> None:
    assert of_source(KAFKA, KAFKA + ", 'scan.bounded.mode' = 'latest-offset'", query).outcome is outcome


def test_a_parallelism_of_its_own_is_refused() -> None:
    assert of_source(KAFKA, KAFKA + ", 'scan.parallelism' = '3'").outcome is Outcome.INCOMPATIBLE


def test_changes_in_place_of_rows_are_another_matter() -> None:
    assert of_source(KAFKA, KAFKA.replace("'json'", "'debezium-json'")).outcome is Outcome.UNKNOWN
    assert of_source(KAFKA, KAFKA.replace("'json'", "'csv'")).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (KAFKA, KAFKA.replace("'t'", "'u'"), Outcome.COMPATIBLE),
        (KAFKA, KAFKA + ", 'properties.linger.ms' = '5'", Outcome.COMPATIBLE),
        (KAFKA, KAFKA + ", 'sink.parallelism' = '2'", Outcome.INCOMPATIBLE),
        (KAFKA, KAFKA + ", 'sink.parallelism' = '1'", Outcome.COMPATIBLE),
        (KAFKA, PRINT, Outcome.INCOMPATIBLE),
        (KAFKA, HUDI, Outcome.UNKNOWN),
        (PRINT, KAFKA, Outcome.COMPATIBLE),
        (PRINT, HUDI, Outcome.UNKNOWN),
        (HUDI, HUDI.replace("'p'", "'q'"), Outcome.INCOMPATIBLE),
        (SEARCH, SEARCH.replace("'i'", "'j'"), Outcome.COMPATIBLE),
        (SEARCH, SEARCH + ", 'sink.parallelism' = '1'", Outcome.UNKNOWN),
        (SEARCH, SEARCH + ", 'failure-handler' = 'ignore'", Outcome.COMPATIBLE),
        (HUDI, HUDI + ", 'compaction.delta_commits' = '3'", Outcome.COMPATIBLE),
        (HUDI, HUDI + ", 'compaction.async.enabled' = 'false'", Outcome.UNKNOWN),
        (ICEBERG, ICEBERG + ", 'write.target-file-size-bytes' = '9'", Outcome.COMPATIBLE),
        (ICEBERG, ICEBERG + ", 'distribution-mode' = 'hash'", Outcome.UNKNOWN),
        (WAREHOUSE, WAREHOUSE.replace("'t'", "'u'"), Outcome.INCOMPATIBLE),
        ("'connector' = 'filesystem', 'path' = 'p', 'format' = 'json'", KAFKA, Outcome.UNKNOWN),
    ],
)
def test_options_and_connectors_of_a_sink(before: str, after: str, outcome: Outcome) -> None:
    assert of_sink(before, after).outcome is outcome


def test_a_sink_that_is_not_known_is_the_only_doubt() -> None:
    made_up = "'connector' = 'made-up'"
    assert "but the sink `made-up` was not measured" in of_sink(PRINT, made_up).findings[0].message


@pytest.mark.parametrize(("query", "outcome"), [(PLAIN, Outcome.UNKNOWN), (WINDOWED, Outcome.COMPATIBLE)])
def test_a_sink_that_plans_operators_of_its_own_may_unchain_what_stands_in_front(query: str, outcome: Outcome) -> None:
    report = judged((KAFKA, KAFKA), (PRINT, HUDI), query)
    assert report.outcome is outcome


STARROCKS = "'connector' = 'starrocks', 'table-name' = 't', 'password' = 'p'"
EXACTLY_ONCE = ", 'sink.semantic' = 'exactly-once'"


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (STARROCKS, STARROCKS.replace("'t'", "'u'"), Outcome.COMPATIBLE),
        (STARROCKS + EXACTLY_ONCE, STARROCKS.replace("'t'", "'u'") + EXACTLY_ONCE, Outcome.UNKNOWN),
        (STARROCKS + EXACTLY_ONCE, STARROCKS.replace("'p'", "'q'") + EXACTLY_ONCE, Outcome.COMPATIBLE),
        (STARROCKS, STARROCKS + EXACTLY_ONCE, Outcome.UNKNOWN),
        (STARROCKS, STARROCKS + ", 'sink.use.new-sink-api' = 'true'", Outcome.UNKNOWN),
        (STARROCKS, PRINT, Outcome.UNKNOWN),
        (STARROCKS + EXACTLY_ONCE, PRINT, Outcome.UNKNOWN),
    ],
)
def test_a_sink_that_keeps_something_under_some_options_only(before: str, after: str, outcome: Outcome) -> None:
    assert of_sink(before, after).outcome is outcome


@pytest.mark.parametrize(("query", "outcome"), [(PLAIN, Outcome.UNKNOWN), (WINDOWED, Outcome.COMPATIBLE)])
def test_a_sink_whose_operators_are_not_counted_follows_a_projection(query: str, outcome: Outcome) -> None:
    assert judged((KAFKA, KAFKA), (PRINT, STARROCKS), query).outcome is outcome


HBASE = "'connector' = 'hbase-2.2', 'table-name' = 't', 'zookeeper.quorum' = 'z'"


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (HBASE, PRINT, Outcome.UNKNOWN),
        (HBASE, HBASE.replace("'t'", "'u'"), Outcome.UNKNOWN),
        (HBASE, HBASE + ", 'sink.buffer-flush.max-rows' = '5'", Outcome.COMPATIBLE),
    ],
)
def test_a_sink_whose_writer_may_store_what_is_buffered(before: str, after: str, outcome: Outcome) -> None:
    assert of_sink(before, after).outcome is outcome


SOCKET = "'connector' = 'socket', 'hostname' = 'a', 'port' = '9', 'format' = 'csv'"
FAKER = "'connector' = 'faker', 'fields.a.expression' = 'x', 'fields.b.expression' = 'y', 'fields.ts.expression' = 'z'"
DATAGEN = "'connector' = 'datagen', 'fields.b.max' = '7', 'rows-per-second' = '1'"


@pytest.mark.parametrize("query", [PLAIN, RUNNING, WINDOWED])
@pytest.mark.parametrize(
    ("options", "old", "new", "says"),
    [
        (SOCKET, "'a'", "'b'", "stores nothing"),
        (SOCKET, "'csv'", "'json'", "no stored position contains the format"),
        (FAKER, "'y'", "'w'", "new rows follow the new options"),
        (DATAGEN, "'7'", "'9'", "new rows follow the new options"),
        (DATAGEN, "'1'", "'5'", "how fast"),
    ],
)
def test_a_source_that_remembers_no_place(query: str, options: str, old: str, new: str, says: str) -> None:
    report = of_source(options, options.replace(old, new), query)
    assert report.outcome is Outcome.COMPATIBLE
    assert says in report.findings[0].message or (query == PLAIN and "store nothing" in report.findings[0].message)


CHANGELOG = SOCKET.replace("'csv'", "'changelog-csv'") + ", 'changelog-csv.column-delimiter' = '|'"


def test_a_job_without_any_state_has_nothing_to_misread() -> None:
    assert of_source(SOCKET, CHANGELOG).outcome is Outcome.COMPATIBLE
    assert of_source(CHANGELOG, CHANGELOG.replace("|", ";")).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(("query", "sink"), [(RUNNING, PRINT), (WINDOWED, PRINT), (PLAIN, HUDI), (PLAIN, WAREHOUSE)])
def test_what_it_reads_may_be_planned_otherwise_where_something_is_kept(query: str, sink: str) -> None:
    assert judged((SOCKET, CHANGELOG), (sink, sink), query).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("options", "more"),
    [
        (SOCKET, ", 'changelog-csv.column-delimiter' = '|'"),
        (FAKER, ", 'number-of-rows' = '9'"),
        (DATAGEN, ", 'fields.b.kind' = 'sequence', 'fields.b.start' = '1', 'fields.b.end' = '9'"),
        (DATAGEN, ", 'number-of-rows' = '9'"),
    ],
)
def test_what_may_be_stored_or_planned_of_such_a_source(options: str, more: str) -> None:
    assert of_source(options, options + more).outcome is Outcome.UNKNOWN


JDBC = "'connector' = 'jdbc', 'table-name' = 't', 'url' = 'u', 'scan.partition.lower-bound' = '1'"


@pytest.mark.parametrize(
    ("scan", "old"),
    [(JDBC, "'t'"), (JDBC, "'u'"), (JDBC, "'1'"), ("'connector' = 'hbase-2.2', 'table-name' = 't'", "'t'")],
)
def test_a_scan_that_ended_is_not_run_again(scan: str, old: str) -> None:
    report = of_source(scan, scan.replace(old, "'2'"), RUNNING)
    assert report.outcome is Outcome.INCOMPATIBLE
    assert "is not run again" in report.findings[0].message


MYSQL = "'connector' = 'mysql-cdc', 'hostname' = 'h', 'username' = 'u', 'database-name' = 'd', 'table-name' = 't'"


@pytest.mark.parametrize(
    ("connector", "old", "new", "outcome"),
    [
        ("mysql-cdc", "t", "v", Outcome.INCOMPATIBLE),
        ("mysql-cdc", "t", "t|v", Outcome.INCOMPATIBLE),
        ("sqlserver-cdc", "dbo.t", "dbo.v", Outcome.INCOMPATIBLE),
        ("mysql-cdc", "t|v", "t", Outcome.UNKNOWN),
        ("mysql-cdc", "T", "t", Outcome.UNKNOWN),
        ("mysql-cdc", "t.*", "v", Outcome.UNKNOWN),
        ("mysql-cdc", "t", "v[0-9]", Outcome.UNKNOWN),
        ("mysql-cdc", "a.t", "abt", Outcome.UNKNOWN),
        ("oracle-cdc", "a.t", "abt.t", Outcome.INCOMPATIBLE),
        ("sqlserver-cdc", "t", "dbo.t", Outcome.UNKNOWN),
        ("tidb-cdc", "t", "v", Outcome.UNKNOWN),
    ],
)
def test_tables_of_a_database_that_come(connector: str, old: str, new: str, outcome: Outcome) -> None:
    table = MYSQL.replace("mysql-cdc", connector).replace("'table-name' = 't'", "'table-name' = '{0}'")
    report = of_source(table.format(old), table.format(new))
    assert report.outcome is outcome
    if outcome is Outcome.INCOMPATIBLE:
        assert "never its earlier rows; restart this source" in report.findings[0].message


@pytest.mark.parametrize(
    ("connector", "mode", "outcome"),
    [
        ("mysql-cdc", "latest-offset", Outcome.COMPATIBLE),
        ("mysql-cdc", "timestamp", Outcome.UNKNOWN),
        ("mysql-cdc", "snapshot", Outcome.UNKNOWN),
        ("mongodb-cdc", "latest-offset", Outcome.UNKNOWN),
    ],
)
def test_where_a_reader_of_a_log_begins(connector: str, mode: str, outcome: Outcome) -> None:
    table = MYSQL.replace("mysql-cdc", connector)
    for before in ("", ", 'scan.startup.mode' = 'initial'"):
        assert of_source(table + before, f"{table}, 'scan.startup.mode' = '{mode}'").outcome is outcome


def test_a_table_that_is_named_with_its_schema() -> None:
    """SQL Server's and Oracle's tables have had their schema in an option of its own, and in their name."""
    table = MYSQL.replace("mysql-cdc", "sqlserver-cdc")
    apart = table + ", 'schema-name' = 'dbo'"
    assert of_source(apart, table.replace("'t'", "'dob.t'")).outcome is Outcome.INCOMPATIBLE
    assert of_source(apart, table.replace("'t'", "'dbo.t'")).outcome is Outcome.UNKNOWN


POSTGRES = MYSQL.replace("mysql-cdc", "postgres-cdc") + ", 'slot.name' = 's', 'schema-name' = '{}'"


@pytest.mark.parametrize(
    ("schema", "more", "outcome"),
    [
        ("staging", "", Outcome.INCOMPATIBLE),
        ("public|staging", "", Outcome.INCOMPATIBLE),
        ("sta.*", "", Outcome.UNKNOWN),
        ("staging", ", 'scan.newly-added-table.enabled' = 'true'", Outcome.UNKNOWN),
    ],
)
def test_tables_of_another_schema_are_never_read_whole(schema: str, more: str, outcome: Outcome) -> None:
    report = of_source(POSTGRES.format("public") + more, POSTGRES.format(schema) + more)
    assert report.outcome is outcome
    assert not [name for each in report.findings for name in each.evidence]


@pytest.mark.parametrize(
    ("formats", "before", "after", "outcome"),
    [
        (("json", "json"), "a;b", "b;a", Outcome.COMPATIBLE),
        (("csv", "json"), "a;b", "b;a", Outcome.UNKNOWN),
        (("raw", "json"), "a", "b", Outcome.UNKNOWN),
        (("json", "csv"), "a", "b", Outcome.UNKNOWN),
    ],
)
def test_a_column_that_is_found_by_its_place_in_a_key_or_a_value_is_another_one_there(
    formats: tuple[str, str], before: str, after: str, outcome: Outcome
) -> None:
    """Without its key's columns, a value of CSV begins with another column."""
    names = f", 'key.format' = '{formats[0]}', 'value.fields-include' = 'EXCEPT_KEY', 'value.format' = '{formats[1]}'"
    table = KAFKA.replace(", 'format' = 'json'", names)
    fields = (f"{table}, 'key.fields' = '{each}'" for each in (before, after))
    assert of_source(*fields, RUNNING).outcome is outcome


@pytest.mark.parametrize("name", ["scan.startup.modes", "scan.watermark.idle", "properties.any"])
def test_an_option_that_no_version_of_the_connector_declares_is_not_harmless(name: str) -> None:
    """Flink refuses a table with it, unless it is passed on to the connector's client."""
    expected = Outcome.COMPATIBLE if name.startswith("properties.") else Outcome.UNKNOWN
    assert of_source(KAFKA, f"{KAFKA}, '{name}' = '1 s'").outcome is expected


@pytest.mark.parametrize("name", ["subject", "schema-registry.subject", "basic-auth.user-info"])
def test_a_registry_of_schemas_is_in_no_state(name: str) -> None:
    table = KAFKA.replace("'json'", "'avro-confluent'")
    old, new = (f"{table}, 'avro-confluent.{name}' = '{value}'" for value in "ab")
    for report in (of_source(old, new), of_sink(old, new)):
        assert report.outcome is Outcome.COMPATIBLE
        assert ("connection to the schema registry" in report.findings[0].message) is name.startswith("basic-auth")
    old, new = (f"{table}, 'avro-confluent.url' = '{value}'" for value in "ab")
    assert of_source(old, new).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "options",
    [", 'scan.newly-added-table.enabled' = 'true'", ", 'scan.startup.mode' = 'latest-offset'"],
)
def test_tables_that_come_as_a_start_without_state_would_have_them(options: str) -> None:
    table = MYSQL + options
    assert of_source(table, table.replace("'t'", "'v'")).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("connector", "default", "other"), [("mysql-cdc", "true", "false"), ("mongodb-cdc", "false", "true")]
)
def test_the_reader_of_a_database_is_another_one(connector: str, default: str, other: str) -> None:
    table = MYSQL.replace("mysql-cdc", connector)
    key = ", 'scan.incremental.snapshot.enabled' = "
    assert of_source(table, f"{table}{key}'{default}'").outcome is Outcome.COMPATIBLE
    for old in (table, f"{table}{key}'{default}'"):
        assert of_source(old, f"{table}{key}'{other}'").outcome is Outcome.INCOMPATIBLE


CDC = "'connector' = 'postgres-cdc', 'hostname' = 'localhost', 'table-name' = 't', 'slot.name' = 's'"


@pytest.mark.parametrize(
    ("connector", "before", "after", "outcome"),
    [
        ("postgres-cdc", "'t'", "'u'", Outcome.INCOMPATIBLE),
        ("postgres-cdc", "'s'", "'r'", Outcome.INCOMPATIBLE),
        ("mysql-cdc", "'t'", "'u'", Outcome.INCOMPATIBLE),
        ("mysql-cdc", "'localhost'", "'127.0.0.1'", Outcome.COMPATIBLE),
        ("mysql-cdc", "'localhost'", "'elsewhere'", Outcome.UNKNOWN),
    ],
)
def test_tables_and_slots_of_a_database(connector: str, before: str, after: str, outcome: Outcome) -> None:
    old = CDC.replace("postgres-cdc", connector)
    sides = (old, old.replace(before, after))
    assert judged(sides, (PRINT, PRINT), PLAIN, "1.20").outcome is outcome
    # What no position holds is the same on any line; what was run with one says nothing of another line.
    assert judged(sides, (PRINT, PRINT), PLAIN, "2.3").outcome in (outcome, Outcome.INCOMPATIBLE)


LOOKED_UP = (
    "CREATE TABLE orders (a STRING, b BIGINT, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 't');\n"
    "CREATE TABLE names (k STRING, n STRING) WITH ('connector' = 'jdbc', 'table-name' = '{0}');\n"
    "CREATE TABLE kept (a STRING, n {1}) WITH ('connector' = 'print');\n"
    "INSERT INTO kept SELECT n, {2} FROM orders JOIN names FOR SYSTEM_TIME AS OF orders.pt ON orders.a = names.k {3};\n"
)


@pytest.mark.parametrize(
    ("rest", "outcome"),
    [(("STRING", "a", ""), Outcome.COMPATIBLE), (("BIGINT", "SUM(b)", "GROUP BY n"), Outcome.INCOMPATIBLE)],
)
def test_another_place_to_look_up(rest: tuple[str, str, str], outcome: Outcome) -> None:
    old, new = (Side(LOOKED_UP.format(table, *rest), engine="flink") for table in ("d", "e"))
    assert check(old, new).outcome is outcome


@pytest.mark.parametrize(
    "options",
    [
        ", 'scan.newly-added-table.enabled' = 'true'",
        ", 'scan.newly-added-table.enabled' = 'TRUE'",
    ],
)
def test_tables_that_are_added_on_purpose_were_not_measured(options: str) -> None:
    old = CDC + options
    assert of_source(old, old.replace("'t'", "'(t|v)'")).outcome is Outcome.UNKNOWN


def test_what_a_connector_does_without_an_option() -> None:
    kinds = [CDC + f", 'scan.incremental.snapshot.enabled' = '{value}'" for value in ("true", "false")]
    assert of_source(*kinds).outcome is Outcome.INCOMPATIBLE
    assert of_source(CDC, kinds[0]).outcome is Outcome.INCOMPATIBLE
    assert of_source(CDC, kinds[1]).outcome is Outcome.COMPATIBLE
    without = CDC.replace(", 'slot.name' = 's'", "")
    assert of_source(without, CDC).outcome is Outcome.INCOMPATIBLE
    assert of_source(without, without + ", 'slot.name' = 'flink'").outcome is Outcome.COMPATIBLE


ASYNC = (
    "CREATE TABLE orders (a STRING, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 't');\n"
    "CREATE TABLE names (k STRING, n STRING) WITH (\n"
    "  'connector' = 'hbase-2.2', 'table-name' = 'd', 'zookeeper.quorum' = 'z', 'lookup.async' = 'true'{0});\n"
    "CREATE TABLE kept (n STRING) WITH ('connector' = 'kafka', 'topic' = 'u');\n"
    "INSERT INTO kept SELECT n FROM orders JOIN names FOR SYSTEM_TIME AS OF orders.pt ON orders.a = names.k;\n"
)


def test_rows_that_wait_for_an_answer_are_asked_for_again() -> None:
    old = ASYNC.format("")
    for new in (ASYNC.format(", 'lookup.cache.ttl' = '1 h'"), old.replace("'d'", "'e'")):
        report = check(*(Side(text, engine="flink") for text in (old, new)))
        assert report.outcome is Outcome.COMPATIBLE
        assert "looks them up again" in report.findings[0].message
    unknown = ASYNC.format(", 'made-up' = 'x'")
    assert check(*(Side(text, engine="flink") for text in (old, unknown))).outcome is Outcome.UNKNOWN


HBASE = "'connector' = 'hbase-2.2', 'table-name' = 't', 'zookeeper.quorum' = 'z:2181'"
MONGODB = "'connector' = 'mongodb', 'uri' = 'mongodb://m', 'database' = 'd', 'collection' = 't'"


@pytest.mark.parametrize("options", [MONGODB, SEARCH.replace("'i'", "'t'")])
def test_what_is_listed_for_a_sink_says_nothing_of_a_source(options: str) -> None:
    another = options.replace("'t'", "'u'")
    assert of_sink(options, another).outcome is Outcome.COMPATIBLE
    assert of_source(options, another).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("options", [HBASE, HBASE + ", 'lookup.async' = 'true'", MONGODB])
def test_another_place_of_any_lookup_is_wrong_below_an_aggregation(options: str) -> None:
    script = LOOKED_UP.replace("'connector' = 'jdbc', 'table-name' = '{0}'", options.replace("'t'", "'{0}'"))
    old, new = (Side(script.format(table, "BIGINT", "SUM(b)", "GROUP BY n"), engine="flink") for table in ("d", "e"))
    assert check(old, new).outcome is Outcome.INCOMPATIBLE


OWN = (
    "CREATE TABLE orders (a STRING, b BIGINT, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 't');\n"
    "CREATE TABLE names (k STRING, n STRING) WITH ('connector' = 'our-lookup', {0});\n"
    "CREATE TABLE kept (a STRING, n {1}) WITH ('connector' = 'print');\n"
    "INSERT INTO kept SELECT n, {2} FROM orders JOIN names FOR SYSTEM_TIME AS OF orders.pt ON orders.a = names.k {3};\n"
)
BESIDE = ("STRING", "a", "")
BELOW = ("BIGINT", "SUM(b)", "GROUP BY n")
PLACE = "'our.table' = 't', 'our.url' = 'db://one'"


def own_lookup(old: str, new: str, rest: tuple[str, str, str] = BESIDE) -> Report:
    return check(*(Side(OWN.format(options, *rest), engine="flink") for options in (old, new)))


@pytest.mark.parametrize(
    "new",
    [
        PLACE.replace("'t'", "'u'"),
        PLACE.replace("one", "two"),
        PLACE.replace("our.", ""),
        PLACE + ", 'lookup.cache.max-rows' = '9'",
        PLACE + ", 'our.cache-expire-ms' = '9', 'our.password' = 'p', 'null-literal' = '-', 'max-retries' = '2'",
    ],
)
def test_no_lookup_keeps_anything_of_its_options(new: str) -> None:
    for old, other in ((PLACE, new), (new, PLACE)):
        report = own_lookup(old, other)
        assert report.outcome is Outcome.COMPATIBLE
        assert "rows that wait" in report.findings[0].message


@pytest.mark.parametrize(
    "more",
    [
        ", 'lookup.async' = 'true'",
        ", 'cache.mode' = 'all'",
        ", 'query.threads' = '8'",
        ", 'cache.async-refresh' = 'true'",
        ", 'lookup.cache' = 'FULL'",
        ", 'batch.timeout' = '1 s'",
        ", 'made-up' = 'x'",
    ],
)
def test_what_may_say_that_rows_wait_is_not_known(more: str) -> None:
    assert own_lookup(PLACE, PLACE + more).outcome is Outcome.UNKNOWN
    assert own_lookup(PLACE + more, PLACE).outcome is Outcome.UNKNOWN


def test_a_place_that_a_lookup_may_ask_for_is_not_left_out() -> None:
    assert own_lookup(PLACE, "'our.url' = 'db://one'").outcome is Outcome.UNKNOWN
    assert own_lookup(PLACE, PLACE.replace("our.table", "their.table")).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("new", "outcome"),
    [
        (PLACE.replace("'t'", "'u'"), Outcome.INCOMPATIBLE),
        (PLACE + ", 'our.password' = 'p'", Outcome.COMPATIBLE),
        (PLACE + ", 'lookup.cache.ttl' = '1 h'", Outcome.COMPATIBLE),
        (PLACE + ", 'our.format' = 'csv'", Outcome.UNKNOWN),
    ],
)
def test_what_an_aggregation_has_gathered_of_another_place(new: str, outcome: Outcome) -> None:
    assert own_lookup(PLACE, new, BELOW).outcome is outcome


def test_a_connector_whose_options_are_listed_takes_no_others() -> None:
    old, new = (LOOKED_UP.format("d", *BESIDE), LOOKED_UP.format("d', 'lookup.made-up-timeout' = '1", *BESIDE))
    assert check(*(Side(text, engine="flink") for text in (old, new))).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(("connector", "outcome"), [("mongodb-cdc", Outcome.COMPATIBLE), ("db2-cdc", Outcome.UNKNOWN)])
def test_who_asks_may_have_been_given_by_an_option_of_before(connector: str, outcome: Outcome) -> None:
    old = f"'connector' = '{connector}', 'user' = 'u'"
    assert of_source(old, old.replace("'user'", "'username'")).outcome is outcome


def test_a_connector_of_the_old_style_is_named() -> None:
    old = "'connector.type' = 'kafka', 'connector.topic' = 't'"
    report = judged((old, old.replace("'t'", "'u'")), (PRINT, PRINT), PLAIN, "1.20")
    assert report.outcome is Outcome.UNKNOWN
    assert "was not measured with the old connector.type kafka" in report.findings[0].message


@given(
    connector=st.sampled_from([*sorted(catalogue()), "made-up"]),
    key=st.from_regex(r"[a-z]{2,9}([.-][a-z]{2,9}){0,3}", fullmatch=True),
    sink=st.booleans(),
)
def test_an_option_that_nobody_lists_is_never_compatible(connector: str, key: str, sink: bool) -> None:
    facts = catalogue().get(connector)
    assume(key != "connector" and option(connector, TableUse.SINK if sink else TableUse.SOURCE, key) is None)
    assume(facts is None or key not in facts.formats)
    old, new = (f"'connector' = '{connector}', '{key}' = '{value}'" for value in ("x", "y"))
    report = of_sink(old, new) if sink else of_source(old, new)
    assert report.outcome not in (Outcome.COMPATIBLE, Outcome.PARTIAL)


KAFKA_SINK = "'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'"
REFUSED = [
    (KAFKA_SINK, KAFKA_SINK + ", 'sink.delivery-guarantee' = 'exactly-once'"),
    (KAFKA_SINK, KAFKA_SINK + ", 'sink.semantic' = 'exactly-once'"),
    (KAFKA_SINK, KAFKA_SINK + ", 'sink.delivery-guarantee' = 'at-most-twice'"),
    (KAFKA_SINK, KAFKA_SINK + ", 'csv.ignore-parse-errors' = 'true'"),
    (
        "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/d', 'table-name' = 's'",
        "'connector' = 'jdbc', 'table-name' = 's'",
    ),
    ("'connector' = 'filesystem', 'path' = '/a', 'format' = 'csv'", "'connector' = 'filesystem', 'format' = 'csv'"),
]


@pytest.mark.parametrize(("old", "new"), REFUSED)
def test_options_that_a_sink_refuses_are_never_compatible(old: str, new: str) -> None:
    read = "CREATE TABLE k (a STRING) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');\n"
    sides = [f"{read}CREATE TABLE s (a STRING) WITH ({each});\nINSERT INTO s SELECT a FROM k;" for each in (old, new)]
    assert check(*sides, engine="flink").outcome is not Outcome.COMPATIBLE


KAFKA_SOURCE = KAFKA_SINK.replace("'s'", "'t'")
FILES = "'connector' = 'filesystem', 'path' = '/a', 'format' = 'csv'"
SEQUENCE = "'connector' = 'datagen', 'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '{}'"
REFUSED_OF_SOURCES = [
    (KAFKA_SOURCE, KAFKA_SOURCE + ", 'scan.startup.mode' = 'specific-offsets'"),
    (KAFKA_SOURCE, KAFKA_SOURCE + ", 'scan.startup.mode' = 'timestamp'"),
    (KAFKA_SOURCE, KAFKA_SOURCE + ", 'scan.startup.mode' = 'the-beginning'"),
    (KAFKA_SOURCE, KAFKA_SOURCE + ", 'topic-pattern' = 't'"),
    (KAFKA_SOURCE, KAFKA_SOURCE + ", 'json.fail-on-missing-field' = 'true', 'json.ignore-parse-errors' = 'true'"),
    (
        KAFKA_SOURCE + ", 'json.ignore-parse-errors' = 'true'",
        KAFKA_SOURCE.replace("'format'", "'value.format'") + ", 'json.ignore-parse-errors' = 'true'",
    ),
    (FILES + ", 'source.monitor-interval' = '1 s'", FILES),
    (FILES, FILES + ", 'source.monitor-interval' = '1 s'"),
    (FILES + ", 'csv.ignore-parse-errors' = 'true'", FILES),
    (FILES.replace("csv", "json"), FILES.replace("csv", "json") + ", 'json.ignore-parse-errors' = 'true'"),
    (SEQUENCE.format(9), SEQUENCE.format(8)),
    (SEQUENCE.format(9), SEQUENCE.format(9).replace("'1'", "'2'")),
    (SEQUENCE.format(9), SEQUENCE.format("x")),
]


@pytest.mark.parametrize(("old", "new"), REFUSED_OF_SOURCES)
def test_options_that_a_source_refuses_or_reads_otherwise_are_never_compatible(old: str, new: str) -> None:
    written = "CREATE TABLE s (a STRING) WITH ('connector' = 'print');\n"
    sides = [
        f"{written}CREATE TABLE k (a STRING) WITH ({each});\nINSERT INTO s SELECT a FROM k;" for each in (old, new)
    ]
    assert check(*sides, engine="flink").outcome is not Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("path", "format", "outcome"),
    [
        ("/new", "parquet", Outcome.COMPATIBLE),
        ("file:///new", "parquet", Outcome.COMPATIBLE),
        ("s3://bucket/new", "parquet", Outcome.UNKNOWN),
        ("file:///new", "json", Outcome.UNKNOWN),
    ],
)
def test_files_that_are_being_written_stay_in_their_place(path: str, format: str, outcome: Outcome) -> None:
    """One that is not finished goes on where it was begun; formats that are written whole leave none."""
    script = (
        "CREATE TABLE orders (a STRING, b BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', "
        "'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json');\n"
        "CREATE TABLE kept (a STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = '{}');\n"
        "INSERT INTO kept SELECT a, b FROM orders;"
    )
    old, new = (Side(script.format(each, format), engine="flink") for each in ("file:///old", path))
    assert check(old, new).outcome is outcome


@pytest.mark.parametrize("version", ["1.20", "2.3"])
def test_what_no_position_in_a_log_holds_was_seen_on_either_line(version: str) -> None:
    sides = (MYSQL, MYSQL.replace("'u'", "'another'") + ", 'scan.snapshot.fetch.size' = '9'")
    report = judged(sides, (PRINT, PRINT), PLAIN, version)
    assert report.outcome is Outcome.COMPATIBLE
    seen = {each[:2] for finding in report.findings for each in finding.evidence}
    assert seen == ({"cd"} if version == "1.20" else {"ks", "ka"})
