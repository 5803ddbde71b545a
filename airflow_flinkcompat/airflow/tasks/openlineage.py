"""OpenLineage data of a deploy and a backfill, used only if Airflow's provider of it is installed.

Data sets have OpenLineage's own names (:mod:`~airflow_flinkcompat.plan.datasets`). A table whose place the script does
not state is left out, and so are its columns: an invented name would be another data set than anybody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.plan.datasets import Dataset
    from airflow_flinkcompat.plan.nodes import Table

_PRODUCER = "urn:airflow-flinkcompat"
RUN_FACET = "flinkcompat"
"""The key of the run facet with the outcome of the deployment."""


@dataclass(frozen=True)
class RunLineage:
    """Result of a task so far: a side, other places of its tables, and facts about the run."""

    side: Side
    facts: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Sequence[Dataset]] = field(default_factory=dict)
    written: Mapping[str, Sequence[Dataset]] = field(default_factory=dict)


def operator_lineage(known: RunLineage | None, **more: Any) -> Any:
    """The lineage of a task."""
    try:
        from airflow.providers.common.compat.openlineage.facet import Dataset as NamedDataset
        from airflow.providers.common.compat.openlineage.facet import SQLJobFacet
        from airflow.providers.openlineage.extractors import OperatorLineage
    except ImportError:
        return None
    if known is None:
        return None
    from airflow_flinkcompat.plan import datasets
    from airflow_flinkcompat.secrets import mask_program, mask_secrets

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

    # Words of Python are no names of fields.
    names = {"from": "range_from", "to": "range_to"}
    told = {names.get(name, name): value for name, value in facts.items() if value is not None}
    return RunFacet(producer=_PRODUCER).with_additional_properties(**told)


def _tables(side: Side) -> dict[str, Table]:
    return {table.name: table for table in side.program.tables}


def _columns(side: Side) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Columns read, by sink and column, of all INSERTs into that sink."""
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
    if told := {
        column: Fields(inputFields=fields, transformationDescription="", transformationType="")
        for column, fields in inputs.items()
        if fields
    }:
        facets["columnLineage"] = ColumnLineageDatasetFacet(fields=told)
    return facets
