"""The language server, which schedules checks of documents and sends messages to the editor."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from airflow_flinkcompat.compat.report import tool_version
from airflow_flinkcompat.lsp.messages import REFRESH, DeployedTexts, ShownDocument, hover, lenses, shown_document
from airflow_flinkcompat.lsp.projects import DocumentVerdict, Projects
from airflow_flinkcompat.model import PROGRAM_SUFFIXES

_SUFFIXES = (".sql", *PROGRAM_SUFFIXES)
_WORKERS = 4  # one of these threads reads the editor's messages
_LOG = logging.getLogger(__name__)


class FlinkcompatServer(LanguageServer):
    """Server that checks documents in threads, with one check at a time for each document.

    If a document changes during its check, the result is discarded and the document is checked again.
    """

    def __init__(self, projects: Projects) -> None:
        # pygls splits lines at more characters than the protocol does. Full synchronization avoids the split.
        super().__init__(
            "flinkcompat", tool_version(), text_document_sync_kind=types.TextDocumentSyncKind.Full, max_workers=_WORKERS
        )
        self.shown: dict[str, ShownDocument] = {}
        self.deployed = DeployedTexts()
        self._projects = projects
        self._asked: dict[str, int] = {}
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._warned: dict[Path, str] = {}

    def request_check(self, uri: str) -> None:
        """Request a check of a document's present text, if the document has a script's suffix."""
        if not _path_of(uri).endswith(_SUFFIXES):
            return
        self._asked[uri] = self._asked.get(uri, 0) + 1
        if uri not in self._checks or self._checks[uri].done():
            self._checks[uri] = asyncio.get_running_loop().create_task(self._check(uri))

    def refresh(self) -> None:
        """Check every open document against the deployed versions again."""
        self._projects.refresh()
        for each in self.workspace.text_documents.values():
            self.request_check(each.uri)

    def forget(self, uri: str) -> None:
        """Withdraw the diagnostics of a closed document."""
        self._asked.pop(uri, None)
        self.shown.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    async def shown_now(self, uri: str) -> ShownDocument | None:
        """Wait for a running check, then return the shown verdict; None if nothing is shown."""
        if uri in self._checks:
            await asyncio.wait({self._checks[uri]})
        return self.shown.get(uri)

    def close(self) -> None:
        """Release the cached projects, and delete the files of deployed versions."""
        self._projects.close()
        self.deployed.close()

    async def _check(self, uri: str) -> None:
        while uri in self._asked:
            asked, document = self._asked[uri], self.workspace.get_text_document(uri)
            version, text = document.version, document.source
            unsaved = {
                Path(_path_of(each.uri)).resolve(): each.source
                for each in self.workspace.text_documents.values()
                if _path_of(each.uri)
            }
            path = Path(_path_of(uri)).resolve()
            loop = asyncio.get_running_loop()
            shown, problem = await loop.run_in_executor(self.thread_pool, self._judged, path, text, unsaved)
            if self._asked.get(uri) == asked:
                self._publish(uri, version, shown, problem)
                return

    def _judged(self, path: Path, text: str, unsaved: Mapping[Path, str]) -> tuple[ShownDocument | None, str]:
        """Compute the verdict in a thread. Returns the verdict, and a message about an unexpected error."""
        try:
            verdict = self._projects.verdict(path, unsaved)
            return (None if verdict is None else self._document(verdict, text)), ""
        except Exception as error:  # no error may end the server
            _LOG.exception("the check failed")
            return None, f"the check failed ({type(error).__name__}); see the log of the server"

    def _document(self, verdict: DocumentVerdict, text: str) -> ShownDocument:
        abilities = self.client_capabilities.text_document
        publish = None if abilities is None else abilities.publish_diagnostics
        related = publish is not None and bool(publish.related_information)
        return shown_document(verdict, text, self.workspace.position_codec, self.deployed, related)

    def _publish(self, uri: str, version: int | None, shown: ShownDocument | None, problem: str) -> None:
        diagnostics = [] if shown is None else [diagnostic for diagnostic, _ in shown.diagnostics]
        self.shown.pop(uri, None)
        if shown is not None:
            self.shown[uri] = shown
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))
        if shown is not None:
            self._tell(shown.verdict.project, shown.verdict.warning)
        if problem:
            self._tell(Path(_path_of(uri)), problem)
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def _tell(self, about: Path, warning: str) -> None:
        """Show a warning once, and again only when its text changes."""
        if warning and self._warned.get(about) != warning:
            message = f"{about.name}: {warning}"
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))
        self._warned[about] = warning


def _path_of(uri: str) -> str:
    """The path of a document; "" if the document is not a file or its name is invalid."""
    path = to_fs_path(uri) or ""
    return "" if "\0" in path else path


def make_server(projects: Projects) -> FlinkcompatServer:
    """Create the server with its handlers, without starting it."""
    server = FlinkcompatServer(projects)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: FlinkcompatServer, params: types.DidOpenTextDocumentParams) -> None:
        ls.request_check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: FlinkcompatServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.request_check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(ls: FlinkcompatServer, params: types.DidSaveTextDocumentParams) -> None:
        ls.refresh()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(ls: FlinkcompatServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.forget(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hovered(ls: FlinkcompatServer, params: types.HoverParams) -> types.Hover | None:
        shown = ls.shown.get(params.text_document.uri)
        return None if shown is None else hover(shown, params.position)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def above(ls: FlinkcompatServer, params: types.CodeLensParams) -> list[types.CodeLens]:
        shown = await ls.shown_now(params.text_document.uri)
        return [] if shown is None else lenses(shown)

    @server.command(REFRESH)
    async def refreshed(ls: FlinkcompatServer) -> None:
        ls.refresh()

    return server


def serve(projects: Projects) -> None:
    """Serve one client on standard input and output, until it disconnects."""
    server, answers = make_server(projects), sys.stdout.buffer
    try:
        with redirect_stdout(sys.stderr):  # other output would break the protocol
            server.start_io(sys.stdin.buffer, answers)
    finally:
        server.close()
