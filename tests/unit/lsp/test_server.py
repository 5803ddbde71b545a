"""The real server over standard input and output: what an editor shows of scripts, and when."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from lsprotocol.types import (
    Diagnostic,
    DiagnosticSeverity,
    DidOpenTextDocumentParams,
    Range,
    TextDocumentItem,
    TextDocumentSyncKind,
)

from tests.support.cli.command import BROKEN, ENVIRONMENT, INCOMPATIBLE, PROGRAM, SECRETIVE, TABLES, V1
from tests.support.fleet.repository import git
from tests.unit.lsp.editor import Editor

TITLE = "Window type, size, offset or time attribute changed"
PROJECT = """\
engine = "flink"

[deployments.orders]
script = "jobs/orders.sql"

[deployments.clicks]
script = "jobs/clicks.sql"

[deployments.program]
script = "jobs/job.py"
"""
_OF_CI = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "FLINKCOMPAT_LEDGER", "FLINKCOMPAT_ENGINE")


def environment(folder: Path) -> dict[str, str]:
    """Variables without those that say what to compare with; temporary files lie in a folder of their own."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    rest = {name: value for name, value in ENVIRONMENT.items() if name not in _OF_CI}
    return {**rest, "TMPDIR": str(temporary), "COLUMNS": "100"}


def make_project(folder: Path, head: str = "") -> Path:
    """Three deployments, committed as they are deployed."""
    root = folder / "größe 😀"
    (root / "jobs").mkdir(parents=True)
    for name in ("orders", "clicks"):
        (root / f"jobs/{name}.sql").write_text(V1, encoding="utf-8")
    (root / "jobs/job.py").write_text(PROGRAM, encoding="utf-8")
    (root / "flinkcompat.toml").write_text(head + PROJECT, encoding="utf-8")
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "first")
    return root


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("editor").resolve()


@pytest.fixture(scope="module")
def root(workshop: Path) -> Path:
    return make_project(workshop)


@pytest.fixture(scope="module")
def editor(workshop: Path, root: Path) -> Iterator[Editor]:
    """One editor for all tests of this module; it has to end well, and to leave nothing behind."""
    started = Editor(environment(workshop), "--against", "git:HEAD", cwd=root)
    yield started
    assert started.quit() == 0
    assert list((workshop / "temporary").iterdir()) == []


def cut(text: str, place: Range) -> str:
    """What an editor marks: UTF-16 code units of lines, as the protocol counts them."""
    lines = text.split("\n")
    assert place.start.line == place.end.line
    units = lines[place.start.line].encode("utf-16-le")
    return units[2 * place.start.character : 2 * place.end.character].decode("utf-16-le")


def only(diagnostics: list[Diagnostic] | tuple[Diagnostic, ...]) -> Diagnostic:
    (found,) = diagnostics
    return found


