"""The pairs to run, and the lines of Flink on which they are run.

Pairs over files are SQL files, one for each area, in sections as ``airflow_flinkcompat/testing/fixture_cases.py`` reads
them. A file begins with ``-- area: several INSERTs``, perhaps ``--- given`` (the beginning of both sides), then cases::

    --- case: step-halved
    -- about: what changes, in words
    -- settings-old: key=value     a setting of one side's session, one a line (optional; also settings-new)
    -- rows-before: 3              the old SQL has printed at least so many rows before its savepoint (optional)
    -- on-this-data: why           what restores right here goes wrong on other rows (optional)
    -- flink: 2.3                  the only line that plans it (optional)
    --- old
    --- new

A side ends in the statement that makes the job: INSERT, EXECUTE STATEMENT SET, or a bare query, which gets a print sink
of its own schema. ``file://DATA/<name>`` in a path is the folder ``dev/measure/data/<name>``: ``before.csv``,
``after.csv``, and, where several subtasks read, ``before.filler.csv`` and ``after.filler.csv``: rows without weight
that come until every subtask has read one. (A subtask without rows holds the watermark back; an idle one makes others
lose rows.) A side that begins with a line ``#!python`` is a PyFlink program: it follows :data:`PROGRAM_HEAD` and each
statement of ``--- given``, executed. Files with programs are called ``*.pairs``.

Pairs over connectors are TOML files (:data:`CONNECTORS`, :data:`LAKES`). A family is a table with

* ``area``, ``about``: what it measures, in words
* ``given``: the beginning of both sides, ``database``: the beginning of its PostgreSQL or lake (optional)
* ``line``: the line of Flink that plans it, if that is another than 2.3
* ``shapes``: queries by name, after ``given``
* ``cases``: by name, a table with ``change``: texts of the old side and their replacements on the new one, and
  optionally ``about``, ``both`` (the same for both sides), ``shapes`` (only these), ``parallelism`` (1 by default; 2
  reads two partitions), ``settings`` (of the new side), ``rows_before``, ``reference`` (texts of the new side and their
  replacements in the script that is run from scratch), ``elsewhere`` (the new side reads other rows than the old one),
  ``caveat`` (why it is right on these rows only)

A pair is called ``<family>-<shape>-<case>``, with ``-p2`` after it at parallelism 2.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_flinkcompat.planner.installation import RELEASES, home
from airflow_flinkcompat.testing import fixture_cases
from airflow_flinkcompat.testing.fixture_cases import FixtureError, FixtureSection
from dev.measure import measured

FOLDER = Path(__file__).parent / "pairs"
CACHE = Path(__file__).parents[2] / ".measure"
"""In the checkout, ignored by git: what the last runs left behind."""
VERSIONS = {line: RELEASES[line] for line in ("2.3", "1.20")}
"""Release by line, for the lines that run every pair; all other :data:`RELEASES` run the base set."""
PROGRAMS = Path(__file__).parents[2] / "tests" / "fixtures" / "table_api" / "restores"
"""Folder of pairs with a PyFlink program; they need PyFlink, and run only on its version."""
UPGRADES = Path(__file__).parent / "upgrades"
"""Pairs that go from one line of Flink to another: scripts that stay as they are, and near changes."""
BASE = Path(__file__).parent / "base.toml"
"""Ids of the pairs that are run on every line, by what they change."""
PROGRAM_HEAD = """\
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import UNBOUNDED_RANGE, UNBOUNDED_ROW, col, lit, row_interval
from pyflink.table.window import Over, Session, Slide, Tumble

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
"""
_PYTHON = "#!python\n"
_ELSEWHERE = (
    (re.compile(r"'connector'='filesystem','path'='file:///data(/MyTable)?'"),
     "'connector' = 'filesystem', 'path' = 'file://DATA/orders'"),
    (re.compile(r"'connector'='print'"), "'connector' = 'print'"),
    (re.compile(r",'print-identifier'='tag'"), ""),
)  # fmt: skip
"""Paths and addresses in scripts of ``tests/fixtures/measured``, and their replacements for a new run."""
_CASE_HEADERS = frozenset({"about", "settings-old", "settings-new", "rows-before", "on-this-data", "flink"})
_TITLE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
CONNECTORS = FOLDER / "connectors.toml"
"""Pairs over Kafka and PostgreSQL."""
LAKES = FOLDER / "lakes.toml"
"""Pairs over tables of Iceberg, Paimon, Hudi and Doris."""
_TWO_PARTITIONS = {"'topic' = 'orders'": "'topic' = 'busy'", "file://DATA/orders": "file://DATA/busy"}
_CONNECTOR_CASE = frozenset(
    {"about", "change", "both", "shapes", "parallelism", "settings", "rows_before", "reference", "elsewhere", "caveat"}
)


@dataclass(frozen=True)
class Side:
    """A script with its session settings; ``rows_before`` rows are printed before the savepoint.

    ``language`` is ``sql``, or ``python`` for a program; ``database`` makes the tables of the database beside it.
    """

    script: str
    settings: tuple[tuple[str, str], ...] = ()
    rows_before: int = 0
    language: str = "sql"
    database: str = ""


@dataclass(frozen=True)
class Pair:
    """One change; ``caveat`` says why it is right on these rows only, "" where it is right or not at all.

    ``line`` is the only line of Flink that plans it, "" where both do. ``reference`` is what is run from scratch in
    place of the new side, ``elsewhere`` says that this reads other rows than the old one, so that all of it counts.
    """

    id: str
    area: str
    about: str
    old: Side
    new: Side
    caveat: str = ""
    line: str = ""
    reference: Side | None = None
    elsewhere: bool = False


def load_pairs(line: str, only: str = "", folder: Path = FOLDER) -> list[Pair]:
    """Pairs over files on a line of Flink, by id. Raises FixtureError, also if no id matches ``only``."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".sql", ".pairs"))
    pairs = [pair for path in files for pair in parse_pairs(path.read_text("utf-8"), path.name)]
    found = [pair for pair in pairs if re.search(only, pair.id) and pair.line in ("", line)]
    if not found:
        raise FixtureError(f"{folder}: contains no pair{f' that matches {only!r}' if only else ''}")
    return found


