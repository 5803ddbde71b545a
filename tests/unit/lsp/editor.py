"""An editor for tests: the real server as a process of its own, spoken to over standard input and output."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import defaultdict
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
PATIENCE = 30
"""Seconds after which an answer is missing."""


class Editor:
    """A client with one server. What it is told is kept until somebody asks for it."""

    def __init__(self, environment: Mapping[str, str], *options: str, cwd: Path) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.messages: list[str] = []
        self.refreshed = 0
        self.versions: dict[str, int] = {}
        self._published: dict[str, asyncio.Queue[types.PublishDiagnosticsParams]] = defaultdict(asyncio.Queue)
        self.client = LanguageClient("editor", "1")

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self._published[params.uri].put_nowait(params)

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def shown(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)

        @self.client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
        def refreshed(params: None) -> None:
            self.refreshed += 1

        command = ("-m", "airflow_flinkcompat.cli", "lsp", *options)
        self.call(self.client.start_io(sys.executable, *command, env=dict(environment), cwd=cwd))
        abilities = types.ClientCapabilities(
            workspace=types.WorkspaceClientCapabilities(
                code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True)
            ),
            text_document=types.TextDocumentClientCapabilities(
                publish_diagnostics=types.PublishDiagnosticsClientCapabilities(related_information=True)
            ),
        )
        self.server = self.call(
            self.client.initialize_async(types.InitializeParams(abilities, root_uri=cwd.as_uri()))
        ).capabilities
        self.client.initialized(types.InitializedParams())

    def call(self, doing: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(PATIENCE)

    def tell(self, notify: Any, params: Any) -> None:
        self._loop.call_soon_threadsafe(notify, params)

    def open(self, path: Path, text: str | None = None, language: str = "sql") -> types.PublishDiagnosticsParams:
        """Opens a file, with a text that is not saved where one is given, and answers what is said of it."""
        self.versions[path.as_uri()] = 1
        text = path.read_text(encoding="utf-8") if text is None else text
        item = types.TextDocumentItem(path.as_uri(), language, 1, text)
        self.tell(self.client.text_document_did_open, types.DidOpenTextDocumentParams(item))
        return self.published(path)

    def type(self, path: Path, text: str) -> int:
        """Changes the text without waiting, and answers its version."""
        uri = path.as_uri()
        self.versions[uri] += 1
        changed = types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(self.versions[uri], uri),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
        self.tell(self.client.text_document_did_change, changed)
        return self.versions[uri]

    def change(self, path: Path, text: str) -> types.PublishDiagnosticsParams:
        self.type(path, text)
        return self.published(path)

    def save(self, path: Path) -> types.PublishDiagnosticsParams:
        identifier = types.TextDocumentIdentifier(path.as_uri())
        self.tell(self.client.text_document_did_save, types.DidSaveTextDocumentParams(identifier))
        return self.published(path)

    def close(self, path: Path) -> types.PublishDiagnosticsParams:
        identifier = types.TextDocumentIdentifier(path.as_uri())
        self.tell(self.client.text_document_did_close, types.DidCloseTextDocumentParams(identifier))
        return self.published(path)

    def refresh(self, path: Path) -> types.PublishDiagnosticsParams:
        self.call(self.client.workspace_execute_command_async(types.ExecuteCommandParams("flinkcompat.refresh")))
        return self.published(path)

    def published(self, path: Path) -> types.PublishDiagnosticsParams:
        """What is said of a file next."""

        async def told() -> types.PublishDiagnosticsParams:
            return await self._published[path.as_uri()].get()

        return self.call(told())

    def hover(self, path: Path, line: int, character: int) -> str:
        """What is shown of a place; "" where nothing is."""
        asked = types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(line, character))
        found = self.call(self.client.text_document_hover_async(asked))
        return "" if found is None else found.contents.value

    def lines(self, path: Path) -> list[str]:
        """What stands above the script."""
        asked = types.CodeLensParams(types.TextDocumentIdentifier(path.as_uri()))
        return [each.command.title for each in self.call(self.client.text_document_code_lens_async(asked)) or []]

    def quit(self) -> int | None:
        """Leaves as the protocol says, and answers how the server ended."""
        self.call(self.client.shutdown_async(None))
        process = self.client._server
        self.tell(self.client.exit, None)
        code = self.call(process.wait())
        self.call(self.client.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        return code
