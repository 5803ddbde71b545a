"""What becomes of entries whose keys are one now, beside state that begins."""

from __future__ import annotations

import json

from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.migration.entries import entry_union, scattered_entries
from airflow_flinkcompat.migration.fields import begin
from airflow_flinkcompat.savepoint.binary_row import Field, field_form, read_row, write_row
from airflow_flinkcompat.savepoint.keyed_state import Entry, open_keyed
from airflow_flinkcompat.savepoint.store import read_metadata
from dev.measure.savepoint_fixtures import FOLDER, migration_of
from dev.stored_rows import StoredRow, pack_entry, stored_rows, write_rows


def test_a_distinct_count_may_begin_where_a_key_goes() -> None:
    """SUM(b) by a and d → SUM(b) and COUNT(DISTINCT d) by a: sums are added, and the map of values begins empty."""
    old = (FOLDER / "the-keys-of-a-group-aggregation-change-places" / "old.json").read_text("utf-8")
    plan = json.loads(old)
    exchange, aggregation = (next(e for e in plan["nodes"] if name in e["type"]) for name in ("exchange", "aggregate"))
    exchange["inputProperties"][0]["requiredDistribution"]["keys"] = [0]
    (total,) = aggregation["aggCalls"]
    count = {**total, "name": "EXPR$3", "syntax": "FUNCTION_STAR", "internalName": "$COUNT$1", "argList": [1]}
    aggregation["aggCalls"].append({**count, "distinct": True, "type": "BIGINT NOT NULL"})
    aggregation["aggCallNeedRetractions"].append(False)
    aggregation["grouping"] = [0]
    aggregation["outputType"] = "ROW<`a` VARCHAR(2147483647), `EXPR$2` BIGINT, `EXPR$3` BIGINT NOT NULL>"
    made = migration_of(old, json.dumps(plan))
    assert made.kept is MigrationExtent.PARTIAL
    (line,) = (each for each in made.operators if each.effect is RestoreEffect.REWRITTEN)
    (rows,) = (state for state in line.states if state.old is not None)
    begins = {state.new.name for state in line.states if state.old is None}
    sums = rows.new

    template = FOLDER / "a-distinct-count-goes-and-another-stays" / "template"
    (keyed,) = (e.keyed for o in read_metadata(str(template)).operators for e in o.subtasks or () if e.keyed)
    with open_keyed(keyed, str(template)) as file:
        header = file.header
    assert begins
    assert begins < {state.name for state in header.states}
    assert header.states[0].name == sums.name
    union = entry_union(line, header)
    assert union is not None

    forms = [field_form(field.type) for field in sums.value.fields]
    (place,) = (place for place, source in enumerate(rows.fields) if source is not None)

    def stored(number: int) -> bytes:
        row = [begin(field) for field in sums.value.fields]
        row[place] = Field(False, number.to_bytes(8, "little"))
        return write_rows([StoredRow(write_row(row))], sums)

    content = b"".join(pack_entry(Entry(0, b"key", stored(number))) for number in (3, 4))
    (entry,) = scattered_entries(union(content))
    ((row, _),) = stored_rows(entry.value, sums)
    assert read_row(row, forms)[place].word == (7).to_bytes(8, "little")