class TestAgainstGit:
    @pytest.fixture
    def orders(self, editor: Editor, root: Path) -> Iterator[Path]:
        path = root / "jobs" / "orders.sql"
        assert editor.open(path).diagnostics == ()
        yield path
        assert editor.close(path).diagnostics == ()

    def test_what_the_server_says_it_can(self, editor: Editor) -> None:
        assert editor.server.text_document_sync.change is TextDocumentSyncKind.Full
        assert editor.server.hover_provider
        assert editor.server.code_lens_provider
        assert editor.server.execute_command_provider.commands == ("flinkcompat.refresh",)

    def test_nothing_changed(self, editor: Editor, orders: Path) -> None:
        assert editor.lines(orders) == ["orders: unchanged against HEAD"]
        assert editor.hover(orders, 1, 3) == ""

    def test_a_change_that_is_not_saved(self, editor: Editor, orders: Path) -> None:
        answer = editor.change(orders, INCOMPATIBLE)
        found = only(answer.diagnostics)
        assert (answer.version, found.severity, found.code) == (2, DiagnosticSeverity.Error, "window-changed")
        assert found.source == "flinkcompat"
        assert cut(INCOMPATIBLE, found.range).startswith("TABLE(TUMBLE(TABLE orders")
        page = Path(unquote(urlparse(found.code_description.href).path))
        assert page.name == "window-changed.md"
        assert page.read_text(encoding="utf-8").splitlines()[1] == f"# {TITLE}"
        assert editor.lines(orders) == ["orders: INCOMPATIBLE against HEAD"]
        assert editor.change(orders, V1).diagnostics == ()

    def test_where_it_stood_in_what_is_deployed(self, editor: Editor, orders: Path) -> None:
        found = only(editor.change(orders, f"-- a line more\n{INCOMPATIBLE}").diagnostics)
        former = only(found.related_information)
        assert former.message == "deployed (HEAD): TUMBLE(order_time, '1' MINUTE)"
        assert former.location.range.start.line == found.range.start.line - 1
        deployed = Path(unquote(urlparse(former.location.uri).path))
        assert deployed.read_text(encoding="utf-8") == V1
        assert "TUMBLE" in cut(V1, former.location.range)

    def test_the_hover_says_what_it_means_and_what_to_do(self, editor: Editor, orders: Path) -> None:
        place = only(editor.change(orders, INCOMPATIBLE).diagnostics).range.start
        text = editor.hover(orders, place.line, place.character + 2)
        assert text.startswith(f"**{TITLE}** (`window-changed`, incompatible)")
        assert "* deployed, HEAD: `TUMBLE(order_time, '1' MINUTE)`" in text
        assert "* here: `TUMBLE(order_time, '2' MINUTE)`" in text
        assert "**If the job were resumed:** Flink would keep running WITH WRONG ROWS AND NO ERROR." in text
        assert "**Next:** Do not resume. A rewritten savepoint may keep some of the state" in text
        assert "```sh\nflinkcompat migrate" in text
        assert f"# {TITLE}\n" in text
        assert "All rules" not in text
        assert editor.hover(orders, 1, 3) == ""

    def test_the_first_line_shows_the_whole_report(self, editor: Editor, orders: Path) -> None:
        editor.change(orders, INCOMPATIBLE)
        assert "## INCOMPATIBLE: the savepoint must not be used" in editor.hover(orders, 0, 0)

    def test_units_of_utf_16(self, editor: Editor, orders: Path) -> None:
        """Umlauts are one unit, the emoji two."""
        text = INCOMPATIBLE.replace("FROM TABLE(", "/* größer 😀😀 */ FROM TABLE(")
        found = only(editor.change(orders, text).diagnostics)
        assert cut(text, found.range).startswith("TABLE(TUMBLE(")
        assert found.range.start.character == len("/* größer 😀😀 */ FROM ") + 2
        assert "window-changed" in editor.hover(orders, found.range.start.line, found.range.start.character)

    def test_an_error_of_syntax(self, editor: Editor, orders: Path) -> None:
        found = only(editor.change(orders, BROKEN).diagnostics)
        assert (found.severity, found.code) == (DiagnosticSeverity.Error, "input-not-readable")
        assert BROKEN.split("\n")[found.range.start.line].lstrip().startswith(("SELECT FROM", "WHERE"))
        assert found.code_description is None
        (line,) = editor.lines(orders)
        assert line.startswith("orders: not readable: ")

    def test_a_secret_is_nowhere_in_the_clear(self, editor: Editor, orders: Path) -> None:
        found = only(editor.change(orders, SECRETIVE).diagnostics)
        assert "properties.sasl.password" in found.message
        said = f"{found} {editor.lines(orders)} {editor.hover(orders, found.range.start.line, 5)} {editor.messages}"
        assert "hunter2" not in said

    def test_half_a_character_is_bad_input(self, editor: Editor, orders: Path) -> None:
        found = only(editor.change(orders, f"-- \ud83d\n{V1}").diagnostics)
        assert "is not UTF-8 text" in found.message

    def test_changes_in_a_row(self, editor: Editor, orders: Path) -> None:
        """Whatever is overtaken, an older version never follows a newer one, and the last one is what is shown."""
        for number in range(3, 9):
            last = editor.type(orders, V1.replace("'1' MINUTE", f"'{number}' MINUTE"))
        editor.type(orders, BROKEN)
        last = editor.type(orders, INCOMPATIBLE)
        versions = []
        while not versions or versions[-1] != last:
            answer = editor.published(orders)
            versions.append(answer.version)
        assert versions == sorted(versions)
        assert only(answer.diagnostics).code == "window-changed"

    def test_a_program(self, editor: Editor, root: Path) -> None:
        path = root / "jobs" / "job.py"
        assert editor.open(path, language="python").diagnostics == ()
        assert editor.lines(path) == ["program: unchanged against HEAD"]
        changed = PROGRAM.replace(".distinct()", "")
        assert editor.change(path, changed).diagnostics
        editor.close(path)

    def test_a_waiver_makes_it_a_hint(self, editor: Editor, root: Path) -> None:

        path = root / "jobs" / "clicks.sql"
        path.write_text(INCOMPATIBLE, encoding="utf-8")
        assert only(editor.open(path).diagnostics).severity is DiagnosticSeverity.Error
        waive(root)
        found = only(editor.save(path).diagnostics)
        assert found.severity is DiagnosticSeverity.Hint
        assert "waived by me until 2999-12-31: we know" in found.message
        assert editor.lines(path) == ["clicks: INCOMPATIBLE (waived) against HEAD"]
        editor.close(path)


