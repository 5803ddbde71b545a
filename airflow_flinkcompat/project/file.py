"""Search for the project file, check of its keys, and the merged table of each deployment.

The format is TOML: Python parses TOML without another package, and syntax errors have line numbers. This module opens
only the project file, and no script, connection or ledger.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from glob import escape
from pathlib import Path
from typing import Any

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.job_options import CHECK_KEYS, FILLED_ELSEWHERE, KEYS, NETWORK
from airflow_flinkcompat.project.positions import TomlPositions

FILE_NAME = "flinkcompat.toml"
_PYPROJECT = "pyproject.toml"
PROJECT_FILES = (FILE_NAME, _PYPROJECT)
"""Possible names of a project file."""
_REPOSITORY = ".git"

_COMMON = tuple(key for key, each in KEYS.items() if not each.of_file)
"""Keys at the top of the file, which apply to all deployments."""
DEPLOYMENT_KEYS = (
    "script", *(key for key in _COMMON if key not in CHECK_KEYS), "flink_conn_id", "target", "plan_only",
    "plan_to", "approvers", "notifiers", "owner", "team", "tags", "default_args", "changed", "check", "approve",
    "deploy", "migrate", "rehearse", "start_mode", "shadow", "backfill", "backfill_sent", "warm_restart",
)  # fmt: skip
"""Keys of a deployment: the fields of ``airflow.operators.Deployment`` except its name."""
_TABLES = ("defaults", "deployments", "stopped", "upgrade")
_TOP = (*KEYS, *_TABLES)
_PLACED = re.compile(r"[\w+.-]+:|~|\{")
"""Beginning of a path that does not start from the file's folder: a URI, a home folder or a template."""
_AT = re.compile(r" \(at line (\d+), column (\d+)\)")
_TWICE = "is set twice, here and as check.{}; remove one"
_OF_WAIVERS = ("accept", "waiver", "waivers")
"""Wrong keys for waivers, which belong in a separate file next to the script."""


@dataclass(frozen=True)
class ProjectTables:
    """Tables of a project file, before their values are checked.

    Attributes:
        common: Options of all deployments: the top of the file, overridden by ``[defaults]``.
        deployments: The merged table of each usable deployment, by name; missing options are copied from ``common``.
        fail_on: The unchecked value of ``fail_on``; None if the file does not set it.
        problems: Faults that affect every deployment, one line each.
        broken: Faults of each unusable deployment, one line each, by deployment name.
        stopped: Texts about stopped jobs, by the names of their deleted deployments.
        filled_elsewhere: The unchecked value of ``placeholders_filled_elsewhere``.
        network: The unchecked value of ``planner_network``; None if the file does not set it.
        upgrade: The unchecked table ``[upgrade]``; None if the file has none.
    """

    path: Path
    positions: TomlPositions
    common: Mapping[str, Any]
    deployments: Mapping[str, Mapping[str, Any]]
    fail_on: Any = None
    problems: tuple[str, ...] = ()
    broken: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stopped: Mapping[str, Any] = field(default_factory=dict)
    filled_elsewhere: Any = False
    network: Any = None
    upgrade: Mapping[str, Any] | None = None


def find_project_file(start: Path) -> Path | None:
    """Find the nearest project file in a folder or its parents, up to the root of the Git repository.

    A ``pyproject.toml`` is a project file if it has a table ``[tool.flinkcompat]``. Raises InputError if a
    ``pyproject.toml`` cannot be read.
    """
    folder = start.resolve()
    if not folder.is_dir():
        folder = folder.parent
    for each in (folder, *folder.parents):
        if (each / FILE_NAME).is_file():
            return each / FILE_NAME
        if (each / _PYPROJECT).is_file() and _table_of(
            content_of(_text(each / _PYPROJECT), str(each / _PYPROJECT))
        ) is not None:
            return each / _PYPROJECT
        if (each / _REPOSITORY).exists():
            return None
    return None


_ALIKE = 0.65
"""Minimum similarity of a suggested key; a lower value suggests ``variables`` for ``parallelism``."""


def read_tables(path: str | os.PathLike[str]) -> ProjectTables:
    """Read the table of each deployment, which overrides ``[defaults]`` and the top of the file.

    An unusable deployment does not make other deployments unusable.
    """
    file = Path(path)
    found = tables_of(_text(file), file)
    if found is None:
        raise InputError(f"{file}: the table [tool.flinkcompat] is missing")
    return found


