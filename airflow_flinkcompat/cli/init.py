"""``flinkcompat init``: a project file with a deployment for each script."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from airflow_flinkcompat.compat.single_script import undeclared_tables
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.fleet.sides import holds_job, may_hold_job, side_of_script
from airflow_flinkcompat.model import ENGINES, InputError
from airflow_flinkcompat.project.file import FILE_NAME, find_project_file
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql import ScriptError

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_OUTSIDE_OF_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_NOT_NAMED = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that a path cannot contain: control characters, and surrogates of non-UTF-8 names."""
_LONGEST_NAME = 128
_NEVER_LOOKED_INTO = ("node_modules", "site-packages", "build", "dist")


@click.command("init")
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".")
def init_command(folder: Path) -> None:
    """Write flinkcompat.toml to FOLDER (default: here), with a deployment for each script below FOLDER.

    A script is a *.sql file that contains an INSERT, or a Table API program (*.py, *.table) whose queries can be read.
    Other files that create a TableEnvironment are listed as left out. Each deployment is named after its file. A file
    that declares tables that scripts lack becomes their catalog. Scripts do not show their engine, so both engines are
    judged until the project file sets one. An existing file is never overwritten.
    """
    path = folder / FILE_NAME
    there = find_project_file(folder)
    if path.exists() or (there is not None and there.parent == folder.resolve()):
        raise InputError(f"{there or path}: already exists; edit it, or remove it first")
    found = _looked_at(folder)
    for line in found.left_out:
        click.echo(f"left out: {mask_secrets(line)}", err=True)
    if not found.scripts:
        raise InputError(
            f"{folder}: no *.sql file in this folder contains a readable INSERT, and no program (*.py, *.table) "
            "contains a readable query: pass the folder of the scripts (flinkcompat init FOLDER)"
        )
    content = _content(named_scripts(found.scripts), found.catalogs).encode()
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise InputError(f"{path}: already exists; edit it, or remove it first") from None
    count = len(found.scripts)
    click.echo(f"{path}: {count} deployment{'' if count == 1 else 's'}")
    if not found.catalogs and found.rivals:
        click.echo(
            f"Several files declare the same tables: {', '.join(found.rivals)}. Put the declarations into one file, "
            "or set the files that each deployment needs (catalog = …)"
        )
    click.echo("Set the engine in this file, then run: flinkcompat lint, flinkcompat diff --against git:HEAD")


def named_scripts(paths: Iterable[str]) -> dict[str, str]:
    """Name each script's deployment after its file, and after its folders if two files have the same name."""
    every = sorted(paths)
    counts = Counter(Path(path).stem for path in every)
    found: dict[str, str] = {}
    for path in every:
        stem = Path(path).stem
        words = path.removesuffix(Path(path).suffix).replace("/", "-") if counts[stem] > 1 else stem
        base = _OUTSIDE_OF_NAMES.sub("-", words).strip("._-")[:_LONGEST_NAME] or "script"
        name = next(each for each in _numbered(base) if each not in found)
        found[name] = path
    return found


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base[: _LONGEST_NAME - 8]}-{number}"
        number += 1


@dataclass(frozen=True)
class _Found:
    """Scripts and catalogs below a folder, as relative paths.

    Attributes:
        declaring: Tables that each file without a job declares.
        undeclared: Tables that scripts use and do not declare.
    """

    scripts: tuple[str, ...]
    declaring: Mapping[str, frozenset[str]]
    undeclared: frozenset[str]
    left_out: tuple[str, ...]

    @property
    def catalogs(self) -> tuple[str, ...]:
        """Files with the missing declarations of scripts' tables; empty if two files declare the same table."""
        tables = [table for name in self.rivals for table in self.declaring[name]]
        return self.rivals if len({*tables}) == len(tables) else ()

    @property
    def rivals(self) -> tuple[str, ...]:
        """All files with the missing declarations of scripts' tables."""
        return tuple(name for name, tables in self.declaring.items() if tables & self.undeclared)


def _looked_at(folder: Path) -> _Found:
    scripts, declaring, undeclared, left_out = [], {}, set[str](), []
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if _NOT_NAMED.search(name):
            left_out.append(f"{name!a}: its name is not UTF-8, or contains a control character: rename it")
            continue
        try:
            side = side_of_script(path, JobOptions(), folder, folder)
            if side is None:
                continue
            is_job = holds_job(side)
            if is_job:
                scripts.append(name)
            with suppress(RecursionError):  # nested too deeply to find its tables
                if is_job:
                    undeclared |= {*undeclared_tables(side)}
                elif side.language == "sql":
                    declaring[name] = frozenset(table.name for table in side.program.tables)
        except (ScriptError, DeployError) as error:
            left_out.append(str(error))
    return _Found(tuple(scripts), declaring, frozenset(undeclared), tuple(left_out))


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each[0] not in "._" and each not in _NEVER_LOOKED_INTO)
        yield from (path for name in sorted(names) if may_hold_job(path := Path(place, name)))


_NO_CATALOG = '# catalog = "ddl/tables.sql"'


def _content(scripts: Mapping[str, str], catalogs: Sequence[str]) -> str:
    every = ", ".join(map(_quoted, catalogs))
    catalog = f"catalog = [{every}]" if len(catalogs) > 1 else f"catalog = {every}" if every else _NO_CATALOG
    engines = " or ".join(f'"{name}"' for name in ENGINES)
    lines = [
        "# Flink SQL jobs of this repository, for flinkcompat and for redeploy_dags() in Airflow.",
        "",
        f"# The engine that runs the jobs, {engines}. Without this setting, both engines are judged,",
        "# and the worse verdict applies.",
        '# engine = "flink"',
        '# engine_version = "2.3"',
        '# fail_on = "unknown"                   # partial, unknown, incompatible or never',
        '# ledger = "s3://bucket/ledger"         # the deployed versions, with which `flinkcompat diff` compares',
        f"{catalog:<39} # DDL of tables that the scripts do not declare",
        '# settings = { "table.exec.state.ttl" = "1 d" }',
    ]
    for name, path in scripts.items():
        key = name if _BARE_KEY.fullmatch(name) else json.dumps(name)
        lines += ["", f"[deployments.{key}]", f"script = {_quoted(path)}"]
    return "\n".join(lines) + "\n"


def _quoted(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)
