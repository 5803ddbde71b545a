"""Damaged savepoints: cut off, with flipped bits, false lengths and false offsets.

Every case follows from its seed and number. ``python -m tests.support.savepoint.damage SEED FIRST LAST FOLDER`` reads
each case with every reader, and prints one line for each result. A result is a correct read or a named error.
"""

from __future__ import annotations

import faulthandler
import random
import re
import resource
import shutil
import struct
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import cramjam

from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable, migrate_savepoint, verify
from airflow_flinkcompat.savepoint import keyed_state, store
from airflow_flinkcompat.savepoint.binary import DataReader, SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_state import END_OF_GROUP, LAST_OF_RUN, open_keyed
from airflow_flinkcompat.savepoint.metadata import Inline, KeyGroups, SavepointMetadata, StateFile
from airflow_flinkcompat.savepoint.store import METADATA, read_metadata
from airflow_flinkcompat.state import compare, open_savepoint, query, summarize
from dev.measure.savepoint_fixtures import CASES, NOW, change, migration_of
from dev.measure.savepoint_fixtures import FOLDER as MIGRATIONS
from tests.support.savepoint.savepoints import FOLDER, TAKEN

ERRORS = (SavepointUnreadable, NotMigratable, MigrationVerificationFailed)
SECONDS = 300
"""Seconds after which a case counts as a hang."""
MEBIBYTES = 3_000
"""Address space that a process may use for cases, in addition to what it uses before the first case."""
_EXTREMES = (0, 1, 4, 8, 0x7F, 0xFF, 0x7FFF_FFFC, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFC, 0xFFFF_FFFF)


@dataclass(frozen=True)
class Original:
    """A stored savepoint: its folder, a template, and a migration from its job."""

    folder: Path
    template: Path
    migration: Migration


@cache
def originals() -> tuple[Original, ...]:
    """Every stored savepoint with keyed state."""
    found = []
    for name in sorted(set(TAKEN) - {"2.3/files"}):
        plan = (FOLDER / name / "plan.json").read_text("utf-8")
        found.append(Original(FOLDER / name, FOLDER / name, migration_of(plan, plan)))
    found += [Original(MIGRATIONS / name / "old", MIGRATIONS / name / "template", change(name)) for name in CASES]
    return tuple(found)


def damage(seed: str, number: int, folder: Path) -> Original:
    """Write a damaged copy of a stored savepoint into a folder; returns the original."""
    chance = random.Random(f"{seed}/{number}")
    original = originals()[number % len(originals())]
    shutil.copytree(original.folder, folder)
    path = folder / METADATA
    if chance.random() < 0.1:
        content = bytearray(path.read_bytes())
        _change(chance, content, range(len(content)))
        path.write_bytes(content)
        return original
    metadata = read_metadata(str(folder))
    stored = [each.keyed for operator in metadata.operators for each in operator.subtasks or () if each.keyed]
    keyed = chance.choice(stored)
    begins, content = _damaged(chance, keyed, str(folder))
    made = replace(keyed, begins=begins, handle=Inline("damaged", content))
    if chance.random() < 0.3:
        (folder / "damaged").write_bytes(content)
        size = len(content) + chance.choice((0, 0, 0, 0, 1, -1))
        made = replace(keyed, begins=begins, handle=StateFile("damaged", size, relative=True))
    path.write_bytes(_replaced(metadata, keyed, made).to_bytes())
    return original


def _replaced(metadata: SavepointMetadata, old: KeyGroups, new: KeyGroups) -> SavepointMetadata:
    operators = tuple(
        replace(
            each,
            subtasks=each.subtasks
            and tuple(replace(one, keyed=new) if one.keyed is old else one for one in each.subtasks),
        )
        for each in metadata.operators
    )
    return replace(metadata, operators=operators)


def _damaged(chance: random.Random, keyed: KeyGroups, path: str) -> tuple[tuple[int, ...], bytes]:
    """Offsets and content of keyed state with one fault or several."""
    with open_keyed(keyed, path) as file:
        header, groups = file.header, dict(file.groups())
    compressed = header.compressed if chance.random() < 0.7 else not header.compressed
    head = bytearray(header.stored)
    head[4] = compressed
    place = chance.random()
    if place < 0.1 or not groups:
        _change(chance, head, range(len(head)))
    elif place < 0.8:
        number = chance.choice(sorted(groups))
        group = bytearray(groups[number])
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            _change(chance, group, _interesting(bytes(group)))
        groups[number] = bytes(group)
    content, begins = bytearray(head), [0] * len(keyed.begins)
    for number, group in sorted(groups.items()):
        begins[number - keyed.first] = len(content)
        content += bytes(cramjam.snappy.compress(group)) if compressed else group
    if 0.8 <= place < 0.9:
        at = chance.randrange(len(begins))
        others = (0, -1, 1, len(head), len(content) - 1, len(content), len(content) + 1, 1 << 62, -(1 << 63))
        begins[at] = chance.choice((*others, begins[at] + 1, begins[at] - 1, chance.choice(begins)))
    elif place >= 0.9:
        places = [begin + step for begin in begins if begin > 0 for step in (-1, 0, 1, 2, 6)]
        _change(chance, content, [each for each in places if 0 <= each < len(content)] or range(len(content)))
    return tuple(begins), bytes(content)


