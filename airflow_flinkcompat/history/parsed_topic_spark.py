"""Reader of a topic that parses each record once in a run.

JSON records are parsed in Arrow batches. A JSON record that is not plain is stored as it is, and the strict reader
parses it, as it parses the records of other formats. The values are stored on the disks of Spark's workers until the
run ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource
from airflow_flinkcompat.backfill.connectors.kafka_spark import PLACE, KafkaReader, numbered_records, rows_of
from airflow_flinkcompat.backfill.formats.text import JsonFormat
from airflow_flinkcompat.backfill.result import Untranslatable
from airflow_flinkcompat.backfill.spark import configured, is_pinned, pin
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.history.parsed_topic import ParsedTopic

if TYPE_CHECKING:
    from airflow_flinkcompat.history.json_records import JsonRecords

# Compressing the stored values takes twice the processor time of storing them.
_UNCOMPRESSED = {"spark.sql.inMemoryColumnarStorage.compressed": "false"}
_TYPES = {
    "m_topic": "STRING",
    "m_partition": "INT",
    "m_offset": "BIGINT",
    "m_timestamp": "TIMESTAMP_LTZ",
    "m_timestamp_type": "INT",
}


class ParsedTopicReader(KafkaReader):
    """Reader that returns decoded rows. A column that is not needed or cannot be decoded is NULL."""

    _source: ParsedTopic

    def rows(self) -> DataFrame:
        if not is_pinned(self._session):
            return self._selected(super().rows(), self._decoded)
        parser, strictly = self._parser, super().rows
        if parser is None:
            rows: DataFrame = pin(
                self._session, self._source, lambda: self._stored(self._selected(strictly(), self._decoded))
            )
            return rows
        parsed: DataFrame = pin(self._session, self._source, lambda: self._parsed(parser))
        plain = {place: f"v{i}" for i, place in enumerate(self._decoded)}
        parsed = parsed.selectExpr("value", *self._place(parsed.columns), *plain.values())
        rest = parsed.where("value IS NOT NULL").select("value", *PLACE)
        strict = self._selected(rows_of(self._source, rest), self._decoded)
        return self._selected(parsed.where("value IS NULL"), plain).union(strict)

    @cached_property
    def _decoded(self) -> dict[int, str]:
        """Spark SQL for the value of each needed column, over the texts ``f0`` …."""
        source, found = self._source, {}
        for place, column in enumerate(source.columns):
            if source.needed is None or place in source.needed:
                with suppress(Untranslatable):
                    found[place] = KafkaSource.decode(source, column, f"f{place}", source.declared)
        return found

    def _selected(self, rows: DataFrame, values: dict[int, str]) -> DataFrame:
        kinds = [spark_type(column.type) or "STRING" for column in self._source.columns]
        fields = (f"{values.get(i, f'CAST(NULL AS {kind})')} AS f{i}" for i, kind in enumerate(kinds))
        return rows.selectExpr(*fields, *PLACE)

    @property
    def _parser(self) -> JsonRecords | None:
        """Parser of the needed columns; None if only the strict reader can read them."""
        try:
            from airflow_flinkcompat.history.json_records import JsonRecords
        except ImportError:  # The extra state is not installed.
            return None
        source, format = self._source, self._source.value.format
        names = {place: name for name, place in source.value.fields}
        if source.key is not None or not isinstance(format, JsonFormat):
            return None
        return JsonRecords(tuple((names[i], source.columns[i].type) for i in self._decoded), format.separator)

    def _parsed(self, parser: JsonRecords) -> DataFrame:
        source = self._source
        kept = {"m_topic": len(source.topics.names) > 1, "m_partition": True, "m_offset": True}
        place = [name for name in PLACE if kept.get(name, source.stamped)]
        found = numbered_records(self._session, source).where("value IS NOT NULL").select(*place, "value")
        schema = parser.schema(", ".join(f"{name} {_TYPES[name]}" for name in place))
        return self._stored(found.mapInArrow(parser.read, schema))

    def _stored(self, rows: DataFrame) -> DataFrame:
        with configured(self._session, _UNCOMPRESSED):
            return rows.persist(StorageLevel.DISK_ONLY)

    def _place(self, stored: Collection[str]) -> Iterator[str]:
        """Columns of metadata, of which the only topic and unused timestamps are not stored."""
        for name, kind in _TYPES.items():
            value = quoted(self._source.topics.names[0]) if name == "m_topic" else f"CAST(NULL AS {kind})"
            yield name if name in stored else f"{value} AS {name}"


reader = ParsedTopicReader
