"""Reader of PyFlink programs as scripts of SQL statements. Programs are read as text, and never run.

A subset of Python is supported: constants, texts built from constants, calls of the program's own functions, conditions
and loops over known values, and modules next to the program. Reading stops at the first statement outside of this
subset, which is reported with its place. Steps, depth and text length are limited.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from airflow_flinkcompat.frontends import ProgramScript
from airflow_flinkcompat.frontends.pyflink.inputs import FILE_LIMIT, PROGRAM, Files, Loader, loader
from airflow_flinkcompat.frontends.pyflink.scopes import NameScope, ProgramEnded
from airflow_flinkcompat.frontends.pyflink.statements import Statements, parse
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.validation import RefusedByFlink
from airflow_flinkcompat.frontends.table_api.values import INPUT_BEGINS, INPUT_ENDS, Const, NotRead, TooMuch, Value
from airflow_flinkcompat.model import JobSpec, language_of
from airflow_flinkcompat.sql import Script, ScriptError

SIZE_LIMIT = 1_000_000
"""Maximum number of characters of a program."""
READINGS_LIMIT = 1_000
"""Maximum number of times that a program is read to find its files."""
HINT = "reading stops here: check the SQL of the job as a .sql script, by compiled plans or the planner"
"""Remedy for a program outside of the supported subset."""
_ROOT = ".git"
"""The folder that marks the root of a repository."""


def read(job: JobSpec, catalog: Script | None = None, decided: Mapping[str, bool] | None = None) -> ProgramScript:
    """Read a PyFlink program as a script, up to the first unsupported statement.

    ``catalog`` is not used, because a program declares its tables or only names them. ``decided``: the outcome of
    conditions on inputs, by the name of the condition. Raises ScriptError if the text is not Python, or is too long.
    """
    return parse_program(job.script, job.source, job.variables, job.files, decided)


def parse_program(
    text: str,
    source: str = "<program>",
    given: Mapping[str, str] | None = None,
    files: Mapping[str, str] | Loader | None = None,
    decided: Mapping[str, bool] | None = None,
) -> ProgramScript:
    """Read a PyFlink program as a script; ``given`` are its environment variables and arguments.

    ``files`` are the texts next to the program, by path from its folder: a mapping, or a function that returns None for
    a missing file. Raises :class:`~airflow_flinkcompat.sql.ScriptError` if the text is not Python, or is too long.
    """
    return read_program(text, source, given, files, decided)[0]


def read_program(
    text: str,
    source: str = "<program>",
    given: Mapping[str, str] | None = None,
    files: Mapping[str, str] | Loader | None = None,
    decided: Mapping[str, bool] | None = None,
) -> tuple[ProgramScript, Mapping[str, str]]:
    """Read a program like :func:`parse_program`. Also returns the texts that were read, by path."""
    text = text.removeprefix("\ufeff")
    if len(text) > SIZE_LIMIT:
        raise ScriptError(f"{source}: is longer than {SIZE_LIMIT} characters, the limit for a program")
    if INPUT_BEGINS in text or INPUT_ENDS in text:
        raise ScriptError(
            f"{source}: contains characters of Unicode's private use area, which mark inputs internally: remove them"
        )
    reader = _read(text, source, given or {}, loader(files), decided or {})
    opaque = _digest(reader) if reader.session.opaque else ""
    script = replace(reader.session.script(), undecided=tuple(reader.undecided), opaque=opaque)
    return script, reader.files.used


def _read(text: str, source: str, given: Mapping[str, str], load: Loader, decided: Mapping[str, bool]) -> Statements:
    module = parse(text, source)
    session = ScriptBuilder(source, text)
    session.trees[""] = module
    reader = Statements(session, given, Files(load), decided)
    name = source.replace("\\", "/").rpartition("/")[2] if source.endswith(".py") else "program.py"
    names: dict[str, Value] = {"__name__": Const("__main__"), "__file__": Const(f"{PROGRAM}/{name}")}
    try:
        reader.block(module.body, NameScope(names))
    except ProgramEnded:
        pass
    except RefusedByFlink as error:
        session.report(error.node or module, str(error), refused=True)
    except NotRead as error:
        reason = str(error)
        session.report(error.node or module, reason if "give --" in reason else f"{reason}; {HINT}")
    except TooMuch as error:
        session.report(reader.at, f"the program is not read further: {error}")
    except RecursionError:
        session.report(reader.at, "the program is not read further: it is nested too deeply")
    for node, said in reader.passed:
        if session.counts[:3] != said:
            session.report(
                node, "the program ignores an exception and then uses other tables: whether all of this ran is unknown"
            )
    for inserts in session.sets:
        if inserts.inserts and not session.unread:
            session.report(inserts.node, "this statement set is not executed in the part of the program that was read")
    return reader


def _digest(reader: Statements) -> str:
    """Digest of all source and files that were read, independent of layout."""
    trees = [(file, ast.dump(tree)) for file, tree in sorted(reader.session.trees.items())]
    others = sorted(reader.files.used.items() - reader.session.texts.items())
    return hashlib.sha256(repr((trees, others, sorted(reader.given.items()))).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class LocalFile:
    """The text of a file next to a program, and the path of the file."""

    path: Path
    text: str


def find_local_files(
    path: str | Path,
    text: str,
    given: Mapping[str, str],
    root: Path | None = None,
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, LocalFile]:
    """Find the files that a program imports or reads, by path from its folder; empty for SQL.

    Files are looked up in the folder of the program and at the root of its repository, or else in ``root``, which is a
    parent folder of the program. Files outside of these folders are never read, not even through a link. A file with a
    different text in each folder is omitted, because the text that the program reads depends on how the program is
    started. ``given`` are the variables of the program. ``elsewhere`` contains the texts of other files, by the path in
    the program.
    """
    if language_of(path) != "python":
        return {}
    folder = Path(path).resolve().parent
    fallback = folder if root is None else root.resolve()
    above = next((each for each in (folder, *folder.parents) if (each / _ROOT).exists()), fallback)
    places = dict.fromkeys((folder, above if folder.is_relative_to(above) else folder))
    found: dict[str, LocalFile] = {}

    def load(name: str) -> str | None:
        if name in elsewhere:
            return elsewhere[name]
        if name.startswith("/"):
            return None
        read = [each for place in places if (each := _read_file(place, name)) is not None]
        if len({each.text for each in read}) != 1:
            return None
        found[name] = read[0]
        return read[0].text

    try:
        used = _used(text, str(path), given, load)
    except ScriptError:
        return {}
    return {name: each for name, each in found.items() if name in used}


def _used(text: str, path: str, given: Mapping[str, str], load: Loader) -> set[str]:
    """The files that a program reads under any outcome of its conditions."""
    used: set[str] = set()
    pending: list[dict[str, bool]] = [{}]
    for _ in range(READINGS_LIMIT):
        if not pending:
            break
        decided = pending.pop()
        script, files = read_program(text, path, given, load, decided)
        used.update(files)
        if script.undecided:
            pending += [{**decided, script.undecided[0]: holds} for holds in (False, True)]
    return used


def local_texts(
    path: str | Path, text: str, given: Mapping[str, str], elsewhere: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The texts that :func:`find_local_files` finds, by path."""
    found = find_local_files(path, text, given, elsewhere=elsewhere or {})
    return {**{name: each.text for name, each in found.items()}, **(elsewhere or {})}


def _read_file(place: Path, name: str) -> LocalFile | None:
    try:
        file = (place / name).resolve(strict=True)
        if not file.is_relative_to(place) or not file.is_file() or file.stat().st_size > 4 * FILE_LIMIT:
            return None
        return LocalFile(file, file.read_bytes().decode())
    except (OSError, ValueError):
        return None
