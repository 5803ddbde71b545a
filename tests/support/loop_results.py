"""Results of the loops over stored bytes for data drawn from seeds: ``python -m tests.support.loop_results 0 60``.

Compiled loops and plain Python print the same lines.
"""

from __future__ import annotations

import hashlib
import random
import struct
import sys
from collections.abc import Callable, Iterator
from io import BytesIO

from airflow_flinkcompat.exec_graph.layout import Merges, NamedState, StateField, StateLayout, Stored
from airflow_flinkcompat.exec_graph.migration import OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.rewriting import as_it_is
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.migration.computed import EntryJoin
from airflow_flinkcompat.migration.entries import EntryUnion
from airflow_flinkcompat.migration.moving import NEEDED, NO_SLICES, OF_SLICES, OF_TIMERS
from airflow_flinkcompat.migration.runs import (
    EntrySum,
    Scatter,
    ValueMapping,
    counted_mapping,
    gathered_group,
    key_plan,
    rewritten,
    value_mapping,
)
from airflow_flinkcompat.migration.slices import StoredSlices
from airflow_flinkcompat.migration.uniting import ADD_COUNTS, COMPUTED, KEEP_FIRST, MERGE_ROWS, NOT_MERGED, ONLY_NEEDED
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.savepoint.batches import EntryForm, EntryPart, StoredColumn
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import Field, FieldForm, field_form, write_row
from airflow_flinkcompat.savepoint.compiled import COMPILED, hash_sum
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedFile, KeyedHeader, KeyedState, key_group
from airflow_flinkcompat.savepoint.metadata import KeyedForm, KeyGroups
from airflow_flinkcompat.savepoint.row_mapping import Converted, RowMapping, row_mapping
from airflow_flinkcompat.savepoint.runs import Runs
from airflow_flinkcompat.savepoint.serializers import Serializer
from airflow_flinkcompat.savepoint.store import StoredContent
from airflow_flinkcompat.state.summary import RunningNumbers
from dev.stored_rows import pack_entry, write_entries

GROUPS = 300
SHAPES = [
    ("row", KeyedStateKind.VALUE, 0),
    ("List<row>", KeyedStateKind.MAP, 0),
    ("List<row>", KeyedStateKind.LIST, 0),
    ("Tuple<row, Int>", KeyedStateKind.MAP, 4),
    ("List<Tuple<row, Boolean>>", KeyedStateKind.VALUE, 1),
]


