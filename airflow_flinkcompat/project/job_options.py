"""Options of a job, each declared once.

The declarations define command-line options, project-file keys, operator arguments and the tables of the reference
pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airflow_flinkcompat.model import ENGINES, PLANNER_MODES, PLANNER_NETWORKS, PLANNER_VARIABLE, Outcome
from airflow_flinkcompat.model.options import ENGINE_VARIABLE, LEDGER_VARIABLE, NETWORK_VARIABLE

if TYPE_CHECKING:  # a DAG file that only names operators loads no job
    from airflow_flinkcompat.model import FunctionDeclaration, PlannerMode

FAIL_ON: Mapping[str, Outcome | None] = {
    "partial": Outcome.PARTIAL,
    "unknown": Outcome.UNKNOWN,
    "incompatible": Outcome.INCOMPATIBLE,
    "never": None,
}
"""The mildest failing outcome for each value of ``fail_on``; None if no outcome fails."""
DEFAULT_GATE = "unknown"
"""The default value of ``fail_on``."""
FILLED_ELSEWHERE = "placeholders_filled_elsewhere"
NETWORK = "planner_network"
_FILE = "the value in the project file"


@dataclass(frozen=True)
class JobOption:
    """The declaration of one option.

    Attributes:
        help: Help text; ``{where}`` stands for the scripts to which a setting applies.
        flag: The command-line flag; "" if the command line lacks the option.
        metavar: The form of the value on the command line; None for a plain text.
        default: Description of the default on the command line; "" without a default.
        form: The form of the value in the project file.
        task: Additional help for the argument of an Airflow task.
        choices: The allowed values; empty if every value is allowed.
        variable: The environment variable that sets the option; "" if there is none.
        repeats: True if the option may be repeated on the command line.
        key: The project-file key, if the key differs from the name of the field.
        of_check: True for an argument of the gate. The project file may set it as ``check.<key>`` or as ``<key>``.
        of_file: True if the option applies to the whole project file and no deployment can override it.
    """

    help: str
    flag: str = ""
    metavar: str | None = None
    default: str = ""
    form: str = "a text"
    task: str = ""
    choices: tuple[str, ...] = ()
    variable: str = ""
    repeats: bool = False
    key: str = ""
    of_check: bool = False
    of_file: bool = False

    def on_command_line(self, where: str) -> str:
        """Help text on the command line; ``where`` names the scripts to which settings apply."""
        words = self.help.format(where=where)
        return f"{words.removesuffix('.')} (default: {self.default})." if self.default else words


def option(*facts: Any, **more: Any) -> dict[str, JobOption]:
    """Metadata for :func:`dataclasses.field`, from the arguments of :class:`JobOption`."""
    return {"option": JobOption(*facts, **more)}


def declarations(of: type[Any]) -> dict[str, JobOption]:
    """The options that a dataclass declares, by the names of their fields."""
    return {each.name: each.metadata["option"] for each in fields(of) if "option" in each.metadata}


@dataclass(frozen=True)
class JobOptions:
    """Options for judging a script.

    Attributes:
        catalog_sources: The name of each catalog file in messages, with its number of lines.
        catalog_files: Paths of catalog files that are not read yet, relative to the project's folder, in order.
    """

    settings: Mapping[str, str] = field(
        default_factory=dict,
        metadata=option(
            "A Flink setting that applies {where}.",
            "--set",
            "K=V",
            form="a table",
            task="Option → value.",
            repeats=True,
        ),
    )
    functions: tuple[FunctionDeclaration, ...] = field(
        default=(),
        metadata=option(
            "Declaration of a function that the script uses but does not create.", "--function", "NAME=KIND[:LANGUAGE]",
            form="a table, name = `kind` or `kind:language`",
            task="Name → ``kind`` or ``kind:language``, kind one of scalar, aggregate, table.", repeats=True,
        ),
    )  # fmt: skip
    catalog: str = field(
        default="",
        metadata=option(
            "DDL of tables that the scripts do not declare. Several files are read as one, in the listed order.",
            "--catalog", "FILE", form="a `.sql` file, a list of them, or DDL",
            task="DDL, a ``.sql`` file, or a list of them.", repeats=True,
        ),
    )  # fmt: skip
    variables: Mapping[str, str] = field(
        default_factory=dict,
        metadata=option(
            "An environment variable of a PyFlink program, with its value.", "--var", "NAME=VALUE", form="a table",
            task="Name → value. Use a placeholder for a secret value.", repeats=True,
        ),
    )  # fmt: skip
    engine: str | None = field(
        default=None,
        metadata=option(
            "The engine that runs the job.",
            "--engine", default="both engines are judged, and the worse verdict applies", choices=ENGINES,
            variable=ENGINE_VARIABLE, task="``auto``: the engine of the target.", of_check=True,
        ),
    )  # fmt: skip
    engine_version: str | None = field(
        default=None,
        metadata=option(
            "Version of the engine, for instance 2.3.", "--engine-version",
            task="With engine ``auto``, the version of the target.",
            of_check=True,
        ),
    )  # fmt: skip
    planner: PlannerMode | None = field(
        default=None,
        metadata=option(
            "Ask Flink's own planner on this machine (engine flink); auto: if it is installed for the version.",
            "--planner", default=f"{_FILE}, else auto", choices=PLANNER_MODES, variable=PLANNER_VARIABLE,
            task="A task asks the planner on its worker; with ``always``, the task fails if the worker has no planner. "
            f"None: ``${PLANNER_VARIABLE}``, else ``auto``. The planner restores the last savepoint or checkpoint of "
            "the deployed job if the worker can read the savepoint. The report names the basis of its verdict.",
            of_check=True,
        ),
    )  # fmt: skip
    jars: tuple[Path, ...] = field(
        default=(),
        metadata=option(
            "A jar of a connector, format or function for the Flink on this machine; may be repeated.",
            "--jar", "FILE", default="the jars of the project file", form="a list of paths or patterns",
            task="A list of paths or patterns such as ``lib/*.jar``. Relative paths start from the DAG's folder.",
            repeats=True, of_check=True,
        ),
    )  # fmt: skip
    filled_elsewhere: bool = field(
        default=False,
        metadata=option(
            "True if another tool deploys the jobs and fills in its own placeholders, such as `${{NAME}}`.",
            form="`true` or `false`", key=FILLED_ELSEWHERE, of_file=True,
        ),
    )  # fmt: skip
    catalog_sources: tuple[tuple[str, int], ...] = ()
    catalog_files: tuple[str, ...] = ()

    def over(self, below: JobOptions) -> tuple[Self, tuple[str, ...]]:
        """Merge these options over options of lower precedence, such as the options of the project file.

        Settings and variables are merged by key, functions by name. A version applies only together with the engine
        that was set in the same place.
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
"""Fields of :class:`JobOptions` that are replaced as a whole, not merged."""