def load_base(line: str, only: str = "") -> list[Pair]:
    """Pairs of the base set, by id, in their order. Raises FixtureError, also if no id matches ``only``."""
    written = {pair.id: pair for pair in load_pairs(line)}
    base: dict[str, list[str]] = tomllib.loads(BASE.read_text("utf-8"))
    wide = measured.load(measured.WIDE, only={name for ids in base.values() for name in ids})
    restores = {restore.id: restore for restore in (*measured.narrow(), *wide)}
    found = []
    for kind, ids in base.items():
        for name in filter(re.compile(only).search, ids):
            if name not in written and name not in restores:
                raise FixtureError(f"{BASE.name}: {name} is neither a pair nor a restore of tests/fixtures/measured")
            found.append(written.get(name) or measured_again(restores[name], kind))
    if not found:
        raise FixtureError(f"{BASE.name}: contains no pair that matches {only!r}")
    return found


def measured_again(restore: measured.Restore, area: str) -> Pair:
    """A restore that was measured elsewhere, over the rows of ``dev/measure/data``."""
    old, new = (
        Side(_here(script), tuple(sorted(settings.items())))
        for script, settings in ((restore.old, restore.settings_old), (restore.new, restore.settings_new))
    )
    return Pair(restore.id, area, "as it was measured elsewhere", old, new)


def parse_pairs(text: str, file: str) -> list[Pair]:
    """The pairs of one file; ids are ``<file>-<case>``. Raises FixtureError on anything malformed."""
    head, given, cases = fixture_cases.read(text, file)
    _, area = fixture_cases.required(fixture_cases.headers(head, {"area"}, file), "area", head, file)
    return [_pair(*case, given=given, area=area, file=file) for case in cases]


