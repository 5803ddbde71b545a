"""Base classes of tasks about a deployment: arguments, ledger, and texts with masked secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, mask_secret
from airflow.sdk import BaseOperator

from airflow_flinkcompat.airflow.links import change_page
from airflow_flinkcompat.airflow.tasks.files import SQL, decoded, find_template, masked, read_template
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, is_path, join_ddl, language_of
from airflow_flinkcompat.project.job_options import KEYS

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy import Ledger
    from airflow_flinkcompat.deploy.ledger.entries import StepEntry
    from airflow_flinkcompat.model import FunctionDeclaration, JobSpec, Language, Waiver


Operator = TypeVar("Operator", bound=BaseOperator)


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn lower-level errors into masked Airflow errors. A fault of the version itself is not retried."""
    from airflow_flinkcompat.backfill.result import BackfillError
    from airflow_flinkcompat.deploy import DeployError, DeployRefused, RolledBack, ScriptRefused
    from airflow_flinkcompat.model import InputError
    from airflow_flinkcompat.secrets import mask_secrets
    from airflow_flinkcompat.sql import ScriptError

    try:
        yield
    except (ScriptError, InputError, BackfillError, ScriptRefused, DeployRefused, RolledBack) as error:
        raise AirflowFailException(mask_secrets(str(error))) from None
    except DeployError as error:
        raise AirflowException(mask_secrets(str(error))) from None


class TaskRole(Enum):
    """Role of a task for its deployment, by which related tasks find the task."""

    CHECK = auto()
    APPROVAL = auto()
    DEPLOY = auto()
    BACKFILL = auto()
    REHEARSAL = auto()
    SHADOW = auto()


class UnmappedMixin:
    """Mixin that forbids the mapping (``.expand``) of a task that branches."""

    @classmethod
    def partial(cls, **_: Any) -> Any:
        """Raise TypeError, because mapped tasks share their successors and cannot choose branches."""
        raise TypeError(
            f"{cls.__name__} cannot be mapped: Airflow would run tasks that a mapped task skips. Create one gate for "
            f"each deployment: gated_redeploy(Deployment(…)) in a loop, or redeploy_dags(file) for a DAG each"
        )


def takes(*names: str) -> Callable[[type[Operator]], type[Operator]]:
    """Append the help of declared options to the Args section of an operator's docstring."""

    def described(operator: type[Operator]) -> type[Operator]:
        lines = [(operator.__doc__ or "").rstrip()]
        for name in names:
            words = KEYS[name].help.format(where="before the script's own"), KEYS[name].task
            templated = " (templated)" if name in operator.template_fields else ""
            lines.append(f"        {name}: {' '.join(words)}{templated}")
        operator.__doc__ = "\n".join(lines) + "\n    "
        return operator

    return described


def wrong_choice(name: str, value: str, *more: str) -> str:
    """Message about a value that is not a declared choice of the argument; "" if the value is valid."""
    known = (*more, *KEYS[name].choices)
    return "" if value in known else f"{name} {value!r} is not one of {', '.join(known)}"


