"""The binary of the control plane: what is said where it cannot be built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dev.local_kubernetes import binary
from dev.local_kubernetes.binary import KubernetesUnavailable, control_plane


def test_without_go_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLINKCOMPAT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KubernetesUnavailable, match=r"\Ano Go to build .*: install Go 1\.24 or later .* on the PATH\Z"):
        control_plane()


def test_an_old_go_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.22.3\n")
    go.chmod(0o755)
    monkeypatch.setenv("FLINKCOMPAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KubernetesUnavailable, match=r"\(go1\.22\.3\) is too old .* install Go 1\.24"):
        control_plane()


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\n[ "$1" = env ] && echo go1.24.1 && exit\necho "no space left" >&2\nexit 1\n')
    go.chmod(0o755)
    monkeypatch.setenv("FLINKCOMPAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(RuntimeError, match=rf"(?s)go build .* in {re.escape(str(binary.MODULE))}\): no space left"):
        control_plane()
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".lock"]