class TestOtherFiles:
    def test_a_script_that_no_deployment_names_is_only_read(self, editor: Editor, root: Path) -> None:
        path = root / "jobs" / "draft.sql"
        text = V1.replace("FROM TABLE(TUMBLE(TABLE orders", "FROM TABLE(TUMBLE(TABLE clicks")
        found = only(editor.open(path, text).diagnostics)
        assert (found.code, found.severity) == ("undeclared-table", DiagnosticSeverity.Error)
        assert editor.lines(path) == [
            "jobs/draft.sql: unknown, read by itself: no deployment of the project file uses it"
        ]
        assert "table clicks is declared neither" in editor.hover(path, found.range.start.line, 3)
        editor.close(path)

    @pytest.mark.parametrize(
        ("name", "text"), [("jobs/tables.sql", TABLES), ("other.py", "import os\n"), ("../elsewhere.sql", "SELECT 1 +")]
    )
    def test_of_these_nothing_is_said(self, editor: Editor, root: Path, name: str, text: str) -> None:
        """DDL alone, a program that no deployment names, a script of no project."""
        path = (root / name).resolve()
        assert editor.open(path, text).diagnostics == ()
        assert editor.lines(path) == []
        assert editor.hover(path, 0, 0) == ""
        editor.close(path)

    def test_a_document_that_can_be_no_file_is_left_alone(self, editor: Editor, root: Path) -> None:
        script = root / "jobs" / "orders.sql"
        odd = TextDocumentItem(f"{script.as_uri()}%00.sql", "sql", 1, BROKEN)
        editor.tell(editor.client.text_document_did_open, DidOpenTextDocumentParams(odd))
        assert editor.open(script).diagnostics == ()  # the texts of all open documents are read for it
        editor.close(script)

    def test_a_file_that_is_no_script_is_left_alone(self, editor: Editor, root: Path) -> None:
        path, script = root / "README.md", root / "jobs" / "orders.sql"
        editor.tell(
            editor.client.text_document_did_open,
            DidOpenTextDocumentParams(TextDocumentItem(path.as_uri(), "markdown", 1, "SELECT FROM")),
        )
        assert editor.open(script).diagnostics == ()  # what was sent before was read before
        assert editor.lines(path) == []
        assert editor.close(path).diagnostics == ()
        editor.close(script)


def waive(root: Path) -> None:
    """As a person does it on the command line."""
    said = ("--reason", "we know", "--until", "2999-12-31", "--by", "me", "--even-silently-wrong")
    command = ("accept", "clicks", "window-changed", "--against", "git:HEAD", *said)
    done = subprocess.run(
        [sys.executable, "-m", "airflow_flinkcompat.cli", *command],
        cwd=root,
        env=environment(root.parent),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
