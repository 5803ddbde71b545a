"""Objects that exist before each statement of a script, and references to missing objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.catalog import Namespace, Path, name_parts, options
from airflow_flinkcompat.plan.program import Absence
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.normal_form import unquoted

_RELATIONS = ("TABLE", "VIEW")
_CREATED: Mapping[type[exp.Expr], str] = {
    nodes.CreateTable: "TABLE",
    nodes.CreateView: "VIEW",
    nodes.CreateFunction: "FUNCTION",
}
_SHOWN: Mapping[str, tuple[str, ...]] = {
    **{f"CREATE {kind}": (kind,) for kind in ("CATALOG", "DATABASE", "FUNCTION", "MODEL", "TABLE", "VIEW")},
    **dict.fromkeys(("COLUMNS", "PARTITIONS"), _RELATIONS),
    "DATABASES": ("CATALOG",),
}
"""The kinds of object that may follow FROM in SHOW, by list; all other lists accept a database."""
_STORED = "table.catalog-store."
_Object = tuple[str, Path, bool]
"""The kind and path of an object, and True if it is temporary."""
_Missing = tuple[str, str, bool]
"""A message, the catalog of the missing name, and False if the name may be declared elsewhere."""


@dataclass
class Existing:
    """The tables, views, functions, databases and catalogs that exist before the next statement."""

    open: bool = False
    """True if other objects may exist, created by an unread statement or outside of the script."""
    objects: set[_Object] = field(default_factory=set)
    databases: set[tuple[str, str]] = field(default_factory=lambda: {("", "")})
    catalogs: set[str] = field(default_factory=lambda: {""})
    in_memory: set[str] = field(default_factory=lambda: {""})
    """The catalogs that are empty when a session starts."""

    def holds(self, path: Path, temporary: bool | None = None) -> bool:
        """True if a table or view has this path; None finds both temporary and permanent objects."""
        which = (False, True) if temporary is None else (temporary,)
        return any((kind, path, each) in self.objects for kind in _RELATIONS for each in which)

    def absences(self, tree: exp.Expr, at: Namespace, span: Span, declared: Collection[str]) -> Iterator[Absence]:
        """Find references to missing objects in a statement."""
        for message, catalog, certain in self._faults(tree, at, declared):
            yield Absence(message, span, certain and catalog in self.in_memory and not self.open)

    def _faults(self, tree: exp.Expr, at: Namespace, declared: Collection[str]) -> Iterator[_Missing]:
        match tree:
            case nodes.CreateTable() | nodes.CreateView() | nodes.CreateFunction():
                yield from self._created(tree, at)
            case nodes.CreateNamespace() if not tree.args.get("exists"):
                name, catalog, there = self._namespace(tree, at, str(tree.args["kind"]))
                if there:
                    yield f"{name} already exists: remove the statement, or write IF NOT EXISTS", catalog, True
                elif tree.args["kind"] == "DATABASE" and catalog not in self.catalogs:
                    yield f"the catalog {catalog} does not exist: create it first", catalog, True
            case nodes.Drop() | nodes.Alter() if not tree.args.get("exists"):
                yield from self._changed(tree, at, declared)
            case nodes.UseNamespace() if tree.args["kind"] != "MODULES":
                name, catalog, there = self._namespace(tree.expressions[0], at, str(tree.args["kind"]))
                if not there:
                    yield f"USE of {name}, which no statement creates: create it first", catalog, True
            case nodes.Describe():
                yield from self._looked_at(tree.this, at, (tree.args["kind"],) if tree.args.get("kind") else _RELATIONS)
            case nodes.Show() if tree.args.get("of") is not None:
                yield from self._looked_at(tree.args["of"], at, _SHOWN.get(str(tree.this), ("DATABASE",)))

    def _created(self, tree: exp.Expr, at: Namespace) -> Iterator[_Missing]:
        if tree.args.get("system"):
            return
        catalog, database, _ = at.path(tree.this)
        if (catalog, database) not in self.databases and not tree.args.get("temporary"):
            name = ".".join(part.name for part in name_parts(tree.this)[:-1]) or database
            yield f"the database {name} of {tree.this.name} does not exist: create it first", catalog, True
        again = (_CREATED[type(tree)], self._path(tree, at), bool(tree.args.get("temporary"))) in self.objects
        if isinstance(tree, nodes.CreateFunction) and again and not (tree.args.get("exists") or self.open):
            yield f"function {tree.this.name} already exists: use a different name, or drop it first", catalog, True
        if isinstance(tree, nodes.CreateView):
            own = {cte.alias for cte in tree.find_all(exp.CTE)}
            for table in tree.expression.find_all(exp.Table):
                if (table.db or table.name not in own) and not self.holds(path := at.path(table)):
                    # Queries may also read tables that are declared elsewhere.
                    yield (
                        f"the view {tree.this.name} reads {unquoted(table)}, which no statement declares",
                        path[0],
                        False,
                    )

    def _changed(self, tree: nodes.Drop | nodes.Alter, at: Namespace, declared: Collection[str]) -> Iterator[_Missing]:
        kind, verb = str(tree.args["kind"]), "DROP" if isinstance(tree, nodes.Drop) else "ALTER"
        if kind in ("DATABASE", "CATALOG"):
            name, catalog, there = self._namespace(tree, at, kind)
            if not there:
                yield f"{verb} {kind} of {name}, which no statement creates: {_tolerant(verb)}", catalog, True
            elif verb == "DROP" and kind == "DATABASE" and tree.args.get("behavior") != "CASCADE":
                inner = at.use("DATABASE", [part.name for part in name_parts(tree.this)])
                if inner and any(path[:2] == (inner.catalog, inner.database) for _, path, _ in self.objects):
                    yield f"{name} is not empty: drop its objects first, or write CASCADE", catalog, True
            return
        path = self._path(tree, at)
        if kind == "FUNCTION":
            known = any((kind, path, temporary) in self.objects for temporary in (False, True))
            if not known and tree.this.name.lower() not in declared:
                yield (
                    f"{verb} FUNCTION of {tree.this.name}, which no statement creates: {_tolerant(verb)}",
                    path[0],
                    True,
                )
        elif kind in _RELATIONS:
            temporary = bool(tree.args.get("temporary"))
            if not temporary and self.holds(path, temporary=True):
                remedy = f"write {verb} TEMPORARY {kind}" if verb == "DROP" else "drop it, and create it again"
                yield (
                    f"{tree.this.name} is temporary, but {verb} {kind} only changes permanent objects: {remedy}",
                    "",
                    True,
                )
            elif (kind, path, temporary) not in self.objects:
                other = "VIEW" if kind == "TABLE" else "TABLE"
                if (other, path, temporary) in self.objects:
                    yield f"{verb} {kind} of {tree.this.name}, which is a {other.lower()}", "", True
                else:
                    what = f"{verb} {'TEMPORARY ' if temporary else ''}{kind}"
                    yield (
                        f"{what} of {unquoted(tree.this)}, which no statement creates: {_tolerant(verb)}",
                        path[0],
                        True,
                    )

    def _looked_at(self, name: exp.Expression, at: Namespace, kinds: tuple[str, ...]) -> Iterator[_Missing]:
        if kinds in (("CATALOG",), ("DATABASE",)):
            shown, catalog, there = self._namespace(name, at, kinds[0])
            if not there:
                yield f"the {shown} to show does not exist", catalog, True
            return
        if kinds in (("FUNCTION",), ("MODEL",)):
            return
        path = at.path(name)
        if not any((kind, path, temporary) in self.objects for kind in kinds for temporary in (False, True)):
            yield f"the {' or '.join(kinds).lower()} {unquoted(name)} to show does not exist", path[0], True

    def _namespace(self, tree: exp.Expr, at: Namespace, kind: str) -> tuple[str, str, bool]:
        """A catalog or database in words, the name of its catalog, and True if it exists."""
        names = [part.name for part in name_parts(tree if isinstance(tree, exp.Table) else tree.this)]
        inner = at.use(kind, names)
        if inner is None:
            return ".".join(names), "", False
        if kind == "CATALOG":
            return f"catalog {names[0]}", inner.catalog, inner.catalog in self.catalogs
        there = (inner.catalog, inner.database) in self.databases
        return f"database {'.'.join(names)}", inner.catalog, there

    def _path(self, tree: exp.Expr, at: Namespace) -> Path:
        path = ("", "", tree.this.name) if tree.args.get("system") else at.path(tree.this)
        kind = _CREATED.get(type(tree)) or str(tree.args.get("kind"))
        return (*path[:2], path[2].lower()) if kind == "FUNCTION" else path

    def execute(self, tree: exp.Expr, at: Namespace) -> None:
        """Record the objects that a statement creates, drops or renames."""
        match tree:
            case nodes.CreateTable() | nodes.CreateView() | nodes.CreateFunction():
                self.objects.add((_CREATED[type(tree)], self._path(tree, at), bool(tree.args.get("temporary"))))
            case nodes.CreateNamespace() | nodes.Drop() if tree.args["kind"] in ("CATALOG", "DATABASE"):
                self._namespace_changed(tree, at)
            case nodes.Drop():
                kind = str(tree.args["kind"])
                self.objects.discard((kind, self._path(tree, at), bool(tree.args.get("temporary"))))
            case nodes.Alter() if isinstance(tree.args["action"], nodes.RenameTo):
                old = (str(tree.args["kind"]), self._path(tree, at), False)
                if old in self.objects:
                    self.objects.remove(old)
                    self.objects.add((old[0], (*old[1][:2], name_parts(tree.args["action"].this)[-1].name), False))
            case nodes.SetOption() if tree.this is not None and tree.this.name.startswith(_STORED):
                self.open = True
            case nodes.HiveTable():
                self.open = True

    def _namespace_changed(self, tree: exp.Expr, at: Namespace) -> None:
        kind, created = str(tree.args["kind"]), isinstance(tree, nodes.CreateNamespace)
        inner = at.use(kind, [part.name for part in name_parts(tree.this)])
        if inner is None:
            return
        place = (inner.catalog, inner.database)
        if kind == "CATALOG":
            (self.catalogs.add if created else self.catalogs.discard)(inner.catalog)
            if dict(options(tree.args.get("options"))).get("type") == "generic_in_memory":
                self.in_memory.add(inner.catalog)
        if created:
            self.databases.add(place)
        else:
            self.databases.discard(place)
            self.objects = {each for each in self.objects if each[1][:2] != place}


def _tolerant(verb: str) -> str:
    return "write IF EXISTS" if verb == "DROP" else "create it first"