GATE: Mapping[str, JobOption] = {
    "policy": JobOption(
        "The branch of each outcome in Airflow: resume, migrate, restart, approve or reject.",
        form="a table",
        task="A mapping from outcome to branch, or a ``compat.Policy``. By default, a compatible change resumes, and "
        "every other change asks for approval. An incompatible change restarts if a FlinkBackfillOperator of the "
        "deployment follows and no state can be kept. With a branch ``migrate``, an incompatible change follows "
        "this branch if a migration keeps all of the state (``migratable``), and asks for approval if a migration "
        "keeps some of the state (``partly_migratable``). Before the branch ``migrate`` is followed, a savepoint of "
        "the running job is compared with the prediction of the plan; if both differ or cannot be compared, a "
        "person is asked. If the scripts and the worker's planner do not show how much state a migration keeps, the "
        "planner of the target or of the connection's ``planner_conn_id`` is asked. If there is none, a person is "
        "asked.",
        of_check=True,
    ),
    "ledger": JobOption(
        "Folder or object-store URI of the ledgers.", "--ledger", "URI", default=_FILE, variable=LEDGER_VARIABLE,
        task=f"By default, the ledger of the connection, or else the value of ``${LEDGER_VARIABLE}``.",
    ),
    "fail_on": JobOption(
        "Exit with code 1 if the outcome is this one or a worse one.", "--fail-on",
        default=f"{_FILE}, else {DEFAULT_GATE}",
        choices=tuple(FAIL_ON), of_file=True,
    ),
    NETWORK: JobOption(
        "Allow connectors to open connections while Flink's planner plans a script. Not allowed by default.",
        choices=PLANNER_NETWORKS, variable=NETWORK_VARIABLE, of_file=True,
        task=f"``${NETWORK_VARIABLE}`` on the worker overrides this value.",
    ),
}  # fmt: skip
"""Options of the gate and of the ledger, which do not affect the verdict on a script."""
_DECLARED = {**{each.key or name: each for name, each in declarations(JobOptions).items()}, **GATE}
CHECK_KEYS = tuple(key for key, each in _DECLARED.items() if each.of_check)
"""Project-file keys for arguments of the gate, inside or outside of the table ``check``."""
KEYS: Mapping[str, JobOption] = {key: _DECLARED[key] for key in (*CHECK_KEYS, *_DECLARED)}
"""The project-file keys that the command line and the operators read."""
