"""Replacement of tables and views in jobs with changed declarations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.model import InputError, JobSpec
from airflow_flinkcompat.plan.catalog import BindError, Namespace, Path, name_parts, options
from airflow_flinkcompat.plan.nodes import dotted
from airflow_flinkcompat.sql import Script, Statement, parse_script
from airflow_flinkcompat.sql.nodes import CreateNamespace, CreateTable, CreateView, UseNamespace
from airflow_flinkcompat.sql.script import read_script


class NotReplacedError(Exception):
    """A job declares a changed table in a way that cannot be replaced."""


@dataclass(frozen=True)
class ReplacementTable:
    """A table or view with its new declaration.

    Attributes:
        path: Catalog, database and name; "" for the session's initial catalog or database.
        head: The ``CREATE`` statement up to the table's name.
        body: The text after the table's name, without a semicolon.
    """

    path: Path
    kind: str
    head: str
    body: str

    @property
    def name(self) -> str:
        """The dotted name."""
        return dotted(self.path)

    @property
    def ddl(self) -> str:
        """The whole statement."""
        return f"{self.head}{'.'.join(f'`{part}`' for part in self.path if part)}{self.body}"


@dataclass(frozen=True)
class _Declaration:
    """A ``CREATE`` statement of a script, with the created object and the range of its name in the text."""

    statement: Statement
    path: Path
    kind: str
    name: tuple[int, int]


def read_changed_tables(file: str) -> tuple[ReplacementTable, ...]:
    """Read the changed tables from a DDL file."""
    found: dict[Path, ReplacementTable] = {}
    for statement in read_script(file).statements:
        if statement.error is not None:
            raise InputError(statement.error)
        declared = _declaration(statement, Namespace())
        if declared is None:
            raise InputError(f"{statement.span}: a changed table must be a CREATE TABLE or CREATE VIEW")
        if declared.path in found:
            raise InputError(f"{statement.span}: {dotted(declared.path)} is declared twice: remove one of them")
        begin, end = declared.name
        found[declared.path] = ReplacementTable(
            declared.path, declared.kind, statement.text[:begin], statement.text[end:]
        )
    return tuple(found.values())


def with_changed_tables(job: JobSpec, tables: Sequence[ReplacementTable]) -> tuple[JobSpec, tuple[str, ...]]:
    """Replace declarations in a job with those of the changed tables.

    Declarations of the same name in the script or catalog are replaced in place. A table that the job uses but does not
    declare is added to the catalog. Returns the changed job and the names of the affected tables.
    """
    if not tables:
        return job, ()
    by_path = {table.path: table for table in tables}
    side = Side.of(job)
    catalog = parse_script(job.catalog, "<catalog>") if job.catalog.strip() else None
    below = {} if catalog is None else _references(catalog)
    own = _references(side.parsed)
    used = _reached({**below, **own}, own)
    touched = tuple(path for path in by_path if path in used)
    if not touched:
        return job, ()
    if job.language != "sql" and (declared := [path for path in touched if path in own]):
        raise NotReplacedError(
            f"{job.source}: the program declares {', '.join(map(dotted, declared))}, but tables in programs cannot "
            f"be replaced; change the program, and compare both versions with flinkcompat check"
        )
    script = _edited(job.script, _edits(side.parsed, by_path)) if job.language == "sql" else job.script
    changed = replace(job, script=script)
    if catalog is not None:
        edits = tuple(_edits(catalog, by_path))
        changed = replace(changed, catalog=_edited(job.catalog, edits))
        if isinstance(changed, Side):
            changed = replace(changed, catalog_sources=_sources_after(changed.catalog_sources, edits))
    if added := [by_path[path].ddl for path in touched if path not in below and path not in own]:
        changed = Side.of(changed).with_catalog(added)
    return changed, tuple(map(dotted, touched))


@dataclass(frozen=True)
class _Edit:
    """Replacement of a part of a script, with the line on which the part begins."""

    line: int
    begin: int
    old: str
    new: str


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    parts, written = [], 0
    for edit in edits:
        parts += [text[written : edit.begin], edit.new]
        written = edit.begin + len(edit.old)
    return "".join((*parts, text[written:]))


def _sources_after(sources: Iterable[tuple[str, int]], edits: Sequence[_Edit]) -> tuple[tuple[str, int], ...]:
    """Names of a catalog's files, each with its number of lines after the edits."""
    found, first = [], 1
    for name, lines in sources:
        within = (edit for edit in edits if first <= edit.line < first + lines)
        found.append((name, lines + sum(edit.new.count("\n") - edit.old.count("\n") for edit in within)))
        first += lines
    return tuple(found)


