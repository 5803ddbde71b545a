"""Airflow assets of deployments, their events, and OpenLineage facets of deploys and backfills.

A deployment is the asset ``flink://<connection>/<deployment>``. The connection's id is known when a DAG is parsed,
contains no secret, and distinguishes clusters that have jobs of the same name. A ledger's address is unsuitable,
because it may be unknown at parse time and may contain a secret. The tables that a script writes are known only when
the task runs. The events of deployments and tables are emitted through aliases that the task declares. Aliases also
keep parsing fast: to create an ``Asset`` from a URI, Airflow reads the metadata of all providers, which takes longer
than parsing 200 deployments.

OpenLineage facets exist only if Airflow's OpenLineage provider is installed. Datasets have the names that OpenLineage
defines (:mod:`~airflow_flinkcompat.plan.datasets`). If the script does not show the location of a table, the table and
its columns are left out, because an invented name would mean a dataset that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.plan.datasets import Dataset
    from airflow_flinkcompat.plan.nodes import Table

SCHEME = "flink"
_DEFAULT_CONNECTION = "flink_default"


def deployment_uri(deployment: str, flink_conn_id: str = _DEFAULT_CONNECTION) -> str:
    return f"{SCHEME}://{quote(flink_conn_id, safe='')}/{quote(deployment, safe='')}"


def deployment_asset(deployment: str, *, flink_conn_id: str = _DEFAULT_CONNECTION) -> Asset:
    """The asset of a deployment, for the schedule of a DAG that follows a deploy.

    Args:
        deployment: Name of the Flink job.
        flink_conn_id: The connection of the job's deploy task.

    Returns:
        The asset.
    """
    return Asset(deployment_uri(deployment, flink_conn_id))


def deployment_alias(deployment: str, *, flink_conn_id: str = _DEFAULT_CONNECTION) -> AssetAlias:
    """Alias through which a deploy task emits the event of its deployment."""
    return AssetAlias(f"{SCHEME}-deployment:{flink_conn_id}/{deployment}")


def tables_alias(deployment: str, *, flink_conn_id: str = _DEFAULT_CONNECTION) -> AssetAlias:
    """Alias of all tables that a deployment writes, for the schedule of a DAG that reads them.

    Args:
        deployment: Name of the Flink job.
        flink_conn_id: The connection of the job's tasks.

    Returns:
        The alias.
    """
    return AssetAlias(f"{SCHEME}-tables:{flink_conn_id}/{deployment}")


def emit(task: Any, context: Context, alias: AssetAlias, uris: Mapping[str, Mapping[str, Any]]) -> None:
    """Add an event to each asset, through an alias that is among the outlets of ``task``."""
    accessor = context["outlet_events"][alias]
    for uri, extra in uris.items():
        try:
            asset = Asset(uri)
        except ValueError as error:  # a URI that its provider rejects must not fail a finished task
            task.log.warning("No asset event on %s: %s", uri, error)
            continue
        accessor.add(asset, extra=dict(extra))
        task.log.info("Asset event on %s", uri)


def emit_tables(
    task: Any, context: Context, alias: AssetAlias, tables: Mapping[str, Sequence[Dataset]], extra: Mapping[str, Any]
) -> None:
    """Add an event to the asset of each table; tables without a known location are logged."""
    emit(task, context, alias, {each.uri: {**extra, "table": name} for name, sets in tables.items() for each in sets})
    if unnamed := [name for name, sets in tables.items() if not sets]:
        task.log.info("No asset event on %s: the script does not show where the data is", ", ".join(unnamed))


_PRODUCER = "urn:airflow-flinkcompat"
RUN_FACET = "flinkcompat"
"""The key of the run facet with the outcome of the deployment."""


@dataclass(frozen=True)
class RunLineage:
    """Lineage of a task so far: the side, facts about the run, and overridden locations of tables."""

    side: Side
    facts: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Sequence[Dataset]] = field(default_factory=dict)
    written: Mapping[str, Sequence[Dataset]] = field(default_factory=dict)


def operator_lineage(known: RunLineage | None, **more: Any) -> Any:
    try:
        from airflow.providers.common.compat.openlineage.facet import Dataset as NamedDataset
        from airflow.providers.common.compat.openlineage.facet import SQLJobFacet
        from airflow.providers.openlineage.extractors import OperatorLineage
    except ImportError:
        return None
    if known is None:
        return None
    from airflow_flinkcompat.plan import datasets
    from airflow_flinkcompat.secrets import mask_secrets
    from airflow_flinkcompat.secrets.programs import mask_program

    side = known.side
    sources = {**datasets.read(side.program), **known.read}
    sinks = {**datasets.written(side.program), **known.written}
    tables = _tables(side)
    columns = _columns(side)

    def named(uses: Mapping[str, Sequence[Dataset]], *, written: bool) -> list[Any]:
        return [
            NamedDataset(
                namespace=each.namespace,
                name=each.name,
                facets=_facets(tables.get(name), columns.get(name, {}) if written else {}, sources),
            )
            for name, sets in uses.items()
            for each in sets
        ]

    script = mask_secrets(side.script) if side.language == "sql" else mask_program(side.script, side.language)
    return OperatorLineage(
        inputs=named(sources, written=False),
        outputs=named(sinks, written=True),
        run_facets={RUN_FACET: _run_facet({**known.facts, **more})},
        job_facets={"sql": SQLJobFacet(query=script)},
    )


def _run_facet(facts: Mapping[str, Any]) -> Any:
    from airflow.providers.common.compat.openlineage.facet import RunFacet

    # Python's keywords cannot be field names.
    names = {"from": "range_from", "to": "range_to"}
    properties = {names.get(name, name): value for name, value in facts.items() if value is not None}
    return RunFacet(producer=_PRODUCER).with_additional_properties(**properties)


def _tables(side: Side) -> dict[str, Table]:
    return {table.name: table for table in side.program.tables}


def _columns(side: Side) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Source columns of each sink column, by sink, for all INSERTs."""
    from airflow_flinkcompat.plan.column_lineage import column_origins

    found: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for place, output in side.outputs[0].items():
        sink = side.program.pipelines[place].sink
        for column, origins in column_origins(sink, output).items():
            of_column = found.setdefault(sink.name, {}).setdefault(column, [])
            of_column.extend(each for each in origins if each not in of_column)
    return found


def _facets(
    table: Table | None,
    columns: Mapping[str, Iterable[tuple[str, str]]],
    sources: Mapping[str, Sequence[Dataset]],
) -> dict[str, Any]:
    from airflow.providers.common.compat.openlineage.facet import (
        ColumnLineageDatasetFacet,
        Fields,
        InputField,
        SchemaDatasetFacet,
        SchemaDatasetFacetFields,
    )

    facets: dict[str, Any] = {}
    if table is not None and table.columns:
        rows = [SchemaDatasetFacetFields(name=column.name, type=str(column.type)) for column in table.stored]
        facets["schema"] = SchemaDatasetFacet(fields=rows)
    inputs = {
        column: [
            InputField(namespace=each.namespace, name=each.name, field=name)
            for table_name, name in origins
            for each in sources.get(table_name, ())
        ]
        for column, origins in columns.items()
    }
    if origins := {
        column: Fields(inputFields=fields, transformationDescription="", transformationType="")
        for column, fields in inputs.items()
        if fields
    }:
        facets["columnLineage"] = ColumnLineageDatasetFacet(fields=origins)
    return facets
