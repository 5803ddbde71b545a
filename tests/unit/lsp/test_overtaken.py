"""A check that is overtaken by a change, held as long as the test wants."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.workspace import Workspace

from airflow_flinkcompat.fleet.values import DeploymentReview, FleetDiff, InputFault, Status
from airflow_flinkcompat.lsp.projects import DocumentVerdict, Projects
from airflow_flinkcompat.lsp.server import FlinkcompatServer
from airflow_flinkcompat.project.job_options import JobOptions

URI = "file:///jobs/orders.sql"
PATH = Path("/jobs/orders.sql")


class HeldProjects(Projects):
    """Says the text of the document as its fault, once it may."""

    def __init__(self) -> None:
        super().__init__(JobOptions())
        self.begun, self.may = threading.Semaphore(0), threading.Semaphore(0)
        self.seen: list[str] = []
        self.warning = ""

    def verdict(self, path: Path, unsaved: Mapping[Path, str]) -> DocumentVerdict | None:
        self.seen.append(unsaved[path])
        self.begun.release()
        assert self.may.acquire(timeout=60)
        if unsaved[path] == "crash":
            raise ZeroDivisionError
        review = DeploymentReview("orders", Status.UNREADABLE, "o.sql", faults=(InputFault(unsaved[path]),))
        fleet = FleetDiff("diff", "flinkcompat.toml", "", "unknown", (review,))
        return DocumentVerdict(Path("/flinkcompat.toml"), fleet, warning=self.warning)


class HeardServer(FlinkcompatServer):
    """Keeps what would be sent."""

    def __init__(self, projects: Projects) -> None:
        super().__init__(projects)
        self.documents = Workspace(None, types.TextDocumentSyncKind.Full)
        self.sent: list[tuple[int | None, list[str]]] = []
        self.messages: list[str] = []

    @property
    def workspace(self) -> Workspace:
        return self.documents

    @property
    def client_capabilities(self) -> types.ClientCapabilities:
        return types.ClientCapabilities()

    def text_document_publish_diagnostics(self, params: types.PublishDiagnosticsParams) -> None:
        self.sent.append((params.version, [each.message for each in params.diagnostics]))

    def window_show_message(self, params: types.ShowMessageParams) -> None:
        self.messages.append(params.message)

    def put(self, version: int, text: str) -> None:
        """The document as it is now, and a check asked for."""
        self.documents.put_text_document(types.TextDocumentItem(URI, "sql", version, text))
        self.request_check(URI)


Story = Callable[[HeardServer, HeldProjects], Coroutine[Any, Any, None]]


def play(story: Story) -> tuple[HeardServer, HeldProjects]:
    projects = HeldProjects()
    server = HeardServer(projects)

    async def played() -> None:
        await asyncio.wait_for(story(server, projects), 60)

    try:
        asyncio.run(played())
    finally:
        projects.may.release(100)
        server.shutdown()
        server.close()
    return server, projects


async def begun(projects: HeldProjects) -> None:
    assert await asyncio.to_thread(projects.begun.acquire, timeout=60)


def test_what_was_overtaken_is_never_published() -> None:
    async def story(server: HeardServer, projects: HeldProjects) -> None:
        server.put(1, "one")
        await begun(projects)
        server.put(2, "two")
        server.put(3, "three")
        projects.may.release(2)
        await server.shown_now(URI)

    server, projects = play(story)
    assert server.sent == [(3, ["three"])]
    assert projects.seen == ["one", "three"]  # one check at a time: what came between is skipped


def test_nothing_is_said_of_a_document_that_was_closed_meanwhile() -> None:
    async def story(server: HeardServer, projects: HeldProjects) -> None:
        server.put(1, "one")
        await begun(projects)
        server.documents.remove_text_document(URI)
        server.forget(URI)
        projects.may.release()
        await server.shown_now(URI)

    server, _ = play(story)
    assert server.sent == [(None, [])]


def test_a_warning_is_told_once_until_it_is_another() -> None:
    async def story(server: HeardServer, projects: HeldProjects) -> None:
        for version, warning in enumerate(("away", "away", "", "away", "gone")):
            projects.warning = warning
            server.put(version, "text")
            projects.may.release()
            await server.shown_now(URI)

    server, _ = play(story)
    assert server.messages == [f"flinkcompat.toml: {word}" for word in ("away", "away", "gone")]


def test_a_mistake_of_this_program_ends_neither_server_nor_document(caplog: pytest.LogCaptureFixture) -> None:
    async def story(server: HeardServer, projects: HeldProjects) -> None:
        for version, text in enumerate(("crash", "mended")):
            server.put(version, text)
            projects.may.release()
            await server.shown_now(URI)

    server, _ = play(story)
    assert server.sent == [(0, []), (1, ["mended"])]
    assert server.messages == ["orders.sql: the check failed (ZeroDivisionError); see the log of the server"]
    assert "ZeroDivisionError" in caplog.text