def tables_of(text: str, file: Path, called: str = "") -> ProjectTables | None:
    """Read the tables of a file's text; see :func:`read_tables`."""
    folder, is_pyproject = file.absolute().parent, file.name == _PYPROJECT
    file = Path(called) if called else file
    read = content_of(text, str(file))
    content = _table_of(read) if is_pyproject else read
    if content is None:
        return None
    positions = TomlPositions(str(file), text, "tool.flinkcompat" if is_pyproject else "")
    place = positions.place
    problems = [f"{place(key)}: {key}: {_unknown_at_top(key)}" for key in content if key not in _TOP]
    for key in _TABLES:
        if not isinstance(content.get(key, {}), Mapping):
            raise InputError(f"{place(key)}: {key}: a table is needed, [{key}]")
    top = {key: content[key] for key in _COMMON if key in content}
    defaults = content.get("defaults", {})
    problems += [f"{place(key)}: {key}: {_TWICE.format(key)}" for key in _in_and_out_of_check(top)]
    problems += [f"{place(key)}: defaults: {key}: {_TWICE.format(key)}" for key in _in_and_out_of_check(defaults)]
    common = _placed(folder, _over(_under_check(top), _under_check(defaults)))
    of_tasks = _over({"check": {NETWORK: content[NETWORK]}}, common) if NETWORK in content else common
    deployments: dict[str, Mapping[str, Any]] = {}
    broken: dict[str, tuple[str, ...]] = {}
    for name, table in content.get("deployments", {}).items():
        if not isinstance(table, Mapping):
            wrong = {"": f"a table is needed, [deployments.{name}]"}
        elif "name" in table:
            wrong = {"name": f"name: [deployments.{name}] already sets it; remove it"}
        else:
            wrong = {key: f"{key}: {_TWICE.format(key)}" for key in _in_and_out_of_check(table)}
            deployments[name] = _placed(folder, _over(of_tasks, _under_check(table)))
        if wrong:
            broken[name] = tuple(f"{place(key, name)}: deployment {name!r}: {line}" for key, line in wrong.items())
    deployments = {name: table for name, table in deployments.items() if name not in broken}
    return ProjectTables(
        file,
        positions,
        common,
        deployments,
        content.get("fail_on"),
        tuple(problems),
        broken,
        content.get("stopped", {}),
        content.get(FILLED_ELSEWHERE, False),
        content.get(NETWORK),
        content.get("upgrade"),
    )


def content_of(text: str, name: str) -> Mapping[str, Any]:
    """Parse the text of a TOML file. Raises InputError with the file's name if the text is not TOML."""
    if text.startswith("\ufeff"):
        raise InputError(
            f"{name}: begins with a byte order mark, which TOML does not allow; save it as UTF-8 without one"
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line, column = at.groups() if at else (text.count("\n") + 1, 1)  # an error at the document's end
        raise InputError(f"{name}:{line}:{column}: is not valid TOML: {_AT.sub('', str(error))}") from None


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Message about an unknown key, which suggests a similar known key or lists all known keys."""
    meant = [each for each in known if each.startswith(key)] or get_close_matches(key, known, 1, _ALIKE)
    return f"is unknown; did you mean {meant[0]}?" if meant else f"is unknown; choose from {', '.join(known)}"


def _unknown_at_top(key: str) -> str:
    if key in _OF_WAIVERS:
        return "is unknown here: waive findings with flinkcompat accept, which writes a file next to the script"
    return unknown_key(key, _TOP)


def flat_options(value: Any) -> Any:
    """Flatten nested tables: TOML parses the key ``table.exec.state.ttl`` as four nested tables."""
    return dict(_options(value)) if isinstance(value, Mapping) else value


def _options(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _options(item, f"{prefix}{key}.")
        else:
            text = str(item).lower() if isinstance(item, bool) else str(item) if isinstance(item, int | float) else item
            yield f"{prefix}{key}", text


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: the project file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: is not UTF-8 text; save it as UTF-8") from None


def _table_of(pyproject: Mapping[str, Any]) -> Mapping[str, Any] | None:
    tool = pyproject.get("tool")
    found = tool.get("flinkcompat") if isinstance(tool, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _in_and_out_of_check(table: Mapping[str, Any]) -> list[str]:
    check = table.get("check")
    return [key for key in CHECK_KEYS if key in table and isinstance(check, Mapping) and key in check]


def _placed(folder: Path, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve the paths of the ledger and the jars from the file's folder."""

    def placed(value: Any, folder: Path) -> Any:
        return value if not isinstance(value, str) or not value or _PLACED.match(value) else str(folder / value)

    check = table.get("check")
    if isinstance(check, Mapping) and isinstance(check.get("jars"), list):
        jars = [placed(each, Path(escape(str(folder)))) for each in check["jars"]]
        table = {**table, "check": {**check, "jars": jars}}
    return {**table, "ledger": placed(table["ledger"], folder)} if "ledger" in table else table


def _under_check(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Move the gate's keys into the table ``check``, which is the form of the DAG arguments."""
    moved = {key: table[key] for key in CHECK_KEYS if key in table}
    rest = {key: value for key, value in table.items() if key not in moved}
    check = rest.get("check", {})
    return {**rest, "check": {**check, **moved}} if moved and isinstance(check, Mapping) else rest


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables recursively; any other value of ``above`` replaces the value of ``below``."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _over(merged[key], value) if both else value
    return merged
