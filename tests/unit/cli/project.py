"""A project of two deployments, ``orders`` and ``clicks``, in the current folder."""

from __future__ import annotations

from pathlib import Path

from tests.support.fleet.repository import git

HEAD = 'engine = "flink"\n'
ORDERS = '\n[deployments.orders]\nscript = "jobs/orders.sql"\n'
CLICKS = '\n[deployments.clicks]\nscript = "jobs/clicks.sql"\n'


def commit(message: str) -> None:
    git(Path(), "add", "--all")
    git(Path(), "commit", "--quiet", "--message", message)


def change(name: str, text: str) -> None:
    Path(f"jobs/{name}.sql").write_text(text, encoding="utf-8")


def project_file(text: str) -> None:
    """Write the project file."""
    write("flinkcompat.toml", text)


def write(path: str, text: str) -> None:
    """Write a file below the working directory."""
    Path(path).write_text(text, encoding="utf-8")
