"""Savepoints of any size, generated from the headers and values of a savepoint of a real Flink."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from upath import UPath

from airflow_flinkcompat.exec_graph.from_savepoint import layout_of
from airflow_flinkcompat.exec_graph.layout import NamedState
from airflow_flinkcompat.migration.entries import StoredKey
from airflow_flinkcompat.migration.workers import Spill
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, write_int
from airflow_flinkcompat.savepoint.binary_row import Field, FieldForm, field_form, read_row, write_row
from airflow_flinkcompat.savepoint.keyed_state import (
    KeyedFileWriter,
    KeyedHeader,
    group_ranges,
    key_group,
    keyed_headers,
    open_keyed,
    prefix_length,
    read_entries,
)
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState
from airflow_flinkcompat.savepoint.store import read_metadata
from dev.stored_rows import StoredRow, stored_rows, write_rows

_HELD = 64 << 20
_MARK = b"\x01MARKED\x02\x03\x04"  # stands for the number of a key, ten digits


@dataclass(frozen=True)
class _Model:
    """A key of the real savepoint, split around a number, and all its stored values."""

    before: bytes
    after: bytes
    number: bool
    entries: tuple[tuple[int, StoredKey, bytes], ...]

    def row(self, key: int) -> bytes:
        return self.before + (struct.pack("<q", key) if self.number else b"%010d" % key) + self.after


def generate(
    source: Path, keys: int, folder: Path, groups: int | None = None, text: int | None = None, alike: int = 1
) -> Path:
    """Copy a savepoint with a given number of keys, and optionally of key groups and text lengths.

    ``alike``: number of keys that differ in more than their first field only.
    """
    folder.mkdir(parents=True)
    old = read_metadata(str(source))
    operators = tuple(
        _enlarged(
            replace(each, max_parallelism=groups or each.max_parallelism), each, source, keys, folder, text, alike
        )
        for each in old.operators
    )
    (folder / "_metadata").write_bytes(replace(old, operators=operators).to_bytes())
    return folder


def _enlarged(
    new: OperatorState, old: OperatorState, source: Path, keys: int, folder: Path, text: int | None, alike: int
) -> OperatorState:
    stored = [each.keyed for each in old.subtasks or () if each.keyed is not None]
    if not stored:
        return new
    by_row: dict[bytes, list[tuple[int, StoredKey, bytes]]] = {}
    for keyed in stored:
        with open_keyed(keyed, str(source)) as file:
            header = file.header.with_compression(False)
            by_name = {state.name: state for state in layout_of(header).states}
            stated = {number: by_name.get(state.name) for number, state in enumerate(header.states)}
            timers = [state.kind is KeyedStateKind.TIMERS for state in header.states]
            for _, group in file.groups():
                for state, key, value in read_entries(group):
                    parts = StoredKey.read(key[prefix_length(old.max_parallelism) :], timers[state])
                    value = value if text is None or timers[state] else _with_texts(value, stated[state], text)
                    by_row.setdefault(parts.row, []).append((state, parts, value))
    models = [_model(row, header, tuple(entries)) for row, entries in by_row.items()]
    written = _written(models, header, new, keys, folder, alike)
    return replace(new, subtasks=tuple(replace(each, keyed=written[each.index]) for each in new.subtasks or ()))


def with_key(source: Path, key: Path, folder: Path) -> Path:
    """Copy a savepoint with the key of another one in its headers, as a template of a job with other keys."""
    folder.mkdir(parents=True)
    headers = (header for each in read_metadata(str(key)).operators for header in keyed_headers(each, str(key)))
    of_key = next(headers).key

    def changed(operator: OperatorState) -> OperatorState:
        for header in keyed_headers(operator, str(source)):
            stored = header.stored.replace(header.key.stored, of_key.stored)
            groups = range(operator.max_parallelism)
            with KeyedFileWriter(UPath(folder), replace(header, key=of_key, stored=stored), groups) as writer:
                keyed = writer.finish()
            subtasks = tuple(replace(each, keyed=keyed) for each in operator.subtasks or ())
            return replace(operator, subtasks=subtasks)
        return operator

    old = read_metadata(str(source))
    (folder / "_metadata").write_bytes(replace(old, operators=tuple(map(changed, old.operators))).to_bytes())
    return folder


def _with_texts(value: bytes, state: NamedState | None, length: int) -> bytes:
    if state is None or not state.framing:
        return value
    head = state.content_begin
    forms = [field_form(field.type) for field in state.value.fields]
    text = Field(False, struct.pack("<II", length, 0), b"x" * length + bytes(-length % 8))
    rows = []
    for row, beside in stored_rows(value[head:], state):
        fields = zip(forms, read_row(row, forms), strict=True)
        longer = write_row([text if form is FieldForm.TEXT else each for form, each in fields], row[0])
        rows.append(StoredRow(longer, beside))
    return value[:head] + write_rows(rows, state)


def _model(row: bytes, header: KeyedHeader, entries: tuple[tuple[int, StoredKey, bytes], ...]) -> _Model:
    forms = [field_form(type) for type in header.key.types]
    number = forms[0] is FieldForm.WORD
    mark = Field(False, _MARK[:8]) if number else Field(False, struct.pack("<II", 10, 0), _MARK.ljust(16, b"\0"))
    marked = write_row([mark, *read_row(row, forms)[1:]], row[0])
    before, after = marked.split(_MARK[: 8 if number else 10])
    return _Model(before, after, number, entries)


def _written(
    models: Sequence[_Model], header: KeyedHeader, operator: OperatorState, keys: int, folder: Path, alike: int
) -> Sequence[KeyGroups]:
    """Write entries in the order of key group and state, so that each run of entries can be concatenated."""
    width, prefix, states = operator.max_parallelism, prefix_length(operator.max_parallelism), len(header.states)
    last: dict[int, int] = {}
    held: dict[int, bytearray] = {}
    with Spill(range(width * states), folder) as spill:
        size = 0
        for key in range(keys):
            model = models[key % len(models)]
            row = model.row(key // alike)
            group = key_group(row, width)
            head = group.to_bytes(prefix, "big")
            middle = write_int(len(row)) + row
            for state, parts, value in model.entries:
                stored = head + parts.moment + middle + parts.rest
                entry = write_int(len(stored)) + stored + write_int(len(value)) + value
                run = group * states + state
                held.setdefault(run, bytearray()).extend(entry)
                last[run] = len(entry)
                size += len(entry)
            if size > _HELD:
                _keep(held, spill)
                size = 0
        _keep(held, spill)
        made = []
        for groups in group_ranges(width, operator.parallelism):
            with KeyedFileWriter(UPath(folder), header, groups) as writer:
                for group in groups:
                    writer.group(group, _runs(spill, group, states, last))
                made.append(writer.finish())
    return made


def _keep(held: dict[int, bytearray], spill: Spill) -> None:
    for run, content in held.items():
        spill.add(run, bytes(content))
    held.clear()


def _runs(spill: Spill, group: int, states: int, last: Mapping[int, int]) -> Iterator[bytes]:
    anything = False
    for run, content in spill.groups(range(group * states, (group + 1) * states)):
        at = len(content) - last[run] + 4
        yield (run % states).to_bytes(2, "big")
        yield content[:at] + bytes([content[at] | 0x80]) + content[at + 1 :]
        anything = True
    if anything:
        yield b"\xff\xff"


def entries_of(folder: Path) -> Counter[tuple[str, str, bytes, bytes]]:
    """Every entry of a savepoint: operator, state, key with its group, value."""
    found: Counter[tuple[str, str, bytes, bytes]] = Counter()
    for operator in read_metadata(str(folder)).operators:
        for subtask in operator.subtasks or ():
            if subtask.keyed is not None:
                with open_keyed(subtask.keyed, str(folder)) as file:
                    for _, group in file.groups():
                        for state, key, value in read_entries(group):
                            found[operator.id, file.header.states[state].name, key, value] += 1
    return found
