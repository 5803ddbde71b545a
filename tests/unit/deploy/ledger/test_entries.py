"""The kinds of entries: every one comes back from JSON as it was, and holds what the stored ledger's entries say."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.deploy import Ledger, LedgerError
from airflow_flinkcompat.deploy.ledger.entries import (
    ENTRY_TYPES,
    SCHEMA,
    AdoptedEntry,
    BackfilledEntry,
    CheckedEntry,
    DeployedEntry,
    FailedEntry,
    FailedVersionEntry,
    JobStart,
    JobStop,
    JobVersion,
    LedgerEntry,
    MigratedEntry,
    MigratingEntry,
    Origin,
    OtherEntry,
    PlannedEntry,
    RehearsedEntry,
    Review,
    RolledBackEntry,
    RollingBackEntry,
    ShadowedEntry,
)
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.target import SnapshotStats, VertexState
from airflow_flinkcompat.model import ENGINES, FunctionDeclaration, JobSpec
from tests.unit.deploy.ledger.test_stored import FILES, SINCE, TORN, told

ROWS: dict[int, dict[str, Any]] = {n: json.loads(path.read_text("utf-8")) for n, path in FILES.items() if n != TORN}
JOB = JobSpec("INSERT INTO k SELECT a FROM s", {"a": "b"}, engine="flink", engine_version="2.3.0")

# ---------------------------------------------------------------------------------------------------- any entry at all
texts = st.text(max_size=6)
maybe = st.none() | texts
mappings = st.dictionaries(texts, texts, max_size=2)
numbers = st.integers(0, 10**6)
states = st.builds(
    SnapshotStats, texts, st.dictionaries(texts, st.builds(VertexState, texts, numbers, numbers), max_size=2),
    st.none() | numbers, st.none() | st.floats(0, 1e10),
)  # fmt: skip


@st.composite
def jobs(draw: st.DrawFn) -> JobSpec:
    language = draw(st.sampled_from(["sql", "python", "table"]))
    functions = st.lists(st.builds(FunctionDeclaration, texts, texts, texts, texts), max_size=2).map(tuple)
    return JobSpec(
        draw(st.text(min_size=1, max_size=6)),
        draw(mappings),
        draw(functions),
        draw(texts),
        draw(st.sampled_from(sorted(ENGINES))),
        draw(st.none() | st.just("2.3.0")),
        draw(texts),
        language,
        draw(mappings) if language != "sql" else {},
        draw(mappings) if language == "python" else {},
    )


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": numbers,
    "at": texts,
    "owner": texts,
    "message": texts,
    "passes_over": st.lists(numbers, max_size=2).map(tuple),
    "job": jobs(),
    "review": st.builds(Review, maybe, maybe, maybe, maybe, st.lists(mappings, max_size=2).map(tuple)),
    "origin": st.builds(Origin, maybe, maybe, maybe, maybe),
    "branch": maybe,
    "policy": maybe,
    "rehearsal": mappings,
    "shadow": mappings,
    "range_from": maybe,
    "range_to": maybe,
    "sinks": mappings,
    "counts": st.dictionaries(texts, numbers, max_size=2),
    "version": st.builds(JobVersion, texts, maybe, texts),
    "start": st.builds(JobStart, maybe, maybe, st.lists(mappings, max_size=2).map(tuple), maybe, maybe, maybe),
    "stop": st.builds(
        JobStop, texts, maybe, maybe, st.dictionaries(texts, numbers, max_size=2), maybe, maybe, st.none() | states,
        st.none() | numbers, maybe,
    ),
    "hand_over": st.none() | mappings,
    "claim_seconds": st.none() | st.floats(0, 1e6),
    "start_mode": maybe,
    "prepared": maybe,
    "evidence": st.lists(texts, max_size=2).map(tuple),
    "effective_settings": st.dictionaries(texts, mappings, max_size=2),
    "rolls_back_to": st.none() | numbers,
    "job_id": texts,
    "request_id": maybe,
    "savepoint": texts,
    "migrated_to": texts,
    "migration": mappings,
    "savepoint_before": maybe,
}  # fmt: skip
entries = st.sampled_from(ENTRY_TYPES).flatmap(
    lambda kind: st.builds(kind, **{each.name: VALUES[each.name] for each in fields(kind)})
)


@given(entry=entries)
def test_any_entry_of_any_kind_comes_back_from_json(entry: LedgerEntry) -> None:
    row = json.loads(json.dumps(entry.to_dict()))
    again = LedgerEntry.from_dict(row)
    assert (type(again), again) == (type(entry), entry)
    assert json.loads(json.dumps(again.to_dict())) == row
    # What the release before these types wrote, and reads.
    assert set(row) == {*ROWS[1], *SINCE} - {"mark", "checksum"}


def test_each_kind_has_one_type() -> None:
    kinds = [each.KIND for each in ENTRY_TYPES if each is not FailedVersionEntry]
    assert len(set(kinds)) == len(kinds) == 22
    assert set(kinds) == {row["kind"] for row in ROWS.values()} | {each.KIND for each in TYPES_SINCE}


def test_a_job_is_named_after_its_entry() -> None:
    entry = DeployedEntry(job=replace(JOB, source="orders.sql"), start=JobStart(), number=7)
    assert entry.job == replace(JOB, source="deployed #7")
    assert replace(entry, number=8).job.source == "deployed #8"


# ------------------------------------------------------------------------------------------- the stored ledger's fields
GROUPS = {
    "job": {*(each.name for each in fields(JobSpec)), "sha256"} - {"source"},
    "review": set(Review().to_dict()),
    "origin": set(Origin().to_dict()),
    "version": set(JobVersion().to_dict()),
    "start": set(JobStart().to_dict()),
    "stop": set(JobStop("j").to_dict()),
}
UNUSED = {
    FailedEntry: {"hand_over"},
    RollingBackEntry: {"review"},
    RolledBackEntry: {"review"},
    AdoptedEntry: {"review"},
}
"""Fields that no stored entry of that kind happens to use: what was deployed there was approved by nobody."""


TYPES_SINCE = {
    MigratingEntry,
    MigratedEntry,
    PlannedEntry,
    CheckedEntry,
    RehearsedEntry,
    ShadowedEntry,
    BackfilledEntry,
}
"""Types that were added since the stored ledger was written."""
FIELDS_SINCE = {"prepared", "origin"}
"""Groups of keys that were added since then, of whatever kind."""


def of_each_type() -> dict[type[LedgerEntry], list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in ROWS.values():
        found[type(LedgerEntry.from_dict(row))].append(told(row))
    return found


@pytest.mark.parametrize("kind", [each for each in ENTRY_TYPES if each not in TYPES_SINCE])
def test_a_kind_has_the_fields_that_its_stored_entries_use(kind: type[LedgerEntry]) -> None:
    shared = {each.name for each in fields(LedgerEntry)}
    own = {each.name: GROUPS.get(each.name, {each.name}) for each in fields(kind) if each.name not in shared}
    if "request_id" in own:
        own["request_id"] = {"trigger_id"}  # of a stop, and so stored beside that of a start
    used = {key for row in of_each_type()[kind] for key in row} - shared - {"kind", "schema"}
    if "job" not in own:
        used.discard("language")  # every entry says one
    assert used <= {key for keys in own.values() for key in keys}, "a field that it has not"
    assert {name for name, keys in own.items() if not keys & used} - FIELDS_SINCE == UNUSED.get(kind, set())


@pytest.mark.parametrize("number", ROWS)
def test_an_entry_says_what_its_file_does_also_in_that_order(number: int) -> None:
    entry = LedgerEntry.from_dict(ROWS[number])
    said = {key: json.dumps(value) for key, value in entry.to_dict().items()}
    assert said == {key: json.dumps(value) for key, value in SINCE.items()} | {
        key: json.dumps(value) for key, value in ROWS[number].items() if key not in ("mark", "checksum")
    }


@pytest.mark.parametrize("number", ROWS)
def test_an_absent_key_says_what_an_empty_one_does(number: int) -> None:
    whole = {key: value for key, value in ROWS[number].items() if key not in ("mark", "checksum")}
    assert LedgerEntry.from_dict({"number": number, **told(whole)}) == LedgerEntry.from_dict(whole)


# --------------------------------------------------------------------------------------- what a later release may write
LATER = {**{key: value for key, value in ROWS[33].items() if key not in ("mark", "checksum")}, "kind": "paused"}


def test_a_kind_that_a_later_release_adds_is_read_in_full() -> None:
    row = {**LATER, "until": {"at": ["noon"]}, "passes_over": [2, 3], "message": "until noon"}
    entry = LedgerEntry.from_dict(row)
    assert isinstance(entry, OtherEntry)
    assert (entry.kind, entry.number, entry.passes_over, entry.message) == ("paused", 33, (2, 3), "until noon")
    assert json.loads(json.dumps(entry.to_dict())) == {**SINCE, **row}
    assert json.loads(json.dumps(replace(entry, message="masked").to_dict()))["message"] == "masked"


def write(ledger: Ledger, rows: Iterable[dict[str, Any]]) -> None:
    Path(str(ledger.directory)).mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(rows, 1):
        (ledger.directory / f"{number:06d}.json").write_text(json.dumps({**row, "number": number, "mark": "ab"}))


def test_a_kind_that_a_later_release_adds_takes_no_part(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "orders")
    deployed = DeployedEntry(job=JOB, start=JobStart(job_id="j1"))
    write(ledger, [deployed.to_dict(), {**LATER, "until": "noon"}])
    head, later = ledger.entries()
    assert (ledger.head(), Progress.of((head, later))) == (head, Progress(head, (), 2))  # type: ignore[arg-type]
    assert later.to_dict()["until"] == "noon"
    assert "mark" not in later.to_dict()
    assert ledger.append(FailedVersionEntry(version=JobVersion())).number == 3


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"script": ""}, "it contains no job"),
        ({"engine": "spark"}, "engine 'spark' is unknown"),
        ({"functions": [{"kind": "scalar"}]}, "'name'"),
        ({"catalog": "CREATE TABLE t"}, "its sha256 does not match its job, so a later release of flinkcompat"),
    ],
)
def test_a_job_that_cannot_be_understood_is_told_and_never_passed_over(
    change: dict[str, Any], why: str, tmp_path: Path
) -> None:
    """What runs is not known then: an entry before it would be taken for what is in force."""
    ledger = Ledger(tmp_path, "orders")
    entry = DeployedEntry(job=JOB, start=JobStart(job_id="j1"))
    write(ledger, [entry.to_dict(), {**entry.to_dict(), "schema": SCHEMA, **change}])
    for read in (ledger.entries, ledger.head):
        with pytest.raises(LedgerError, match=r"000002\.json cannot be read: ") as refused:
            read()
        assert why in str(refused.value)


def test_a_job_below_the_head_may_be_one_that_only_an_earlier_release_took(tmp_path: Path) -> None:
    """It says nothing of what is in force, and is shown as it was stored."""
    ledger = Ledger(tmp_path, "orders")
    entry = DeployedEntry(job=JOB, start=JobStart(job_id="j1"))
    write(ledger, [{**entry.to_dict(), "engine": "vvr", "engine_version": "vvr-8.0.11"}, entry.to_dict()])
    old, head = ledger.entries()
    assert (type(old), old.kind, old.number) == (OtherEntry, "deployed", 1)
    assert old.to_dict()["engine_version"] == "vvr-8.0.11"
    assert ledger.head() == head
    assert isinstance(head, DeployedEntry)
    assert not old.is_head
