"""Data sets of a script's tables, under the names that other tools use for the same data.

A data set has a namespace and name in OpenLineage's naming (``kafka://broker:9092`` and ``orders``), and a URI for
Airflow's assets. A table has no data set if the script does not state its place: for a placeholder that only a
connection fills in, a topic pattern, or a connector that stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from urllib.parse import parse_qs, urlsplit

from airflow_flinkcompat.plan.nodes import Scan, Table
from airflow_flinkcompat.plan.program import Program

# Flink's schemes for S3, which all refer to the same bucket.
_S3 = frozenset({"s3a", "s3n", "s3p"})
_FILE_SYSTEMS = frozenset({"s3", "gs", "oss", "hdfs"})
_PORTS = {"postgres": 5432, "mysql": 3306}
_JDBC = {"postgresql": "postgres", "mysql": "mysql"}
# The options that contain the place of a table.
_PLACES = frozenset(
    {
        "path", "table-path", "warehouse", "uri", "url", "table-name", "topic", "properties.bootstrap.servers",
        "catalog-name", "catalog-database", "catalog-table", "catalog-type",
    }
)  # fmt: skip
# The start of a placeholder.
_UNSAID = ("${", "{{")


@dataclass(frozen=True)
class Dataset:
    """A data set: OpenLineage's ``namespace`` and ``name``, and the ``uri`` of an asset in Airflow."""

    namespace: str
    name: str
    uri: str


def datasets_of(table: Table, hints: Iterable[tuple[str, str]] = ()) -> tuple[Dataset, ...]:
    """The data sets in which a table is stored."""
    named = _CONNECTORS.get(table.option("connector") or "")
    unsaid = any(mark in value for key, value in table.options if key in _PLACES for mark in _UNSAID)
    if named is None or unsaid or any(f"{key}=" in text for _, text in hints for key in _PLACES):
        return ()
    return tuple(named(table))


def dataset_at(place: str) -> Dataset | None:
    """The data set of a file path or URI; None if the place is unknown."""
    if any(mark in place for mark in _UNSAID):
        return None
    try:
        parts = urlsplit(place)
    except ValueError:
        return None
    path = parts.path.rstrip("/") or "/"
    if parts.scheme in ("", "file"):
        # A local path has the same name on every machine, but is a different place on each.
        return Dataset("file", path, f"file://{path}") if path.startswith("/") and not parts.netloc else None
    scheme = "s3" if parts.scheme in _S3 else parts.scheme
    if scheme not in _FILE_SYSTEMS or not parts.netloc or "@" in parts.netloc:
        return None
    namespace = f"{scheme}://{parts.netloc}"
    return Dataset(namespace, path if scheme == "hdfs" else path.strip("/") or "/", f"{namespace}{path}")


def written(program: Program) -> Mapping[str, tuple[Dataset, ...]]:
    """The data sets that a script writes, by table."""
    sinks = (each.sink for each in program.pipelines)
    return _by_name((sink.table, sink.hints) for sink in sinks if sink.table is not None)


def read(program: Program) -> Mapping[str, tuple[Dataset, ...]]:
    """The data sets that a script's INSERTs read, by table; empty for a table with an unknown place."""
    nodes = chain.from_iterable(each.sink.nodes for each in program.pipelines)
    return _by_name((node.table, node.hints) for node in nodes if isinstance(node, Scan))


def _by_name(uses: Iterable[tuple[Table, Iterable[tuple[str, str]]]]) -> dict[str, tuple[Dataset, ...]]:
    found: dict[str, dict[Dataset, None]] = {}
    for table, hints in uses:
        found.setdefault(table.name, {}).update(dict.fromkeys(datasets_of(table, hints)))
    return {name: tuple(each) for name, each in found.items()}


def _files(table: Table) -> Iterable[Dataset]:
    found = dataset_at(table.option("path") or table.option("table-path") or "")
    return () if found is None else (found,)


def _topics(table: Table) -> Iterable[Dataset]:
    # Like OpenLineage's integrations, name a cluster by its first server.
    server = (table.option("properties.bootstrap.servers") or "").split(",")[0].strip().rpartition("://")[2]
    names = [name.strip() for name in (table.option("topic") or "").split(";") if name.strip()]
    if not server:
        return
    namespace = f"kafka://{server if ':' in server else f'{server}:9092'}"
    for name in dict.fromkeys(names):
        yield Dataset(namespace, name, f"{namespace}/{name}")


def _database_table(table: Table) -> Iterable[Dataset]:
    kind, name = (table.option("url") or "").removeprefix("jdbc:"), table.option("table-name") or ""
    try:
        url = urlsplit(kind)
        host = url.netloc.rpartition("@")[2].split(",")[0]
    except ValueError:
        return
    database, scheme = url.path.strip("/"), _JDBC.get(url.scheme)
    if scheme is None or not (host and database and name) or "/" in database:
        return
    authority = host if ":" in host else f"{host}:{_PORTS[scheme]}"
    parts = [part.strip('"`') for part in name.split(".")]
    if scheme == "postgres" and len(parts) == 1:
        parts = [parse_qs(url.query).get("currentSchema", ["public"])[0], *parts]
    namespace, every = f"{scheme}://{authority}", [database, *parts][-3 if scheme == "postgres" else -2 :]
    # In Airflow's database URIs, the parts of the table name are the path, and providers require all of them.
    yield Dataset(namespace, ".".join(every), f"{namespace}/{'/'.join(every)}")


def _iceberg(table: Table) -> Iterable[Dataset]:
    database = table.option("catalog-database") or table.path[1] or "default_database"
    name = table.option("catalog-table") or table.path[2]
    kind = table.option("catalog-type", "hive")
    if kind == "hadoop":
        found = dataset_at(f"{(table.option('warehouse') or '').rstrip('/')}/{database}/{name}")
        return () if found is None else (found,)
    server = urlsplit(table.option("uri") or "")
    if kind != "hive" or server.scheme != "thrift" or not server.netloc:
        return ()  # only a REST catalog knows where its tables are
    namespace = f"hive://{server.netloc}"
    return (Dataset(namespace, f"{database}.{name}", f"{namespace}/{database}.{name}"),)


_CONNECTORS: Mapping[str, Callable[[Table], Iterable[Dataset]]] = {
    "filesystem": _files, "delta": _files, "hudi": _files, "paimon": _files, "kafka": _topics, "upsert-kafka": _topics,
    "jdbc": _database_table, "iceberg": _iceberg,
}  # fmt: skip