class Drawn:
    """Rows, mappings and key groups drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def field(self, form: FieldForm) -> Field:
        number = self.random.randbytes
        if form is FieldForm.WORD:
            value = self.random.choice((0, 1, -1, 127, -128, 128, -(1 << 40), self.random.getrandbits(62)))
            return self.random.choice((Field(True, bytes(8)), Field(False, struct.pack("<q", value))))
        if form in (FieldForm.DECIMAL, FieldForm.TIMESTAMP):
            space = 16 if form is FieldForm.DECIMAL else 8
            return Field(self.random.random() < 0.3, struct.pack("<II", self.random.randrange(16), 0), number(space))
        size = self.random.randrange(20)
        if form is FieldForm.TEXT and size < 8:
            return Field(False, number(size).ljust(7, b"\0") + bytes([0x80 | size]))
        if self.random.random() < 0.3:
            return Field(True, bytes(8))
        content = number(size) if form is FieldForm.TEXT else self.array(size)
        return Field(False, struct.pack("<II", len(content), 0), content + bytes(-len(content) % 8))

    def array(self, count: int) -> bytes:
        """A stored array of TINYINT, some of them NULL."""
        return struct.pack("<I", count) + self.random.randbytes((count + 31) // 32 * 4 + count)

    def forms(self, most: int = 6) -> list[FieldForm]:
        return [self.random.choice(list(FieldForm)) for _ in range(self.random.randint(1, most))]

    def row(self, forms: list[FieldForm]) -> bytes:
        return write_row([self.field(form) for form in forms], self.random.randrange(4))

    def mapping(self, forms: list[FieldForm]) -> RowMapping:
        places = range(len(forms))
        if self.random.random() < 0.3:
            return row_mapping(forms, [*places, Field(False, bytes(8))])
        return row_mapping(forms, [self.new_field(forms) for _ in range(self.random.randint(1, 80))])

    def new_field(self, forms: list[FieldForm]) -> int | Field | Converted:
        place, kind = self.random.randrange(len(forms)), self.random.randrange(7)
        word = forms[place] is FieldForm.WORD
        if kind == 0:
            return self.field(self.random.choice(list(FieldForm)))
        if kind == 1:
            return Converted(place, instead_of_null=self.field(forms[place]))
        if kind == 2 and word:
            return Converted(place, null_if_zero=place)
        if kind == 3 and word:
            return Converted(place, widened=self.random.choice(((1, 2), (2, 4), (4, 8), (1, 8))))
        if kind == 4 and word:
            return Converted(place, to_decimal=True)
        return place

    def value(self, forms: list[FieldForm], kind: KeyedStateKind, form: str, trailing: int, stamp: bool) -> bytes:
        counted = form.startswith("List") and kind is not KeyedStateKind.LIST
        count = self.random.randint(1, 4) if form.startswith("List") else 1
        rows = [self.row(forms) for _ in range(count)]
        parts = [struct.pack(">I", len(row)) + row + self.random.randbytes(trailing) for row in rows]
        content = (b"," if kind is KeyedStateKind.LIST else b"").join(parts)
        null = bytes([self.random.random() < 0.1]) if kind is KeyedStateKind.MAP else b""
        head = null + self.random.randbytes(8 * stamp)
        return head + (struct.pack(">I", count) if counted else b"") + content

    def group(self, value: Callable[[], bytes], timers: bool) -> tuple[int, bytes]:
        """The number and content of a key group; each key is a row in its group."""
        wanted, entries = self.random.randrange(GROUPS), list[Entry]()
        while len(entries) < 8:
            row = write_row([Field(False, struct.pack("<q", self.random.getrandbits(60)))])
            number = wanted if timers else key_group(row, GROUPS)
            if entries and number != wanted:
                continue
            wanted = number
            moment = self.random.randbytes(8) if timers else b""
            key = number.to_bytes(2, "big") + moment + struct.pack(">I", len(row)) + row + b"\0"
            entries.append(Entry(int(timers), key, b"" if timers else value()))
        return wanted, write_entries(entries)


def results(seed: int) -> Iterator[bytes]:
    """The results of all loops for one seed, and of some damaged contents."""
    drawn = Drawn(seed)
    forms = drawn.forms()
    mapping = drawn.mapping(forms)
    form, kind, trailing = drawn.random.choice(SHAPES)
    stamps = drawn.random.random() < 0.5, drawn.random.random() < 0.5
    row = drawn.row(forms)
    for content in (row, row[: drawn.random.randrange(len(row))]):
        yield tried(lambda content=content: mapping(content))  # type: ignore[misc]
    state = NamedState("state", kind, Stored(form))
    values = value_mapping(state, mapping, *stamps, 1_700_000_000_000)
    kept = value_mapping(state, row_mapping(forms, list(range(len(forms)))), *stamps)
    whole = value_mapping(state, row_mapping(forms, list(range(len(forms)))), False, False, flag=False)
    key = row_mapping([FieldForm.WORD], [Field(False, bytes(8)), 0])
    number, group = drawn.group(lambda: drawn.value(forms, kind, form, trailing, stamps[0]), False)
    damaged = bytearray(group)
    damaged[drawn.random.randrange(len(group))] ^= 1 << drawn.random.randrange(8)
    for content in (group, group[: drawn.random.randrange(len(group))], bytes(damaged)):
        yield tried(lambda content=content: b"".join(rewritten_group(content, values)))  # type: ignore[misc]
        yield tried(lambda content=content: scattered(content, key, values, False))  # type: ignore[misc]
        for in_groups in (True, False):
            summed = EntrySum(
                kept, whole, drawn.random.random() < 0.5, key_plan((2, 2), False, GROUPS, False), in_groups, None
            )
            yield tried(lambda content=content, summed=summed: sums(content, summed, number))  # type: ignore[misc]
        read = entry_form(state, forms, stamps[0])
        yield tried(lambda content=content, read=read: counted(content, read))  # type: ignore[misc]
        yield tried(lambda content=content, read=read: tabled(content, read))  # type: ignore[misc]
    _, timers = drawn.group(lambda: b"", True)
    yield tried(lambda: scattered(timers, key, None, True))
    yield from results_of_equal_keys(drawn)


MERGED = [
    *(StateField(type, merges=merges) for type in ("SMALLINT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(38, 2)")
      for merges in Merges),
    *(StateField(type, merges=merges) for type in ("VARCHAR(9)", "TIMESTAMP(9)", "INT")
      for merges in (Merges.LEAST, Merges.GREATEST)),
    StateField("BIGINT"), StateField("VARCHAR(9)"), StateField("ROW<`a` INT>"),
]  # fmt: skip


def results_of_equal_keys(drawn: Drawn) -> Iterator[bytes]:
    """The results of loops over scattered entries, some of which have equal keys."""
    choice, random = drawn.random.choice, drawn.random
    fields = tuple(choice(MERGED) for _ in range(random.randint(1, 6)))
    forms = [field_form(field.type) for field in fields]
    sums = NamedState("sums", KeyedStateKind.VALUE, Stored("row", fields), time_to_live=random.random() < 0.5)
    map_key = Stored("row", fields)
    counts = NamedState("counts", KeyedStateKind.MAP, Stored("Tuple<Int, Int>"), map_key=map_key)
    rows = [drawn.row(forms) for _ in range(3)]

    def sized(row: bytes) -> bytes:
        return struct.pack(">I", len(row)) + row

    def entry() -> Entry:
        state, end = random.randrange(3), 1000 * random.randrange(-3, 9)
        key = b"\0\1" + sized(choice(rows)) + struct.pack(">q", end)
        if state == 0:
            value = random.randbytes(8 * sums.time_to_live) + sized(choice((choice(rows), drawn.row(forms))))
        elif state == 1:
            key = key[:-8] + b"\0" + sized(choice((choice(rows), drawn.row(forms))))
            value = b"\0" + struct.pack(">II", random.randrange(9), random.randrange(2))
        else:
            value, key = b"", b"\0\1" + struct.pack(">Q", end - 1 + (1 << 63)) + key[2:]
        marks = choice((0, NEEDED)) if state == 2 else choice((0, COMPUTED))
        return Entry(state | marks, key, value)

    entries: list[Entry] = [entry() for _ in range(12)]
    content = b"".join(map(pack_entry, entries))
    merged, kept = [(MERGE_ROWS, sums), (ADD_COUNTS, counts)], [(NOT_MERGED, sums), (KEEP_FIRST, counts)]
    timers = choice((KEEP_FIRST, ONLY_NEEDED))
    union = EntryUnion.of([*merged, (timers, None), *choice((merged, kept)), (timers, None)])
    yield tried(lambda: union(content))
    rewrites = (as_it_is(sums, sums), as_it_is(counts, choice((None, counts))))
    spec = StateSpec(StateKind.OPERATOR, "aggregate", "id", StateLayout(fields, (sums, counts)))
    made = OperatorMigration(RestoreEffect.REWRITTEN, spec, spec, "", states=rewrites, from_history=True)
    none = Serializer("", (), (), b"")
    states = tuple(KeyedState(each.name, each.kind, None, none) for each in (sums, counts))
    header = KeyedHeader(False, none, (*states, KeyedState("timers", KeyedStateKind.TIMERS, None, none)), b"")
    join = EntryJoin(made, header, 2)
    alone = list({(each.state, each.key): each._replace(state=each.state & ~NEEDED) for each in entries}.values())
    yield tried(lambda: join(b"".join(map(pack_entry, alone)))) + repr(join.differences.unknown).encode()
    yield repr((join.differences.compared, join.differences.added, join.differences.other)).encode()
    windows = choice((SlicedWindow(WindowKind.TUMBLE, 4000, 4000), SlicedWindow(WindowKind.CUMULATE, 4000, 2000)))
    slices = StoredSlices(windows, random.randrange(-3000, 3000))
    key = row_mapping(forms, list(range(len(forms))))
    for number, (kind, mapping) in enumerate(
        ((OF_SLICES, None), (NO_SLICES, counted_mapping(counts, key, False)), (OF_TIMERS, None))
    ):
        group = write_entries([each._replace(state=number) for each in entries if each.state & 3 == number])
        yield tried(lambda group=group, kind=kind, mapping=mapping: sliced(group, key, mapping, slices.plan(kind, 2)))  # type: ignore[misc]


def sliced(group: bytes, key: RowMapping, values: ValueMapping | None, slices: list[int]) -> bytes:
    scatter, runs = Scatter((2, 2), GROUPS, key), Runs(group)
    timers = bool(slices[0] == OF_TIMERS)
    found = [each for _ in runs for each in scatter.run(runs, timers, 1, values, slices)]
    return b"".join(bytes([number & 255]) + content for number, content in (*found, *scatter.blocks()))


def tried(work: Callable[[], bytes]) -> bytes:
    try:
        return work()
    except (SavepointUnreadable, NotMigratable, UnicodeDecodeError) as error:
        return str(error).encode()


def rewritten_group(group: bytes, values: ValueMapping) -> Iterator[bytes]:
    runs = Runs(group)
    for _ in runs:
        yield from rewritten(runs, values)


def scattered(group: bytes, key: RowMapping, values: ValueMapping | None, timers: bool) -> bytes:
    scatter, runs = Scatter((2, 1), 100, key), Runs(group)
    found = [each for _ in runs for each in scatter.run(runs, timers, 1, values)]
    found += scatter.blocks()
    counts = [0, 0]
    return (
        b"".join(bytes([number]) + gathered_group(content, counts) for number, content in found) + repr(counts).encode()
    )


TYPES = dict(zip(FieldForm, ("BIGINT", "BYTES", "DECIMAL(38, 2)", "TIMESTAMP(9)", "ARRAY<TINYINT>"), strict=True))


def entry_form(state: NamedState, forms: list[FieldForm], stamp: bool) -> EntryForm:
    """The form of the entries of a state whose key is a row with one number."""
    columns = [StoredColumn(f"f{place}", TYPES[form], EntryPart.VALUE, place) for place, form in enumerate(forms)]
    columns += [StoredColumn("stamp", "TIMESTAMP(3)", EntryPart.STAMP)] if stamp else []
    columns += [
        StoredColumn("key", "BIGINT", EntryPart.KEY),
        StoredColumn("trailing", "BYTES", EntryPart.WHOLE),
        StoredColumn("position", "BIGINT", EntryPart.POSITION),
    ]
    return EntryForm(
        0, 2, tuple(columns), (1, 0, len(forms)), flag=state.kind is KeyedStateKind.MAP, stamp=stamp,
        rows=state.framing, trailing=state.trailing,
    )  # fmt: skip


def counted(group: bytes, form: EntryForm) -> bytes:
    """The numbers of a key group as ``state show`` counts them."""
    numbers, runs = RunningNumbers(form), Runs(group)
    for _ in runs:
        numbers.add(runs, *runs.skip())
    return repr((numbers.entries, numbers.bytes, numbers.keys, numbers.span(2, 3))).encode()


def tabled(group: bytes, form: EntryForm) -> bytes:
    """The rows of a key group as ``state sql`` reads them."""
    header = KeyedHeader(False, Serializer("", (), (), b""), (), b"")
    groups = KeyGroups(KeyedForm.SAVEPOINT_KEY_GROUPS, 0, (1,), None)
    file = KeyedFile(header, groups, StoredContent("file", 1 + len(group), BytesIO(b"x" + group)))
    return b"".join(batch.serialize().to_pybytes() for batch in form.batches(file, (0,)))


def sums(group: bytes, summed: EntrySum, number: int) -> bytes:
    runs, total = Runs(group), hash_sum()
    found = [summed.add(runs, number, total) for _ in runs]
    return repr(([tuple(map(int, each)) for each in found], [int(each) for each in total])).encode()


if __name__ == "__main__":
    for place in range(int(sys.argv[1]), int(sys.argv[2])):
        print(place, *(hashlib.sha256(each).hexdigest()[:12] for each in results(place)))
    print("compiled" if COMPILED else "plain", file=sys.stderr)
