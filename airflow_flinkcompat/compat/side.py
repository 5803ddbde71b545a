"""One side of a change: what is deployed, or what is proposed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from airflow_flinkcompat.plan import FunctionDeclaration, Program, build_program
from airflow_flinkcompat.plan.operators import Output, TooLarge
from airflow_flinkcompat.plan.program import Problem
from airflow_flinkcompat.plan.unfolding import view
from airflow_flinkcompat.program import read_as
from airflow_flinkcompat.secrets import Secret, find_secrets, program_secrets, secrets_beside
from airflow_flinkcompat.sql import LANGUAGES as PROGRAMS
from airflow_flinkcompat.sql import Note, Script, parse_script

ENGINES: Mapping[str, str] = {"vvr": "8", "flink": "2.3"}
"""The engines and the version each is judged by when a side names none."""


LANGUAGES = ("sql", *PROGRAMS.values())
"""What a side may be written in."""


_FLINK_OF_VVR: Mapping[str, str] = {"4": "1.13", "6": "1.15", "8": "1.17", "11": "1.20"}
"""The Flink that a VVR is made of, by its first number."""


_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,6}){0,3}(?:[-+][0-9A-Za-z.+-]{1,40})?")
"""How an engine's version is written: 2.3, 1.20.3, 8.0.11, 2.4-SNAPSHOT."""


def _later(version: str, last: str) -> bool:
    """Whether a version is later than another one, or no version at all; no version is last where nothing ran it."""
    try:
        return not last or [*map(int, version.split("."))] > [*map(int, last.split("."))]
    except ValueError:
        return True


class InputError(ValueError):
    """A side that cannot be checked: the message names the place and the remedy."""


@dataclass(frozen=True)
class Side:
    """What is compared: a script, its effective settings, functions, catalog, engine and engine version.

    ``settings`` are those in force before the script's own SETs. ``functions`` declares what the script only uses.
    ``catalog`` is DDL text of tables the script does not declare. ``engine`` is ``vvr`` unless another one is named, as
    it always was in Python; the command line judges both engines where none is named. ``source`` is the name used in
    messages. ``language`` is ``sql``, ``python`` for a PyFlink program, which is read and never run, or ``table`` for
    one in FLIP-11's notation; ``variables`` are values that only a program's environment knows, by name, and ``files``
    the texts that lie beside a Python program, its modules and what it reads, by their path from its folder: they are
    compared as the program is, and nothing else is read. ``beside`` is another side, say the one it is compared with:
    what both wrote alike is parsed once.
    """

    script: str
    settings: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[FunctionDeclaration, ...] = ()
    catalog: str = ""
    engine: str = "vvr"
    engine_version: str | None = None
    source: str = "<script>"
    language: str = "sql"
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    beside: Side | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(f"engine {self.engine!r} is not one of {', '.join(ENGINES)}")
        if self.engine_version is not None and not _VERSION.fullmatch(self.engine_version):
            examples = {"flink": "2.3 or 1.20.3", "vvr": "8.0.11 or 11.1"}[self.engine]
            raise InputError(
                f"engine version {self.engine_version!r} of {self.source} is no version of {self.engine}: "
                f"write numbers with points between them, like {examples}"
            )
        if self.language not in LANGUAGES:
            raise InputError(f"language {self.language!r} is not one of {', '.join(LANGUAGES)}")
        if self.variables and self.language == "sql":
            raise InputError("variables belong to a program: an SQL script has none")
        if self.files and self.language != "python":
            raise InputError("files belong to a Python program: nothing else reads any")

    @property
    def version(self) -> str:
        """The engine version, major.minor as far as it is given."""
        return ".".join((self.engine_version or ENGINES[self.engine]).split(".")[:2])

    @cached_property
    def parsed(self) -> Script:
        """The script in statements. Raises :class:`~airflow_flinkcompat.sql.ScriptError` where it holds none."""
        # The trees of a program say how they were written; a script that reads the same is another notation.
        alike = self.beside if self.beside is not None and self.beside.language == "sql" else None
        like = None if alike is None else alike.parsed
        catalog = self._declared if self.language == "table" else None
        return read_as(self.language, self.script, self.source, self.variables, catalog, like, self.files)

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
        return parse_script(self.catalog, "<catalog>") if self.catalog.strip() else None

    def declarations(self, names: Collection[str]) -> Mapping[str, str]:
        """The DDL of those tables that the side declares, by name.

        Args:
            names: tables by the names that the program has for them.

        Returns:
            Only what stands under its plain name; a name with its catalog would be another one elsewhere.
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
        """The same side with further DDL in its catalog."""
        return replace(self, catalog=";\n".join(filter(None, (self.catalog.strip().rstrip(";"), *ddl))))

    @property
    def not_run(self) -> tuple[Note, ...]:
        """The parts of a program that the side's engine does not run, or not any more.

        On ``vvr`` only where the version is given: which Flink it is made of decides.
        """
        flink = self.version if self.engine == "flink" else _FLINK_OF_VVR.get((self.engine_version or "").split(".")[0])
        if flink is None and self.engine_version is None:
            return ()
        return tuple(
            note for note in self.parsed.notes if note.last is not None and (not flink or _later(flink, note.last))
        )

    @cached_property
    def outputs(self) -> tuple[Mapping[int, Output], tuple[Problem, ...]]:
        """The operators' view of every query by its place in the program, and what could not be unfolded."""
        outputs: dict[int, Output] = {}
        failures: list[Problem] = []
        for i, pipeline in enumerate(self.program.pipelines):
            try:
                outputs[i] = view(pipeline.sink)
            except TooLarge as error:
                failures.append(Problem("too-large", str(error), "", pipeline.span))
        return outputs, tuple(failures)

    @cached_property
    def sha256(self) -> str:
        """The hash of everything that is compared; what was checked is what gets deployed."""
        functions = sorted((f.name, f.kind, f.language, f.definition) for f in self.functions)
        parts = [self.script, sorted(self.settings.items()), functions, self.catalog, self.engine, self.engine_version]
        if self.language != "sql":
            parts += [self.language, sorted(self.variables.items())]
        if self.files:
            parts.append(sorted(self.files.items()))
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()

    def require_query(self) -> None:
        """Raises :class:`InputError` where the script holds no query, and nothing unread that could be one."""
        if not self.program.pipelines and not self.program.problems:
            raise InputError(f"{self.source}: holds no INSERT and no SELECT: there is nothing to check")

    def on(self, engine: str) -> Side:
        """The same side under another engine's state semantics."""
        if engine == self.engine:
            return self
        other = replace(self, engine=engine, engine_version=None)
        # What was worked out of the script knows of no engine.
        vars(other).update({name: vars(self)[name] for name in ("parsed", "program", "outputs") if name in vars(self)})
        return other
