"""One side of a change, deployed or proposed, and the environments in which a program may run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain

from sqlglot import exp

from airflow_flinkcompat.frontends import Note, ProgramScript, read
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import InputError, JobSpec, Span
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan import Program, build_program
from airflow_flinkcompat.plan.lineage import resolve_operators
from airflow_flinkcompat.plan.operators import Output, TooLarge
from airflow_flinkcompat.plan.program import Problem
from airflow_flinkcompat.secrets.detect import Secret, find_secrets
from airflow_flinkcompat.secrets.programs import program_secrets, secrets_beside
from airflow_flinkcompat.sql import Script, parse_script
from airflow_flinkcompat.sql.nodes import Option, SetOption
from airflow_flinkcompat.sql.script import span_of


def _later(version: str, last: str) -> bool:
    """True if a version is later than another or absent: an absent one ends a range that nothing ended."""
    try:
        return not last or [*map(int, version.split("."))] > [*map(int, last.split("."))]
    except ValueError:
        return True


@dataclass(frozen=True)
class Side(JobSpec):
    """One side of a change: a job, and its parsed form.

    ``beside`` is another side to share with, such as the one it is compared with: equal statements are parsed once.
    ``decided`` maps conditions of a program on its environment to their value, by name. ``catalog_sources`` are the
    files of the catalog with their number of lines, as messages name them; none if it has no file.
    ``filled_elsewhere``: the deploying tool fills in placeholders such as ``${NAME}``, so that they are no secrets.
    ``places`` are the paths of the files that belong to the script, from the root of the repository, by their name in
    messages.
    """

    beside: Side | None = field(default=None, compare=False, repr=False)
    decided: Mapping[str, bool] = field(default_factory=dict, compare=False, repr=False)
    catalog_sources: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    filled_elsewhere: bool = field(default=False, compare=False)
    places: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, job: JobSpec) -> Side:
        """A job as one side of a change.

        Args:
            job: A job, or a side, which is taken as it is.

        Returns:
            The side.
        """
        return job if isinstance(job, Side) else cls(**{each.name: getattr(job, each.name) for each in fields(JobSpec)})

    @cached_property
    def parsed(self) -> Script:
        """The script in statements. Raises :class:`~airflow_flinkcompat.sql.ScriptError` where it holds none."""
        # The trees of a program say how they were written; a script that reads the same is another notation.
        alike = self.beside if self.beside is not None and self.beside.language == "sql" else None
        like = None if alike is None else alike.parsed
        catalog = self._declared if self.language == "table" else None
        return read(self, catalog, like, self.decided)

    @property
    def unended(self) -> tuple[Span, ...]:
        """The places in the script where the ``;`` of the statement before is missing."""
        return tuple(each.unended for each in self.parsed.statements if each.unended is not None)

    @cached_property
    def secrets(self) -> tuple[Secret, ...]:
        """The literal secrets of the script or program, in order."""
        if self.language == "sql":
            return find_secrets(self.parsed)
        beside = (secrets_beside(text, path) for path, text in self.files.items())
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
        """The place of the first of some options or settings.

        Args:
            keys: Options by their keys.
            declared: The statement that holds the options; None for settings, which have statements of their own.

        Returns:
            The place; None if neither script nor catalog holds one of them.
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
        """Names of the tables that the catalog declares, and the script does not."""
        places = set() if self._declared is None else {statement.span for statement in self._declared.statements}
        return frozenset(table.name for table in self.program.tables if table.span in places)

    def declarations(self, names: Collection[str]) -> Mapping[str, str]:
        """The DDL of those tables that the side declares, by name.

        Args:
            names: tables by the names that the program has for them.

        Returns:
            Only declarations under a plain name; a name with its catalog would be another one elsewhere.
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
        """The same side with further DDL in its catalog.

        Args:
            ddl: ``CREATE`` statements, each without a semicolon at its end.

        Returns:
            A new side; the DDL follows the content of its catalog.
        """
        text = ";\n".join(filter(None, (self.catalog.strip().rstrip(";"), *ddl)))
        return replace(self, catalog=text, catalog_sources=())

    @property
    def flink_line(self) -> str | None:
        """The line of Flink that the side's version is, or is made of; None if it is not known."""
        return ENGINE_FACTS[self.engine].flink_line(self.version)

    @property
    def not_run(self) -> tuple[Note, ...]:
        """Parts of a program that the side's engine does not run, or no longer.

        For an engine made of Flink, only an explicit version identifies Flink's.
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
        """The operators' view of every query by its place in the program, and the queries without one."""
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
        """Check that the script holds a query, or something unread that could be one.

        Raises:
            InputError: It holds neither.
        """
        if not self.program.pipelines and not self.program.problems:
            raise InputError(f"{self.source}: contains no INSERT and no SELECT: there is nothing to check")

    def on(self, engine: str) -> Side:
        """The same side under another engine's state semantics.

        Args:
            engine: ``flink`` or ``vvr``.

        Returns:
            This side where that is its engine already; else a new one with that engine's default version.
        """
        if engine == self.engine:
            return self
        other = replace(self, engine=engine, engine_version=None)
        # What was worked out of the script knows of no engine.
        vars(other).update({name: vars(self)[name] for name in ("parsed", "program", "outputs") if name in vars(self)})
        return other


LIMIT = 200
"""Readings of a program beyond which a condition stays open, and its branches are not read."""


@dataclass(frozen=True)
class ProgramEnvironment:
    """One environment: the values of conditions, and both sides as read with them."""

    decided: Mapping[str, bool]
    old: Side
    new: Side

    def __str__(self) -> str:
        said = [name if holds else f"not {name}" for name, holds in self.decided.items()]
        return ", ".join([*said[:3], *(["…"] if said[3:] else [])])


def environments(old: Side, new: Side) -> list[ProgramEnvironment]:
    """Environments that the sides may meet, at most :data:`LIMIT` of them; one if nothing depends on it.

    The deployed job met one of them, and it is unknown which, so both sides are read alike in each. An environment in
    which a program starts no job is excluded.
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
    """True if it makes a job, or an unread part could."""
    return bool(side.program.pipelines or side.program.problems)


def _reading(side: Side) -> object:
    script = side.parsed
    unread = script.unread if isinstance(script, ProgramScript) else ()
    return tuple(statement.text for statement in script.statements), unread