@takes("ledger")
class DeploymentOperator(BaseOperator):
    """A task about one deployment and its ledger.

    Args:
        deployment: Name of the Flink job. (templated)
        flink_conn_id: Connection of type ``flink``. (templated)
        target: Type of target, such as ``kubernetes``, if the connection does not set it. A connection with a different
            target is refused. (templated)
    """

    role: ClassVar[TaskRole | None] = None
    template_fields: Sequence[str] = ("deployment", "flink_conn_id", "target", "ledger")
    # Fields that may contain secrets. The UI shows them masked; the task reads them with ``rendered``.
    secretive_fields: Sequence[str] = ("ledger",)

    def __init__(
        self,
        *,
        deployment: str,
        flink_conn_id: str = "flink_default",
        target: str | None = None,
        ledger: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deployment = deployment
        self.flink_conn_id = flink_conn_id
        self.target = target
        self.ledger = ledger
        self.change_url = ""
        # Values of these fields after rendering, and as passed.
        self._rendered: dict[str, Any] = {}
        self._unmasked: dict[str, Any] = {}

    def _do_render_template_fields(
        self, parent: Any, template_fields: Any, context: Context, jinja_env: Any, seen_oids: set[int]
    ) -> None:
        # Plain and mapped tasks share only this method.
        if parent is not self:
            return super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        self._unmasked = {name: getattr(self, name) for name in self.secretive_fields}
        self._before_rendering(jinja_env)
        for name in self.secretive_fields:
            masked(getattr(self, name))  # Airflow logs a template that cannot be rendered
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        self._after_rendering()
        for name in self.secretive_fields:
            self._rendered[name] = getattr(self, name)
            setattr(self, name, self._masked(name, self._rendered[name]))

    def _before_rendering(self, jinja_env: Any) -> None:
        """Hook for subclasses before Jinja renders the fields."""

    def _after_rendering(self) -> None:
        """Hook for subclasses before the fields are masked."""

    def _masked(self, name: str, value: Any) -> Any:
        return masked(value)

    def rendered(self, name: str) -> Any:
        """The rendered value of a field, without masks."""
        return self._rendered.get(name, getattr(self, name))

    @cached_property
    def hook(self) -> FlinkHook:
        from airflow_flinkcompat.airflow.hooks.flink import FlinkHook

        return FlinkHook(self.flink_conn_id, target=self.target)

    def open_ledger(self) -> Ledger:
        """Open the ledger. Raises AirflowFailException if none is set, LedgerError if it is unusable."""
        return self.hook.ledger(self.deployment, self.rendered("ledger"))

    def link_change(self, entry: int) -> None:
        """Link the task to the page of the change that contains a ledger entry; 0 means no link."""
        self.change_url = change_page(self.open_ledger().id, self.deployment, entry) if entry else ""

    def ledger_for_trigger(self, context: Context) -> dict[str, Any]:
        """Arguments for a trigger that writes to the ledger; empty if the ledger's address has a secret."""
        ledger = self.rendered("ledger")
        if ledger != masked(ledger):
            return {}
        return {"deployment": self.deployment, "ledger": ledger, "owner": run_name(context)}

    def log_lines(self, text: str) -> None:
        """Log each line as a separate record, because this keeps columns aligned in the UI."""
        for line in text.splitlines():
            self.log.info("%s", line)


@takes("settings", "functions", "catalog", "variables")
class ScriptOperator(DeploymentOperator):
    """A task about one deployment and a proposed script.

    Args:
        script: The SQL, or the path of a ``.sql`` file, a PyFlink program (``.py``) or a FLIP-11 program (``.table``).
            A program, its modules and the files it opens are read, and never run. Paths are absolute, or relative to
            the DAG's folder or ``template_searchpath``. The file is read when the task runs, not when the DAG is
            parsed. (templated, like the content of a ``.sql`` file; a program is not a template)
        language: Language of a program that is passed as text: ``python`` or ``table``.
    """

    template_fields: Sequence[str] = (
        *DeploymentOperator.template_fields, "script", "settings", "functions", "catalog", "variables",
    )  # fmt: skip
    secretive_fields: Sequence[str] = (
        *DeploymentOperator.secretive_fields, "script", "settings", "catalog", "variables",
    )  # fmt: skip
    template_ext: Sequence[str] = (SQL,)
    template_fields_renderers = {  # noqa: RUF012
        "script": "sql", "catalog": "sql", "settings": "json", "functions": "json", "variables": "json",
    }  # fmt: skip
    takes_programs: ClassVar[bool] = True

    def __init__(
        self,
        *,
        script: str,
        settings: Mapping[str, str] | None = None,
        functions: Mapping[str, str] | None = None,
        catalog: str | Sequence[str] = "",
        variables: Mapping[str, str] | None = None,
        language: Language | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.script = script
        self.variables = variables
        self.language: str | None = language
        # The text of a program, which is not a template.
        self._program: str | None = None
        self.settings = settings
        self.functions = functions
        self.catalog = catalog
        # The files that were read, by path.
        self.files: dict[str, bytes] = {}
        # The script's file, and the folder to which its path is relative.
        self._place: tuple[Path, Path] | None = None
        self._source = Path(script).name if is_path(script, (SQL, *PROGRAM_SUFFIXES)) else "<script>"

    # -- texts

    def resolve_template_files(self) -> None:
        """Keep paths until the task runs, so that metadata and DAG versions contain no scripts."""
        self.prepare_template()

    def _before_rendering(self, jinja_env: Any) -> None:
        """Replace paths with the unrendered text of their files."""
        from airflow_flinkcompat.sql.script import NO_PROGRAM

        several = [] if isinstance(self.catalog, str) else list(self.catalog or ())
        for path in several or (self.catalog,):
            if is_path(path, PROGRAM_SUFFIXES):
                raise AirflowFailException(NO_PROGRAM.format(path))
        for path in several:
            if not is_path(path, (SQL,)):
                raise AirflowFailException(
                    f"catalog: each item of a list must be the path of a file that ends in {SQL}"
                )
        if is_path(self.script, PROGRAM_SUFFIXES):
            self.language = language_of(self.script)
        if self._is_program and not self.takes_programs:
            from airflow_flinkcompat.deploy.flink.statements import NO_PROGRAMS

            # The connection is still a template, so the target has no name yet.
            where = {"source": self._source, "deployment": self.deployment, "target": "a deployment"}
            raise AirflowFailException(NO_PROGRAMS.format(**where))
        for name in ("script", "catalog"):
            value = getattr(self, name)
            if is_path(value, (SQL, *PROGRAM_SUFFIXES)):
                found, text = self._text_at(value, jinja_env)
                setattr(self, name, text)
                if name == "script":
                    named = Path(value)
                    self._place = found, found.parents[0 if named.is_absolute() else len(named.parts) - 1]
        if several:
            self.catalog, _ = join_ddl((path, self._text_at(path, jinja_env)[1]) for path in several)
        if self._is_program:
            self._program, self.script = self.script, ""

    def _text_at(self, path: str, jinja_env: Any) -> tuple[Path, str]:
        """Find a template file, and read its text."""
        found = find_template(path, jinja_env)
        content = read_template(found)
        self.files[str(found)] = content
        return found, decoded(content, found)

    def _after_rendering(self) -> None:
        if self._program is not None:
            self.script = self._program

    @property
    def _is_program(self) -> bool:
        return self.language not in (None, "sql")

    def _masked(self, name: str, value: Any) -> Any:
        if name != "script" or not self._is_program or not isinstance(value, str):
            return super()._masked(name, value)
        from airflow_flinkcompat.secrets.programs import mask_program, secret_texts

        for secret in secret_texts(value, str(self.language)):
            mask_secret(secret)
        return mask_program(value, str(self.language))

    def reread(self, context: Context) -> None:
        """Read and render the texts again, for a task that waits in a worker."""
        self.files = {}
        for name, value in self._unmasked.items():
            setattr(self, name, value)
        self.render_template_fields(context)

    # -- the proposed side

    def proposed_side(self, engine: str, engine_version: str | None) -> Side:
        """The proposed side of the change. Raises AirflowFailException if a function's kind is unknown."""
        from airflow_flinkcompat.compat import Side

        variables = {str(key): str(value) for key, value in (self.rendered("variables") or {}).items()}
        return Side(
            script=self.rendered("script"),
            settings={str(key): str(value) for key, value in (self.rendered("settings") or {}).items()},
            functions=declared_functions(self.functions),
            catalog=self.rendered("catalog") or "",
            engine=engine,
            engine_version=engine_version,
            source=self._source,
            language=self.language or "sql",
            variables=variables,
            files=self._program_files(variables),
        )

    def waivers(self) -> tuple[Waiver, ...]:
        """Read the waivers next to the script's file. Raises AirflowFailException or InputError."""
        from airflow_flinkcompat.project.waivers import read_waivers, waivers_path

        if self._place is None:
            return ()
        place = waivers_path(self._place[0])
        return read_waivers(decoded(read_template(place), place), str(place)) if place.exists() else ()

    def _program_files(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Texts of a program's modules and data files, by path. The files are watched, like the program."""
        from airflow_flinkcompat.frontends.pyflink.reader import find_local_files
        from airflow_flinkcompat.secrets.programs import secret_texts

        if self._place is None:
            return {}
        path, root = self._place
        found = find_local_files(path, self.rendered("script"), variables, root)
        self.files.update({str(each.path): each.text.encode() for each in found.values()})
        for secret in (secret for each in found.values() for secret in secret_texts(each.text, "python")):
            mask_secret(secret)
        return {name: each.text for name, each in found.items()}


def declared_functions(functions: Mapping[str, str] | None) -> tuple[FunctionDeclaration, ...]:
    """Parse functions such as ``{"f": "scalar:python"}``. Raises AirflowFailException."""
    from airflow_flinkcompat.model import FunctionDeclaration, InputError

    try:
        return tuple(FunctionDeclaration.of(name, str(text)) for name, text in (functions or {}).items())
    except InputError as error:
        raise AirflowFailException(str(error)) from None


def record_failure(context: Context, ledger: Ledger, side: JobSpec, message: str) -> None:
    """Record in the ledger that a version itself is faulty."""
    from airflow_flinkcompat.deploy.ledger.entries import FailedVersionEntry, JobVersion

    ledger.append(FailedVersionEntry(version=JobVersion.of(side), message=message, owner=run_name(context)))


def run_name(context: Context) -> str:
    """Name of a run's task in the ledger. A retry finds the steps of an earlier try by this name."""
    ti = context["ti"]
    return f"airflow:{ti.dag_id}/{ti.run_id}/{ti.task_id}"


def side_of(entry: StepEntry) -> Side:
    from airflow_flinkcompat.compat import Side

    return Side.of(entry.job)


def task_ids(value: str | Sequence[str] | None) -> list[str]:
    """Convert one or several task ids to a list."""
    return [value] if isinstance(value, str) else list(value or ())


def known_tables(history: object) -> dict[str, str]:
    tables: Mapping[object, object] | None = history if isinstance(history, Mapping) else None if history else {}
    if tables is None or not all(isinstance(part, str) for pair in tables.items() for part in pair):
        raise ValueError(f"history: {history!r} is not a mapping from table names to the places of their rows")
    return {str(table): str(place) for table, place in tables.items()}
