"""One side of a change, deployed or proposed, and the environments in which a program may run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain

from sqlglot import exp

from airflow_flinkcompat.frontends import Note, ProgramScript, read
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import InputError, JobSpec, Span
from airflow_flinkcompat.model.engine import ENGINE_FACTS, line_numbers
from airflow_flinkcompat.plan import Program, build_program
from airflow_flinkcompat.plan.lineage import resolve_operators
from airflow_flinkcompat.plan.operators import Output, TooLarge
from airflow_flinkcompat.plan.program import Problem
from airflow_flinkcompat.secrets.detect import Secret, find_secrets
from airflow_flinkcompat.secrets.programs import program_secrets, secrets_in_file
from airflow_flinkcompat.sql import Script, parse_script
from airflow_flinkcompat.sql.nodes import Option, SetOption
from airflow_flinkcompat.sql.script import span_of


def _later(version: str, last: str) -> bool:
    """True if a version is later than ``last``, or if ``last`` is empty or a version cannot be compared."""
    try:
        return not last or line_numbers(version) > line_numbers(last)
    except ValueError:
        return True


@dataclass(frozen=True)
class Side(JobSpec):
    """One side of a change: a job with its parsed script.

    ``beside`` is a different side with similar statements, such as the deployed side: equal statements are parsed once.
    ``decided`` maps a program's conditions on its environment, by name, to their assumed values. ``catalog_sources``
    lists the catalog's files and their numbers of lines, for messages; empty if the catalog has no file.
    ``filled_elsewhere`` is True if the deploying tool fills in placeholders such as ``${NAME}``, so these are no
    secrets. ``places`` maps the names of the script's files in messages to their paths in the repository.
    """

    beside: Side | None = field(default=None, compare=False, repr=False)
    decided: Mapping[str, bool] = field(default_factory=dict, compare=False, repr=False)
    catalog_sources: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    filled_elsewhere: bool = field(default=False, compare=False)
    places: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, job: JobSpec) -> Side:
        """Make a side of a change from a job.

        Args:
            job: A job, or a side, which is returned unchanged.

        Returns:
            The side.
        """
        return job if isinstance(job, Side) else cls(**{each.name: getattr(job, each.name) for each in fields(JobSpec)})

    def upgrades(self, other: Side) -> bool:
        """True if this side differs from another side only in the version of the engine.

        Args:
            other: The other side.

        Returns:
            False also for equal versions.
        """
        if self.version == other.version:
            return False
        return replace(self, engine_version=other.engine_version, source=other.source) == other

    @cached_property
    def parsed(self) -> Script:
        """The statements. Raises :class:`~airflow_flinkcompat.sql.ScriptError` if the script contains none."""
        # SQL and programs do not share syntax trees: the trees of a program also store the original notation.
        alike = self.beside if self.beside is not None and self.beside.language == "sql" else None
        like = None if alike is None else alike.parsed
        catalog = self._declared if self.language == "table" else None
        return read(self, catalog, like, self.decided)

    @property
    def unended(self) -> tuple[Span, ...]:
        """The statements in the script before which a ``;`` is missing."""
        return tuple(each.unended for each in self.parsed.statements if each.unended is not None)

    @cached_property
    def secrets(self) -> tuple[Secret, ...]:
        """The literal secrets of the script or program, in order."""
        if self.language == "sql":
            return find_secrets(self.parsed)
        beside = (secrets_in_file(text, path) for path, text in self.files.items())
        return (*program_secrets(self.script, self.source, self.language), *chain.from_iterable(beside))

    @cached_property
    def program(self) -> Program:
        """The script's plan under the side's settings, functions and catalog."""
        return build_program(self.parsed, self.settings, self.functions, self._declared)

    @cached_property
    def _declared(self) -> Script | None:
        if not self.catalog.strip():
            return None
        rest, scripts = self.catalog.split("\n"), list[Script]()
        for name, lines in self.catalog_sources or (("<catalog>", len(rest)),):
            scripts.append(parse_script("\n".join(rest[:lines]), name))
            rest = rest[lines:]
        if len(scripts) == 1:
            return scripts[0]
        return Script("<catalog>", self.catalog, tuple(chain.from_iterable(each.statements for each in scripts)))

    def place_of(self, keys: Collection[str], declared: Span | None) -> Span | None:
        """Find the place of the first option or setting with one of these keys.

        Args:
            keys: The keys of the options or settings.
            declared: The statement that contains the options; None for settings, which have separate statements.

        Returns:
            The place; None if neither the script nor the catalog contains one of the keys.
        """
        kind: type[exp.Expr] = SetOption if declared is None else Option
        for script in (self.parsed, self._declared):
            for statement in script.statements if script is not None else ():
                if declared is not None and statement.span != declared:
                    continue
                for node in statement.nodes:
                    if isinstance(node, kind) and node.this is not None and node.this.name in keys:
                        return span_of(node, statement)
        return None

    @property
    def tables_of_catalog(self) -> frozenset[str]:
        """Names of the tables that the catalog declares and the script does not declare."""
        places = set() if self._declared is None else {statement.span for statement in self._declared.statements}
        return frozenset(table.name for table in self.program.tables if table.span in places)

    def declarations(self, names: Collection[str]) -> Mapping[str, str]:
        """The DDL of the named tables that the side declares.

        Args:
            names: The names of tables in the program.

        Returns:
            DDL by table name. Tables with a qualified name are left out, because the name has a different meaning in
            another catalog.
        """
        places = {table.span: table.name for table in self.program.tables if table.name in names}
        scripts = (self.parsed, self._declared) if self.language == "sql" else (self._declared,)
        return {
            places[statement.span]: statement.text
            for script in scripts
            if script is not None
            for statement in script.statements
            if statement.span in places and "." not in places[statement.span]
        }

    def with_catalog(self, ddl: Iterable[str]) -> Side:
        """The same side with more DDL in its catalog.

        Args:
            ddl: ``CREATE`` statements, each without a semicolon at its end.

        Returns:
            A new side, with the DDL at the end of its catalog.
        """
        text = ";\n".join(filter(None, (self.catalog.strip().rstrip(";"), *ddl)))
        return replace(self, catalog=text, catalog_sources=())

    @cached_property
    def flink_line(self) -> str | None:
        """The line of Flink that the side's version is or is based on; None if unknown."""
        return ENGINE_FACTS[self.engine].flink_line(self.version)

    @property
    def not_run(self) -> tuple[Note, ...]:
        """Notes about parts of a program that the side's engine version does not run.

        For an engine that is based on Flink, only an explicit engine version identifies the Flink version.
        """
        facts = ENGINE_FACTS[self.engine]
        if self.engine_version is None and facts.flink_lines is not None:
            return ()
        flink = self.flink_line
        return tuple(
            note for note in self.program.notes if note.last is not None and (not flink or _later(flink, note.last))
        )

    @cached_property
    def outputs(self) -> tuple[Mapping[int, Output], tuple[Problem, ...]]:
        """Operators of each query by position in the program, and problems with queries that are too large."""
        outputs: dict[int, Output] = {}
        failures: list[Problem] = []
        for i, pipeline in enumerate(self.program.pipelines):
            try:
                outputs[i] = resolve_operators(pipeline.sink)
            except TooLarge as error:
                failures.append(Problem("too-large", str(error), "", pipeline.span))
        return outputs, tuple(failures)

    @cached_property
    def sha256(self) -> str:
        """The job's digest."""
        return self.digest()

    def require_query(self) -> None:
        """Check that the script contains a query, or an unread statement that may be a query.

        Raises:
            InputError: The script contains no such statement.
        """
        if not self.program.pipelines and not self.program.problems:
            raise InputError(
                f"{self.source}: contains no INSERT and no SELECT, so there is nothing to check: pass a script with "
                f"a query"
            )

    def on(self, engine: str) -> Side:
        """The same side on a different engine.

        Args:
            engine: ``flink`` or ``vvr``.

        Returns:
            This side if it already has that engine; otherwise a new side with the engine's default version.
        """
        if engine == self.engine:
            return self
        other = replace(self, engine=engine, engine_version=None)
        # These cached values do not depend on the engine.
        vars(other).update({name: vars(self)[name] for name in ("parsed", "program", "outputs") if name in vars(self)})
        return other


