"""Options of a job, each declared once.

The command line makes its options from these declarations, the project file its keys, the operators their arguments,
and the reference pages their tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from airflow_flinkcompat.model import ENGINES, PLANNER_MODES, PLANNER_VARIABLE, FunctionDeclaration, PlannerMode

ENGINE_VARIABLE = "FLINKCOMPAT_ENGINE"
"""The variable that holds the engine where nothing else names one."""
FILLED_ELSEWHERE = "placeholders_filled_elsewhere"


@dataclass(frozen=True)
class Option:
    """The declaration of one option.

    Attributes:
        help: What it means; ``{where}`` stands for the scripts in which a setting is in force.
        flag: Its option on the command line; "" if there is none.
        metavar: The form of its value there; None: a text.
        choices: The values that it may have; empty: any.
        variable: The environment variable that holds it; "" if there is none.
        is_repeatable: True if the command line may name several values.
        key: Its key in the project file; "" if there is none.
        is_of_check: True if the key is an argument of the gate, ``check.<key>``, which the file may write without
            ``check``.
    """

    help: str
    flag: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    variable: str = ""
    is_repeatable: bool = False
    key: str = ""
    is_of_check: bool = False


def option(**facts: Any) -> dict[str, Option]:
    """Metadata for :func:`dataclasses.field` that declares an option by the fields of :class:`Option`."""
    return {"option": Option(**facts)}


def declarations(of: type[Any]) -> dict[str, Option]:
    """Options that a dataclass declares, by the names of their fields."""
    return {each.name: each.metadata["option"] for each in fields(of) if "option" in each.metadata}


@dataclass(frozen=True)
class JobOptions:
    """Options of judging any script.

    Attributes:
        settings: Settings in force before the script's own SETs.
        functions: Declarations of functions that the script only uses.
        catalog: DDL.
        variables: Values that only the environment of a program knows.
        engine: The engine whose state semantics apply; None: nothing names one.
        engine_version: Its version; None: the default version of the engine.
        planner: When Flink's own planner is asked; None: nothing names it.
        jars: Jars of connectors, formats and functions, for that planner.
        filled_elsewhere: True if the deploying tool fills in placeholders of another tool, as ``${NAME}``.
        catalog_sources: The files of that DDL, as messages call them, each with the number of its lines.
        catalog_files: The files of the catalog from the project's folder, in order, while they are not read.
    """

    settings: Mapping[str, str] = field(
        default_factory=dict,
        metadata=option(
            help="A setting in force {where}.", flag="--set", metavar="K=V", is_repeatable=True, key="settings"
        ),
    )
    functions: tuple[FunctionDeclaration, ...] = field(
        default=(),
        metadata=option(
            help="Declare a function that a script only uses.",
            flag="--function",
            metavar="NAME=KIND[:LANGUAGE]",
            is_repeatable=True,
            key="functions",
        ),
    )
    catalog: str = field(
        default="",
        metadata=option(
            help="DDL of tables that the scripts do not declare; several files count as one, in this order.",
            flag="--catalog",
            metavar="FILE",
            is_repeatable=True,
            key="catalog",
        ),
    )
    variables: Mapping[str, str] = field(
        default_factory=dict,
        metadata=option(
            help="A value only a program's environment knows.",
            flag="--var",
            metavar="NAME=VALUE",
            is_repeatable=True,
            key="variables",
        ),
    )
    engine: str | None = field(
        default=None,
        metadata=option(
            help="The engine that runs the job (default: both are judged, and the worse verdict counts).",
            flag="--engine",
            choices=tuple(ENGINES),
            variable=ENGINE_VARIABLE,
            key="engine",
            is_of_check=True,
        ),
    )
    engine_version: str | None = field(
        default=None,
        metadata=option(
            help="Version of the engine, for instance 2.3.",
            flag="--engine-version",
            key="engine_version",
            is_of_check=True,
        ),
    )
    planner: PlannerMode | None = field(
        default=None,
        metadata=option(
            help="Ask Flink's own planner on this machine (engine flink); auto: where it is installed for the version "
            "(default: that of the project file, else auto).",
            flag="--planner",
            choices=PLANNER_MODES,
            variable=PLANNER_VARIABLE,
            key="planner",
            is_of_check=True,
        ),
    )
    jars: tuple[Path, ...] = field(
        default=(),
        metadata=option(
            help="Jar of a connector, format or function for the Flink on this machine; may be repeated (default: "
            "those of the project file).",
            flag="--jar",
            metavar="FILE",
            is_repeatable=True,
            key="jars",
            is_of_check=True,
        ),
    )
    filled_elsewhere: bool = field(
        default=False,
        metadata=option(
            help="True if another tool deploys the jobs and fills in placeholders of its own, as ${NAME}.",
            key=FILLED_ELSEWHERE,
        ),
    )
    catalog_sources: tuple[tuple[str, int], ...] = ()
    catalog_files: tuple[str, ...] = ()

    def over(self, below: JobOptions) -> tuple[Self, tuple[str, ...]]:
        """Merge these options over others, such as those of the project file.

        Settings and variables are merged by their keys, functions by their names. A version belongs to the engine that
        is named with it, and counts for no other one.

        Args:
            below: The options that apply where these set nothing.

        Returns:
            The merged options, and those taken from ``below``: a name and its value each.
        """
        functions = {each.name.lower(): each for each in (*below.functions, *self.functions)}
        given = {each.name.lower() for each in self.functions}
        if self.catalog:
            below = replace(below, catalog="", catalog_sources=(), catalog_files=())
        if (self.engine or below.engine) != below.engine:
            below = replace(below, engine_version=None)
        named = {name: getattr(self, name) or getattr(below, name) for name in _REPLACED}
        merged = replace(
            self,
            settings={**below.settings, **self.settings},
            variables={**below.variables, **self.variables},
            functions=tuple(functions.values()),
            **named,
        )
        taken = {
            "engine": None if self.engine else merged.engine,
            "version": None if self.engine_version else merged.engine_version,
            "settings": ", ".join(sorted(below.settings.keys() - self.settings.keys())),
            "functions": ", ".join(sorted(functions.keys() - given)),
            "catalog": ", ".join(below.catalog_files) or ("DDL" if below.catalog else None),
            "variables": ", ".join(sorted(below.variables.keys() - self.variables.keys())),
            FILLED_ELSEWHERE: "true" if below.filled_elsewhere else None,
            "planner": None if self.planner else below.planner,
            "jars": None if self.jars else ", ".join(each.name for each in below.jars),
        }
        return merged, tuple(f"{what} {value}" for what, value in taken.items() if value)


_REPLACED = (
    "engine", "engine_version", "catalog", "catalog_sources", "catalog_files", "planner", "jars", "filled_elsewhere",
)  # fmt: skip
"""Fields of :class:`JobOptions` whose value is replaced as a whole."""