def _edits(script: Script, tables: Mapping[Path, ReplacementTable]) -> Iterator[_Edit]:
    """Edits that replace declarations in a script with the changed declarations."""
    starts = [0]
    for line in script.text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for statement, namespace in _in_namespaces(script):
        declared = _declaration(statement, namespace)
        table = None if declared is None else tables.get(declared.path)
        if declared is None or table is None:
            continue
        begin = starts[statement.span.line - 1] + statement.span.column - 1
        text, (name, end) = statement.text, declared.name
        # TEMPORARY and IF NOT EXISTS belong to the script, so they are kept.
        head = text[:end] if declared.kind == table.kind else table.head + text[name:end]
        yield _Edit(statement.span.line, begin, text, head + table.body)


def _declaration(statement: Statement, namespace: Namespace) -> _Declaration | None:
    """The declaration of a table or view with a readable name; None for any other statement."""
    tree = statement.tree
    if not isinstance(tree, CreateTable | CreateView):
        return None
    name = name_parts(tree.this)
    path = _path(namespace, tree.this)
    if path is None or not name or "start" not in name[0].meta or "end" not in name[-1].meta:
        return None
    kind = "TABLE" if isinstance(tree, CreateTable) else "VIEW"
    return _Declaration(statement, path, kind, (name[0].meta["start"], name[-1].meta["end"] + 1))


def _path(namespace: Namespace, name: exp.Expression) -> Path | None:
    try:
        return namespace.path(name)
    except BindError:
        return None


def _in_namespaces(script: Script) -> Iterator[tuple[Statement, Namespace]]:
    """Every statement with its current catalog and database."""
    namespace = Namespace()
    for statement in script.statements:
        yield statement, namespace
        tree = statement.tree
        if isinstance(tree, CreateNamespace) and tree.args["kind"] == "CATALOG":
            namespace = namespace.with_catalog(tree.this.name, dict(options(tree.args.get("options"))))
        elif isinstance(tree, UseNamespace) and len(tree.expressions) == 1:
            names = [part.name for part in name_parts(tree.expressions[0])]
            namespace = namespace.use(str(tree.args["kind"]), names) or namespace


_NOT_DECLARED: Path = ("", "", "")
"""Key for the tables to which statements without a declaration refer."""


def _references(script: Script) -> dict[Path, frozenset[Path]]:
    """Tables to which each declaration refers, and tables to which all other statements refer."""
    found: dict[Path, frozenset[Path]] = {}
    for statement, namespace in _in_namespaces(script):
        declared = _declaration(statement, namespace)
        own = None if declared is None or statement.tree is None else statement.tree.this
        tables = (node for node in statement.nodes if isinstance(node, exp.Table) and node is not own)
        paths = frozenset(path for node in tables if (path := _path(namespace, node)) is not None)
        place = _NOT_DECLARED if declared is None else declared.path
        found[place] = found.get(place, frozenset()) | paths
    return found


def _reached(references: Mapping[Path, frozenset[Path]], begin: Collection[Path]) -> set[Path]:
    """The paths ``begin``, and all paths to which these refer through views and LIKE."""
    seen: set[Path] = set()
    pending = [*begin]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += references.get(path, ())
    return seen