LIMIT = 200
"""Maximum number of parses of a program. Beyond this number, branches are not parsed."""


@dataclass(frozen=True)
class ProgramEnvironment:
    """One environment: the values of conditions, and both sides parsed with these values."""

    decided: Mapping[str, bool]
    old: Side
    new: Side

    def __str__(self) -> str:
        said = [name if holds else f"not {name}" for name, holds in self.decided.items()]
        return ", ".join([*said[:3], *(["…"] if said[3:] else [])])


def environments(old: Side, new: Side) -> list[ProgramEnvironment]:
    """The environments in which the sides may run, at most :data:`LIMIT`.

    The environment of the deployed job is unknown, so both sides are parsed with the same values in each environment.
    Environments in which a program starts no job are left out. If no condition depends on the environment, the list has
    one entry.
    """
    found = list(_all(old, new)) if "python" in (old.language, new.language) else []
    if len(found) < 2:
        return found or [ProgramEnvironment({}, old, new)]
    running = [each for each in found if _starts(each.old) and _starts(each.new)]
    different = {(_reading(each.old), _reading(each.new)): each for each in reversed(running or found)}
    return list(reversed(different.values()))


def _all(old: Side, new: Side) -> Iterator[ProgramEnvironment]:
    pending: list[dict[str, bool]] = [{}]
    readings = 0
    same = _read_alike(old, new)
    while pending:
        decided = pending.pop()
        readings += 1
        before = _under(old, decided)
        now = ProgramEnvironment(decided, before, before if same else _under(new, decided))
        condition = _undecided(now.old) or _undecided(now.new)
        if not condition or readings + len(pending) >= LIMIT:
            yield now
        else:
            pending += [{**decided, condition: False}, {**decided, condition: True}]


def _under(side: Side, decided: Mapping[str, bool]) -> Side:
    return replace(side, decided=decided) if decided and side.language == "python" else side


def _read_alike(old: Side, new: Side) -> bool:
    return (old.language, old.digest(), old.source) == (new.language, new.digest(), new.source)


def _undecided(side: Side) -> str:
    script = side.parsed
    return script.undecided[0] if isinstance(script, ProgramScript) and script.undecided else ""


def _starts(side: Side) -> bool:
    """True if the side starts a job, or has an unread part that may start a job."""
    return bool(side.program.pipelines or side.program.problems)


def _reading(side: Side) -> object:
    script = side.parsed
    unread = script.unread if isinstance(script, ProgramScript) else ()
    return tuple(statement.text for statement in script.statements), unread
