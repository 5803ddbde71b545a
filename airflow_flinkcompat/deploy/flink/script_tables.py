"""Tables of a job in its script, and the script with statements that replace these tables.

A JobManager runs a whole script and has no session. So the stand-ins become statements of the script. A source is
replaced directly after its declaration, under the declared name. A sink is replaced directly before the job's
statement, under the name in the INSERT. Therefore Flink resolves each stand-in and its use to the same path. If the
declaration of a table is unknown, nothing is run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_flinkcompat.deploy.errors import CannotRehearse
from airflow_flinkcompat.deploy.flink.statements import Prepared
from airflow_flinkcompat.deploy.flink.tables import Tables
from airflow_flinkcompat.deploy.target import TablePath
from airflow_flinkcompat.model.text import sql_name, sql_text
from airflow_flinkcompat.plan.catalog import BindError, Namespace, name_parts, options
from airflow_flinkcompat.sql import Statement, nodes
from airflow_flinkcompat.sql.normal_form import hint_options

_MATERIALIZE = "table.exec.sink.upsert-materialize"
_ASK_GATEWAY = "If the cluster has a SQL Gateway, use the target sql-gateway"


@dataclass(frozen=True)
class _Declared:
    """A declared table or view, with the number of its statement and the namespace of its names."""

    tree: nodes.CreateTable | nodes.CreateView
    number: int
    namespace: Namespace


class ScriptTables:
    """The tables of a script that declares all of them.

    Raises CannotRehearse for a table or statement whose effect on tables is unknown; ``settings`` are the options of
    the job in force at its statement.
    """

    def __init__(self, prepared: Prepared, settings: Mapping[str, str]) -> None:
        self._prepared = prepared
        self._settings = settings
        self._declared: dict[TablePath, _Declared] = {}
        self._names: dict[TablePath, exp.Table] = {}
        self._after: dict[int, list[str]] = defaultdict(list)
        self._before_job: list[str] = []
        namespace = Namespace()
        for number, statement in enumerate(prepared.setup):
            namespace = self._read(statement, number, namespace)
        self.tables = self._tables(namespace)

    # ------------------------------------------------------------------------------------------------------- JobTables
    def declaration(self, path: TablePath) -> nodes.CreateTable:
        tree = self._declared[path].tree
        assert isinstance(tree, nodes.CreateTable)
        if path not in self._names:
            return tree
        named, target = tree.copy(), self._names[path].copy()
        target.set("hints", None)
        named.set("this", target)
        return named

    def name(self, path: TablePath, prefix: str = "") -> str:
        *places, last = (part.name for part in name_parts(self._names.get(path, self._declared[path].tree.this)))
        return ".".join(map(sql_name, (*places, prefix + last)))

    def setting(self, key: str) -> str | None:
        return self._settings.get(key)

    def execute(self, path: TablePath, statement: str) -> None:
        """Add a statement to the script."""
        (self._before_job if path in self._names else self._after[self._declared[path].number]).append(statement)

    def script(self, options: Mapping[str, str]) -> str:
        """The script with all added statements, and with ``options`` for its job."""
        found = []
        for number, statement in enumerate(self._prepared.setup):
            found += [statement.text, *self._after[number]]
        found += self._before_job
        found += [f"SET {sql_text(key)} = {sql_text(value)}" for key, value in options.items()]
        return "".join(f"{each};\n" for each in (*found, self._prepared.job_sql))

    # --------------------------------------------------------------------------------------------------------- reading
    def _read(self, statement: Statement, number: int, at: Namespace) -> Namespace:
        """Follow a statement that precedes the job. Return the namespace after the statement."""
        tree = statement.tree
        match tree:
            case None | nodes.HiveTable():
                raise CannotRehearse(f"{statement.span}: the statement may change tables. {_ASK_GATEWAY}")
            case nodes.CreateTable() | nodes.CreateView():
                path = _path(tree.this, at, statement)
                if path[0] and tree.args.get("exists") and not tree.args.get("temporary"):
                    raise CannotRehearse(
                        f"{statement.span}: catalog {path[0]} may contain another declaration of {path[2]}. Remove IF "
                        f"NOT EXISTS or the catalog. {_ASK_GATEWAY}"
                    )
                if path in self._declared and not tree.args.get("replace"):
                    raise CannotRehearse(f"{statement.span}: {path[2]} is declared twice. Remove one declaration")
                declared = self._whole(tree, at, statement) if isinstance(tree, nodes.CreateTable) else tree
                self._declared[path] = _Declared(declared, number, at)
            case nodes.Drop() if str(tree.args["kind"]) in ("TABLE", "VIEW"):
                self._declared.pop(_path(tree.this, at, statement), None)
            case nodes.Alter() if str(tree.args["kind"]) in ("TABLE", "VIEW"):
                raise CannotRehearse(
                    f"{statement.span}: the declaration after ALTER is unknown. Write the change into the CREATE "
                    f"statement. {_ASK_GATEWAY}"
                )
            case nodes.CreateNamespace() if tree.args["kind"] == "CATALOG":
                return at.with_catalog(tree.this.name, dict(options(tree.args.get("options"))))
            case nodes.UseNamespace() if tree.args["kind"] != "MODULES":
                used = at.use(str(tree.args["kind"]), [part.name for part in name_parts(tree.expressions[0])])
                if used is None:
                    raise CannotRehearse(f"{statement.span}: the name after USE cannot be read")
                return used
        return at

    def _whole(self, tree: nodes.CreateTable, at: Namespace, statement: Statement) -> nodes.CreateTable:
        """A declaration as SHOW CREATE TABLE writes it: with the parts of LIKE, and its key as a constraint."""
        found = tree.copy()
        if (like := found.args.get("like")) is not None:
            base = self._declared.get(_path(like.this, at, statement))
            strategies = {(str(each.this), str(each.args["kind"])) for each in like.expressions}
            if base is None or isinstance(base.tree, nodes.CreateView) or strategies - {("OVERWRITING", "OPTIONS")}:
                raise CannotRehearse(
                    f"{statement.span}: the columns of {tree.this.name}, which are inherited by LIKE, are unknown. "
                    f"Write them into the declaration. {_ASK_GATEWAY}"
                )
            for part in ("columns", "watermarks", "constraints", "partitioned_by", "options"):
                # A later option replaces an earlier option of the same key.
                both = [*(base.tree.args.get(part) or ()), *(found.args.get(part) or ())]
                found.set(part, [each.copy() for each in both] or None)
            found.set("like", None)
        for column in found.args.get("columns") or ():
            if isinstance(column, nodes.PhysicalColumn) and column.args.get("constraint") is not None:
                key = column.args["constraint"]
                key.set("expressions", [column.this.copy()])
                column.set("constraint", None)
                found.append("constraints", key)
        keys = {name.name for key in found.args.get("constraints") or () for name in key.expressions}
        for column in found.args.get("columns") or ():
            if isinstance(column, nodes.PhysicalColumn) and column.this.name in keys:
                column.args["kind"].set("not_null", True)
        return found

    def _tables(self, at: Namespace) -> Tables:
        """The tables that the job's statement writes and reads."""
        job = self._prepared.job
        inserts = [*job.tree.find_all(nodes.InsertInto)] if job.tree is not None else []
        targets = [each.this for each in inserts]
        if not targets or not all(isinstance(each, exp.Table) for each in targets):
            raise CannotRehearse(f"{job.span}: the sinks of the statement are unknown. {_ASK_GATEWAY}")
        sinks: list[TablePath] = []
        upserts = set()
        forced = (self.setting(_MATERIALIZE) or "").upper() == "FORCE"
        for insert in inserts:
            path = _path(insert.this, at, job)
            self._require_table(path, job)
            self._names.setdefault(path, insert.this)
            sinks.append(path)
            if insert.args.get("conflict") or (forced and self.declaration(path).args.get("constraints")):
                upserts.add(path)
        sources: dict[TablePath, set[str]] = {}
        for insert in inserts:
            self._follow(insert.expression, at, job, sources)
        hinted = {path: frozenset(keys) for path, keys in sources.items()}
        return Tables(tuple(dict.fromkeys(sinks)), hinted, frozenset(upserts))

    def _follow(self, query: exp.Expression, at: Namespace, job: Statement, found: dict[TablePath, set[str]]) -> None:
        """Collect the tables that a query reads, also through views, with the options that hints set."""
        own = {cte.alias for cte in query.find_all(exp.CTE)}
        for table in query.find_all(exp.Table):
            path = _path(table, at, job)
            if path not in self._declared and table.name in own and not table.db:
                continue
            declared = self._declared.get(path)
            if declared is not None and isinstance(declared.tree, nodes.CreateView):
                self._follow(declared.tree.expression, declared.namespace, job, found)
                continue
            self._require_table(path, job)
            found.setdefault(path, set()).update(_hinted(table))

    def _require_table(self, path: TablePath, job: Statement) -> None:
        declared = self._declared.get(path)
        if declared is None or isinstance(declared.tree, nodes.CreateView):
            raise CannotRehearse(
                f"{job.span}: the script does not declare the table {'.'.join(filter(None, path))}, so its columns "
                f"are unknown. Declare it in the script. {_ASK_GATEWAY}"
            )


def _path(name: exp.Expression, at: Namespace, statement: Statement) -> TablePath:
    try:
        return at.path(name)
    except BindError as error:
        raise CannotRehearse(f"{statement.span}: {error.message}") from None


def _hinted(table: exp.Table) -> Iterator[str]:
    for hint in table.args.get("hints") or ():
        if hint.this.name.upper() == "OPTIONS":
            yield from (key for key, _ in hint_options(hint, {}))
