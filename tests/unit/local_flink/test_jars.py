from __future__ import annotations

import contextlib
import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.local_flink import jars
from airflow_flinkcompat.local_flink.jars import Jar, JarError
from airflow_flinkcompat.model.installation import CACHE_VARIABLE
from airflow_flinkcompat.planner.installation import RELEASES

CONTENT = b"the pinned jar"


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    """Serves ``/good.jar`` from any byte on; counts its requests and bytes."""
    with serving(CONTENT) as server:
        yield server


@contextlib.contextmanager
def serving(content: bytes) -> Iterator[http.server.ThreadingHTTPServer]:
    """A server of these bytes as ``/good.jar``; it breaks a response off after ``cut`` bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.server.requests += 1  # type: ignore[attr-defined]
            begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
            body = content[begin:] if self.path == "/good.jar" else b""
            self.send_response((206 if begin else 200) if body else 416 if begin else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            sent = body[: self.server.cut]  # type: ignore[attr-defined]
            self.server.sent += len(sent)  # type: ignore[attr-defined] # before a client can have them and look
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.requests, server.sent, server.cut = 0, 0, None  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(jars, "_ATTEMPTS", 1)
    return tmp_path / "cache"


def jar(server: http.server.ThreadingHTTPServer, name: str, content: bytes = CONTENT) -> Jar:
    url = f"http://127.0.0.1:{server.server_address[1]}/{name}"
    return Jar("x", "g:x:1", url, hashlib.sha256(content).hexdigest())


def test_every_pin_is_complete() -> None:
    pinned = jars.pinned()
    assert "flink-sql-gateway" in pinned
    for one in pinned.values():
        group, artifact, version, *classifier = one.coordinates.replace(":jar:", ":").split(":")
        path = f"{group.replace('.', '/')}/{artifact}/{version}/{'-'.join([artifact, version, *classifier])}.jar"
        assert one.url == f"https://repo.maven.apache.org/maven2/{path}"
        assert re.fullmatch("[0-9a-f]{64}", one.sha256)
    for release in RELEASES.values():
        one = jars.flink(release)
        assert re.fullmatch(rf"https://files\.pythonhosted\.org/\S+[_-]{re.escape(release)}\.tar\.gz", one.url)
        assert re.fullmatch("[0-9a-f]{64}", one.sha256)


def test_fetched_once_then_cached(server: http.server.ThreadingHTTPServer, cache: Path) -> None:
    for _ in range(2):
        found = jars.fetch_jar(jar(server, "good.jar"))
        assert found == cache / "jars" / "good.jar"
        assert found.read_bytes() == CONTENT
    assert server.requests == 1  # type: ignore[attr-defined]


def test_damaged_copy_is_fetched_again(server: http.server.ThreadingHTTPServer) -> None:
    found = jars.fetch_jar(jar(server, "good.jar"))
    found.write_bytes(b"half")
    assert jars.fetch_jar(jar(server, "good.jar")).read_bytes() == CONTENT


def test_a_broken_download_resumes(server: http.server.ThreadingHTTPServer, cache: Path) -> None:
    part = cache / "jars" / "good.jar.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:5])
    assert jars.fetch_jar(jar(server, "good.jar")).read_bytes() == CONTENT
    assert server.sent == len(CONTENT) - 5  # type: ignore[attr-defined]
    assert not part.exists()


@pytest.mark.parametrize("kept", [b"other", b"longer than the jar"])
def test_the_beginning_of_another_file_is_thrown_away(
    server: http.server.ThreadingHTTPServer, cache: Path, monkeypatch: pytest.MonkeyPatch, kept: bytes
) -> None:
    monkeypatch.setattr(jars, "_ATTEMPTS", 2)
    part = cache / "jars" / "good.jar.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(kept)
    assert jars.fetch_jar(jar(server, "good.jar")).read_bytes() == CONTENT


def test_another_file_is_never_kept(server: http.server.ThreadingHTTPServer, cache: Path) -> None:
    with pytest.raises(JarError, match=r"g:x:1 from http.*is not the pinned file .*SHA-256"):
        jars.fetch_jar(jar(server, "good.jar", b"what was pinned"))
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_no_such_file(server: http.server.ThreadingHTTPServer) -> None:
    with pytest.raises(JarError, match=r"cannot fetch g:x:1 from .*404.*HTTPS_PROXY"):
        jars.fetch_jar(jar(server, "missing.jar"))


def test_unknown_name() -> None:
    with pytest.raises(JarError, match=r"no jar 'nosuch' is pinned in jars\.toml\. Pinned jars: .*flink-sql-gateway"):
        jars.fetch("nosuch")


def test_progress_is_shown(server: http.server.ThreadingHTTPServer, capsys: pytest.CaptureFixture[str]) -> None:
    jars.fetch_jar(jar(server, "good.jar"), progress=True)
    assert "100%" in capsys.readouterr().err


def test_command_line_tells_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert jars.main(["nosuch"]) == 2
    assert capsys.readouterr().err.startswith("error: no jar 'nosuch'")
