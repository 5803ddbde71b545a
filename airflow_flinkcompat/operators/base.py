"""What every task about one deployment shares: its arguments, its ledger, and texts that never show a secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, mask_secret
from airflow.sdk import BaseOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy import Ledger, LedgerEntry
    from airflow_flinkcompat.hooks.flink import FlinkHook
    from airflow_flinkcompat.plan import FunctionDeclaration

_SQL = ".sql"
# As sql.PROGRAM, which takes the SQL parser to import.
PROGRAMS = (".py", ".table")


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turns what the layers below raise into one masked message.

    A script or argument that cannot be right, and a version that was rolled back, fail the task for good; a failed
    deployment step may be retried.
    """
    from airflow_flinkcompat.backfill.errors import BackfillError
    from airflow_flinkcompat.compat import InputError
    from airflow_flinkcompat.deploy import DeployError, DeployRefused, RolledBack, ScriptRefused
    from airflow_flinkcompat.sql import ScriptError, mask_secrets

    try:
        yield
    except (ScriptError, InputError, BackfillError, ScriptRefused, DeployRefused, RolledBack) as error:
        raise AirflowFailException(mask_secrets(str(error))) from None
    except DeployError as error:
        raise AirflowException(mask_secrets(str(error))) from None


class DeploymentOperator(BaseOperator):
    """A task about one deployment and its ledger.

    :param deployment: name of the Flink job. (templated)
    :param flink_conn_id: connection of type ``flink``. (templated)
    :param ledger: folder or URI of the ledger (templated); default: the connection's, then ``$FLINKCOMPAT_LEDGER``.
    """

    template_fields: Sequence[str] = ("deployment", "flink_conn_id", "ledger")
    # Fields that may hold secrets: the UI gets them masked, the task reads them with ``rendered``.
    secretive_fields: Sequence[str] = ("ledger",)

    def __init__(
        self, *, deployment: str, flink_conn_id: str = "flink_default", ledger: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.deployment = deployment
        self.flink_conn_id = flink_conn_id
        self.ledger = ledger
        # The fields as rendered (they are masked then), and as given.
        self._rendered: dict[str, Any] = {}
        self._given: dict[str, Any] = {}

    def _do_render_template_fields(
        self, parent: Any, template_fields: Any, context: Context, jinja_env: Any, seen_oids: set[int]
    ) -> None:
        # The one step that plain and mapped tasks share.
        if parent is not self:
            return super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        self._given = {name: getattr(self, name) for name in self.secretive_fields}
        self._before_rendering(jinja_env)
        for name in self.secretive_fields:
            masked(getattr(self, name))  # Airflow logs a template that cannot be rendered
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        self._after_rendering()
        for name in self.secretive_fields:
            self._rendered[name] = getattr(self, name)
            setattr(self, name, self._masked(name, self._rendered[name]))

    def _before_rendering(self, jinja_env: Any) -> None:
        """For subclasses: what is to happen to the fields before Jinja sees them."""

    def _after_rendering(self) -> None:
        """For subclasses: what is to happen to the fields before they are masked."""

    def _masked(self, name: str, value: Any) -> Any:
        return masked(value)

    def rendered(self, name: str) -> Any:
        """A field as rendered, unmasked."""
        return self._rendered.get(name, getattr(self, name))

    @cached_property
    def hook(self) -> FlinkHook:
        from airflow_flinkcompat.hooks.flink import FlinkHook

        return FlinkHook(self.flink_conn_id)

    def open_ledger(self) -> Ledger:
        """Raises AirflowFailException when no ledger is named, LedgerError when its place cannot be used."""
        return self.hook.ledger(self.deployment, self.rendered("ledger"))

    def ledger_for_trigger(self, context: Context) -> dict[str, Any]:
        """What a trigger needs to write into the ledger; nothing where its address holds a secret, which stays here."""
        ledger = self.rendered("ledger")
        if ledger != masked(ledger):
            return {}
        return {"deployment": self.deployment, "ledger": ledger, "owner": run_name(context)}

    def log_lines(self, text: str) -> None:
        """One record a line, so that columns stay aligned in the UI."""
        for line in text.splitlines():
            self.log.info("%s", line)


class ScriptOperator(DeploymentOperator):
    """A task about one deployment and a proposed script.

    :param script: the SQL, or the path of a file: ``.sql``, or a program of the Table API, ``.py`` (PyFlink, which is
        read and never run) or ``.table`` (FLIP-11's notation). Absolute, or relative to the DAG's folder or
        ``template_searchpath``; read when the task runs, not when the DAG is parsed. (templated, also what a ``.sql``
        file holds; a program is Python, and no template)
    :param variables: of a program: name → value of what only its environment knows, as ``--var`` of the command line.
        Where a value is secret, a placeholder. (templated)
    :param language: of a program that is given as text: ``python`` or ``table``.
    :param settings: options that hold for the job beside the script's own SET. (templated)
    :param functions: declared functions: name → ``kind`` or ``kind:language``, kind one of scalar, aggregate, table.
        (templated)
    :param catalog: DDL (or ``.sql`` file) of tables the script reads but does not declare. (templated)
    """

    template_fields: Sequence[str] = (
        *DeploymentOperator.template_fields, "script", "settings", "functions", "catalog", "variables",
    )  # fmt: skip
    secretive_fields: Sequence[str] = (
        *DeploymentOperator.secretive_fields, "script", "settings", "catalog", "variables",
    )  # fmt: skip
    template_ext: Sequence[str] = (_SQL,)
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
        catalog: str = "",
        variables: Mapping[str, str] | None = None,
        language: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.script = script
        self.variables = variables
        self.language = language
        # A program as read: no template.
        self._program: str | None = None
        self.settings = settings
        self.functions = functions
        self.catalog = catalog
        # The files that were read, by path.
        self.files: dict[str, bytes] = {}
        self._source = Path(script).name if _is_file(script, (_SQL, *PROGRAMS)) else "<script>"

    # -- texts

    def resolve_template_files(self) -> None:
        """Leaves paths as they are until the task runs.

        So the metadata database holds no copy of a script (and of no secret in it), and a DAG gets no new version
        with every edit of a script.
        """
        self.prepare_template()

    def _before_rendering(self, jinja_env: Any) -> None:
        """Paths become the text of their files, still with its Jinja."""
        from airflow_flinkcompat.sql import NO_PROGRAM, language_of

        if _is_file(self.catalog, PROGRAMS):
            raise AirflowFailException(NO_PROGRAM.format(self.catalog))
        if _is_file(self.script, PROGRAMS):
            self.language = language_of(self.script)
        if self._is_program and not self.takes_programs:
            from airflow_flinkcompat.deploy.flink.statements import NO_GATEWAY

            raise AirflowFailException(NO_GATEWAY.format(source=self._source, deployment=self.deployment))
        for name in ("script", "catalog"):
            value = getattr(self, name)
            if _is_file(value, (_SQL, *PROGRAMS)):
                found = find_template(value, jinja_env)
                content = read_template(found)
                self.files[str(found)] = content
                setattr(self, name, decoded(content, found))
        if self._is_program:
            self._program, self.script = self.script, ""

    def _after_rendering(self) -> None:
        if self._program is not None:
            self.script = self._program

    @property
    def _is_program(self) -> bool:
        return self.language not in (None, "sql")

    def _masked(self, name: str, value: Any) -> Any:
        if name != "script" or not self._is_program or not isinstance(value, str):
            return super()._masked(name, value)
        from airflow_flinkcompat.program import mask_program, secret_texts

        for secret in secret_texts(value, str(self.language)):
            mask_secret(secret)
        return mask_program(value, str(self.language))

    def reread(self, context: Context) -> None:
        """Read and render the texts again, for a task that waits in a worker."""
        self.files = {}
        for name, value in self._given.items():
            setattr(self, name, value)
        self.render_template_fields(context)

    # -- the proposed side

    def proposed_side(self, engine: str, engine_version: str | None) -> Side:
        """The proposed side of the change. Raises AirflowFailException: a function's kind is not known."""
        from airflow_flinkcompat.compat import Side

        return Side(
            script=self.rendered("script"),
            settings={str(key): str(value) for key, value in (self.rendered("settings") or {}).items()},
            functions=declared_functions(self.functions),
            catalog=self.rendered("catalog") or "",
            engine=engine,
            engine_version=engine_version,
            source=self._source,
            language=self.language or "sql",
            variables={str(key): str(value) for key, value in (self.rendered("variables") or {}).items()},
        )


def _is_file(value: Any, endings: tuple[str, ...] = (_SQL,)) -> bool:
    return isinstance(value, str) and value.endswith(endings) and "\n" not in value


def read_template(path: Path) -> bytes:
    """Raises AirflowFailException."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise AirflowFailException(f"script file {str(path)!r} cannot be read: {error.strerror}") from None


def decoded(content: bytes, path: Path) -> str:
    """The text of a file, ended by a line break: it never looks like a path again. Raises AirflowFailException."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise AirflowFailException(f"{path}:{line}: is not UTF-8 text; save the script as UTF-8") from None
    return text if text.endswith("\n") else f"{text}\n"


def find_template(path: str, jinja_env: Any) -> Path:
    """Where a ``.sql`` file is. Raises AirflowFailException, naming the places looked at."""
    places = [] if Path(path).is_absolute() else [Path(root) for root in getattr(jinja_env.loader, "searchpath", ())]
    for candidate in [place / path for place in places] or [Path(path)]:
        if candidate.is_file():
            return candidate
    looked = f"; looked in {', '.join(map(str, places))}" if places else ""
    raise AirflowFailException(
        f"script file {path!r} is not there{looked}. Give an absolute path, or one relative to the DAG's folder or to "
        "a folder of template_searchpath"
    )


def masked(value: Any) -> Any:
    """``value`` with every secret in its texts masked; what it holds is masked in logs from here on."""
    from airflow_flinkcompat.sql import mask_secrets

    if isinstance(value, str):
        for secret in secret_values(value):
            mask_secret(secret)
        return mask_secrets(value)
    if isinstance(value, Mapping):
        return {key: _masked_option(str(key), item) for key, item in value.items()}
    return value


def _masked_option(key: str, value: Any) -> Any:
    """An option's value, judged by its name as in a script."""
    if not isinstance(value, str):
        return masked(value)
    from airflow_flinkcompat.sql import mask_option

    as_statement = "SET '{}' = '{}';".format(key.replace("'", "''"), value.replace("'", "''"))
    for secret in secret_values(as_statement):
        mask_secret(secret)
    return mask_option(key, value)


def secret_values(text: str) -> list[str]:
    """The literal secrets of a script, as written; of a text that is no script: none."""
    from airflow_flinkcompat.sql import ScriptError, find_secrets, parse_script

    try:
        script = parse_script(text)
    except ScriptError:
        return []
    lines = text.split("\n")
    found = (_between(lines, secret.span) for secret in find_secrets(script))
    # As written and as it is meant: a quote inside is doubled.
    spellings = (text for raw in found for text in (raw.strip("'\"`"), raw.replace("''", "'").strip("'\"`")))
    return [text for text in dict.fromkeys(spellings) if text.strip()]


def _between(lines: list[str], span: Any) -> str:
    """The text of a span (1-based, end inclusive)."""
    rows = lines[span.line - 1 : span.end_line]
    rows[-1] = rows[-1][: span.end_column]
    rows[0] = rows[0][span.column - 1 :]
    return "\n".join(rows)


_KINDS = ("scalar", "aggregate", "table")


def declared_functions(functions: Mapping[str, str] | None) -> tuple[FunctionDeclaration, ...]:
    """``{"f": "scalar:python"}`` → declarations. Raises AirflowFailException: an unknown kind."""
    from airflow_flinkcompat.plan import FunctionDeclaration

    declarations = []
    for name, text in (functions or {}).items():
        kind, _, language = str(text).lower().partition(":")
        if kind not in _KINDS:
            raise AirflowFailException(f"function {name!r}: kind {kind!r} is not one of {', '.join(_KINDS)}")
        declarations.append(FunctionDeclaration(name, kind, language or "java"))
    return tuple(declarations)


def record(context: Context, ledger: Ledger, kind: str, side: Side, message: str, **more: Any) -> LedgerEntry:
    """Note in the ledger what became of a version, by its hash: ``failed``, ``rejected``, ``unchanged``.

    The script itself is not kept: it may hold secrets, or be one that cannot be read.
    """
    from airflow_flinkcompat.deploy import LedgerEntry

    entry = LedgerEntry(
        kind=kind, engine=side.engine, engine_version=side.engine_version, sha256=side.sha256, message=message,
        owner=run_name(context), **more,
    )  # fmt: skip
    return ledger.append(entry)


def run_name(context: Context) -> str:
    """Names this task of this run in the ledger: a retry may take up what its former try began."""
    ti = context["ti"]
    return f"airflow:{ti.dag_id}/{ti.run_id}/{ti.task_id}"


def side_of(entry: LedgerEntry) -> Side:
    """The side that a ledger entry holds."""
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.plan import FunctionDeclaration

    known = ("name", "kind", "language", "definition")
    return Side(
        script=entry.script,
        settings=entry.settings,
        functions=tuple(FunctionDeclaration(**{k: row[k] for k in known if k in row}) for row in entry.functions),
        catalog=entry.catalog,
        engine=entry.engine,
        engine_version=entry.engine_version,
        source=f"deployed #{entry.number}",
        language=entry.language,
        variables=entry.variables,
    )


def task_ids(value: str | Sequence[str] | None) -> list[str]:
    """One task id or several, as a list."""
    return [value] if isinstance(value, str) else list(value or ())
