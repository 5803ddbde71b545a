"""Build etcd, the API server and the controller manager from their Go modules once, into the cache.

``python -m dev.local_kubernetes.binary`` builds it where it is not there, and prints its path.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from airflow_flinkcompat.model.installation import cache_directory

MODULE = Path(__file__).parent / "apiserver"
_GO = (1, 24)
_BUILD_SECONDS = 3600
_REMEDY = "install Go 1.24 or later (https://go.dev/dl/) and put it on the PATH"


class KubernetesUnavailable(Exception):
    """A local Kubernetes cannot be built on this machine; the message contains the remedy."""


def control_plane() -> Path:
    """Path of the control plane's binary. The first call builds it, with 12 minutes of CPU time and 3 GB."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((MODULE / name).read_bytes())
    folder = cache_directory() / "kube" / digest.hexdigest()
    binary = folder / "kubernetes"
    if binary.exists():
        return binary
    go = _find_go()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():  # another process may have built it while this one waited
            _build(go, binary)
    return binary


def _find_go() -> str:
    """The ``go`` on the PATH. Raises KubernetesUnavailable if it is missing or too old."""
    go = shutil.which("go")
    if go is None:
        raise KubernetesUnavailable(f"no Go to build Kubernetes' API server with: {_REMEDY}")
    # Run inside the module, where Go may switch to the toolchain of the module.
    answer = subprocess.run([go, "env", "GOVERSION"], cwd=MODULE, capture_output=True, text=True, check=False)
    version = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    if answer.returncode or not version or (int(version[1]), int(version[2])) < _GO:
        said = (answer.stdout or answer.stderr).strip()
        raise KubernetesUnavailable(f"{go} ({said}) is too old to build Kubernetes' API server with: {_REMEDY}")
    return go


def _build(go: str, binary: Path) -> None:
    unfinished = binary.with_suffix(".unfinished")
    command = [go, "build", "-trimpath", "-ldflags=-s -w", "-p", "2", "-o", str(unfinished), "."]
    # Pure Go: no C compiler is needed, and the binary runs on any Linux.
    environment = {**os.environ, "CGO_ENABLED": "0"}
    try:
        subprocess.run(
            command, cwd=MODULE, env=environment, check=True, capture_output=True, text=True, timeout=_BUILD_SECONDS
        )
        unfinished.replace(binary)
    except subprocess.CalledProcessError as error:
        raise RuntimeError(
            f"Go cannot build Kubernetes' API server ({' '.join(command)} in {MODULE}): {error.stderr.strip()[-2000:]}"
        ) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            unfinished.unlink()


if __name__ == "__main__":
    try:
        print(control_plane())
    except (KubernetesUnavailable, RuntimeError) as error:
        raise SystemExit(f"error: {error}") from None