def _pair(head: FixtureSection, old: FixtureSection, new: FixtureSection, *, given: str, area: str, file: str) -> Pair:
    if not _TITLE.fullmatch(head.title):
        raise FixtureError.at(file, head.line, f"a case is titled like step-halved, not {head.title!r}")
    found = fixture_cases.headers(head, _CASE_HEADERS, file, {"settings-old", "settings-new"})
    line, rows = found.get("rows-before", [(head.line, "0")])[0]
    if not rows.isdecimal():
        raise FixtureError.at(file, line, f"rows-before is {rows!r}, not a number")
    sides = [
        _side(given, section.text, tuple(sorted(fixture_cases.settings(found, key, file).items())), printed)
        for section, key, printed in ((old, "settings-old", int(rows)), (new, "settings-new", 0))
    ]
    return Pair(
        id=f"{Path(file).stem}-{head.title}",
        area=area,
        about=fixture_cases.required(found, "about", head, file)[1],
        old=sides[0],
        new=sides[1],
        caveat=found.get("on-this-data", [(0, "")])[0][1],
        line=found.get("flink", [(0, "")])[0][1],
    )


def _side(given: str, text: str, settings: tuple[tuple[str, str], ...], printed: int) -> Side:
    if not text.startswith(_PYTHON):
        return Side(given + text, settings, printed)
    statements = [each.strip() for each in given.split(";\n") if each.strip()]
    declared = "".join(f't_env.execute_sql("""\n{each}\n""")\n' for each in statements)
    return Side(PROGRAM_HEAD + declared + text.removeprefix(_PYTHON), settings, printed, "python")


def _here(script: str) -> str:
    for elsewhere, here in _ELSEWHERE:
        script = elsewhere.sub(here, script)
    return script


def load_connector_pairs(only: str = "", file: Path = CONNECTORS) -> list[Pair]:
    """Pairs over connectors whose id matches ``only``. Raises FixtureError, also if there is none."""
    try:
        families: Mapping[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise FixtureError(f"{file.name}: {error}") from None
    pairs = [pair for name, family in families.items() for pair in _connector_pairs(name, family)]
    found = [pair for pair in pairs if re.search(only, pair.id)]
    if not found:
        raise FixtureError(f"{file}: contains no pair{f' that matches {only!r}' if only else ''}")
    return found


def _connector_pairs(name: str, family: Mapping[str, Any]) -> Iterator[Pair]:
    for title, case in family["cases"].items():
        if unknown := case.keys() - _CONNECTOR_CASE:
            raise FixtureError(f"{name}-{title}: {', '.join(sorted(unknown))} is not a key of a case")
        for shape in case.get("shapes", family["shapes"]):
            for parallelism in case.get("parallelism", [1]):
                suffix = f"-p{parallelism}" if parallelism > 1 else ""
                yield _connector_pair(f"{name}-{shape}-{title}{suffix}", family, shape, case, parallelism)


def _connector_pair(id: str, family: Mapping[str, Any], shape: str, case: Mapping[str, Any], parallelism: int) -> Pair:
    if shape not in family["shapes"]:
        raise FixtureError(f"{id}: the family has no shape {shape}")
    script = family["given"] + family["shapes"][shape]
    if parallelism > 1:
        script = _replaced(script, _TWO_PARTITIONS, "", lenient=True)
    old = _replaced(script, case.get("both", {}), id)
    new = _replaced(old, case.get("change", {}), id)
    settings = {"parallelism.default": str(parallelism)} if parallelism > 1 else {}
    changed = settings | case.get("settings", {})
    database = family.get("database", "")
    reference = case.get("reference")
    before = Side(old, tuple(settings.items()), case.get("rows_before", 0), database=database)
    after = Side(new, tuple(changed.items()), database=database)
    from_scratch = Side(_replaced(new, reference, id), after.settings, database=database) if reference else None
    changes = "; ".join(f"{old} → {new or 'nothing'}" for old, new in case.get("change", {}).items())
    return Pair(
        id,
        family["area"],
        case.get("about", changes or "nothing"),
        before,
        after,
        caveat=case.get("caveat", ""),
        line=family.get("line", "2.3"),
        reference=from_scratch,
        elsewhere=case.get("elsewhere", False),
    )


def _replaced(script: str, texts: Mapping[str, str], id: str, lenient: bool = False) -> str:
    for old, new in texts.items():
        if old not in script and not lenient:
            raise FixtureError(f"{id}: the script does not contain {old!r}")
        script = script.replace(old, new)
    return script


__all__ = ["CACHE", "RELEASES", "VERSIONS", "home"]