def _interesting(group: bytes) -> list[int]:
    """The offsets in a key group at which a number, a key, a row or a value begins or ends."""
    found = [0]
    at = 0
    while at + 2 <= len(group) and int.from_bytes(group[at : at + 2], "big") != END_OF_GROUP:
        at, last = at + 2, 0
        while not last and at + 5 <= len(group):
            end = at + 4 + int.from_bytes(group[at : at + 4], "big")
            last = group[at + 4] & LAST_OF_RUN
            after = end + 4 + int.from_bytes(group[end : end + 4], "big")
            found += [
                at,
                at + 4,
                at + 5,
                at + 6,
                at + 9,
                at + 17,
                end - 1,
                end,
                *range(end + 4, min(after, end + 60), 4),
            ]
            found += [after - 8, after - 4, after - 1]
            at = after
        found += [at]
    return [each for each in found if 0 <= each < len(group)]


def _change(chance: random.Random, content: bytearray, places: Sequence[int]) -> None:
    """Damage content at one of these places, or at any other one."""
    at = chance.choice(places) if places and chance.random() < 0.85 else chance.randrange(len(content) or 1)
    match chance.randrange(9):
        case 0:
            del content[at:]
        case 1 | 2:
            content[at : at + 1] = [content[at] ^ 1 << chance.randrange(8)] if at < len(content) else []
        case 3:
            content[at : at + 1] = [chance.choice((0, 1, 2, 0x7F, 0x80, 0x87, 0x88, 0xFF))]
        case 4 | 5:
            content[at : at + 4] = struct.pack(chance.choice("<>") + "I", chance.choice(_EXTREMES))
        case 6:
            words = chance.choice(_EXTREMES), chance.choice((*_EXTREMES, len(content), 24))
            content[at : at + 8] = struct.pack("<II", *words)
        case 7:
            content[at:at] = chance.randbytes(chance.choice((1, 4, 8, 100)))
        case _:
            del content[at : at + chance.choice((1, 2, 4, 8, 30))]


def readings(original: Original, folder: Path) -> dict[str, Callable[[], object]]:
    """The ways to read the damaged savepoint in a folder, by name."""
    damaged, undamaged = str(folder / "damaged"), str(original.folder)

    def show() -> None:
        for each in summarize(open_savepoint(damaged)):
            each.to_dict()

    def batches() -> None:
        for table in open_savepoint(damaged).tables:
            for batch in table.batches():
                batch.validate()

    def sql() -> None:
        savepoint = open_savepoint(damaged)
        for table in savepoint.tables:
            with query(savepoint, f'FROM "{table.name}"') as found:
                found.text(1000)

    def diff() -> None:
        compare(open_savepoint(damaged), open_savepoint(undamaged))

    def rewrite(source: str, template: str) -> None:
        target = folder / "target"
        shutil.rmtree(target, ignore_errors=True)
        migrate_savepoint(source, template, str(target), original.migration, NOW)

    return {
        "show": show,
        "batches": batches,
        "sql": sql,
        "rewrite": lambda: rewrite(damaged, str(original.template)),
        "template": lambda: rewrite(undamaged, damaged),
        "verify": lambda: verify(undamaged, damaged, original.migration),
        "verify itself": lambda: verify(damaged, damaged, original.migration),
        "diff": diff,
    }


def results(seed: str, first: int, last: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Read the cases of a seed: the number of each result, and one line for each other error.

    A result is a read, or an error that names a file. The ways to read take turns.
    """
    counts: Counter[str] = Counter()
    faults = []
    for number in range(first, last):
        case = folder / "case"
        shutil.rmtree(case, ignore_errors=True)
        case.mkdir(parents=True)
        original = damage(seed, number, case / "damaged")
        ways = list(readings(original, case).items())
        name, read = ways[number % len(ways)]
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            read()
            counts[f"{name}: read"] += 1
        except ERRORS as error:
            counts[f"{name}: {type(error).__name__}"] += 1
            if isinstance(error, SavepointUnreadable) and not re.match(f"{case}|{original.folder}", str(error)):
                faults.append(f"{number} {name}: no file in {error}")
        except Exception as error:
            (*_, place) = traceback.extract_tb(error.__traceback__)
            faults.append(f"{number} {name}: {type(error).__name__} in {place.filename}:{place.lineno}: {error}")
        finally:
            faulthandler.cancel_dump_traceback_later()
    return counts, faults


def _pass_known_objects(read: Callable[[DataReader], object]) -> Callable[[DataReader], object]:
    """Read each Java object once, and pass it by when it is met again."""
    ends: dict[bytes, int] = {}

    def passed(reader: DataReader) -> object:
        content, begin = reader.content[reader.at :], reader.at
        if content in ends:
            reader.at += ends[content]
            return None
        found = read(reader)
        ends[content] = reader.at - begin
        return found

    return passed


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[0])
    size = pages * resource.getpagesize() + (MEBIBYTES << 20)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


if __name__ == "__main__":
    originals()
    _limit_memory()
    seed_of_cases, first_case, last_case, folder_of_cases = sys.argv[1:]
    # Parsing of Java objects would take most of the time.
    with (
        patch.object(keyed_state, "read_header", cache(keyed_state.read_header)),
        patch.object(store, "read_object", _pass_known_objects(store.read_object)),
    ):
        found, others = results(seed_of_cases, int(first_case), int(last_case), Path(folder_of_cases))
    print(*(f"{count} {result}" for result, count in sorted(found.items())), *others, sep="\n")
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB", file=sys.stderr)
    sys.exit(int(bool(others)))
