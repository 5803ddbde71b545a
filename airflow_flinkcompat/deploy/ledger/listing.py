"""Deployments, entries and differences of versions for display, with secrets masked."""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry
from airflow_flinkcompat.deploy.ledger.index import REMEDY, Index, IndexView
from airflow_flinkcompat.deploy.ledger.ledger import Ledger, deployments
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError, Store
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.secrets.redact import mask_option

_log = logging.getLogger(__name__)


def deployment_rows(
    root: str | os.PathLike[str], *, by_index: bool = True, **options: Any
) -> dict[str, DeploymentRow | LedgerError]:
    """The deployments under a root with their status.

    A deployment's ledger is read if the index lacks its row or may lack an entry. The index has no rows for deployments
    of earlier releases. Damage in a ledger that is not read is not noticed.
    """
    view = _view(root, options) if by_index else IndexView()
    # List folders after reading the index. A deployment without a folder was then deleted, and is not new.
    names = deployments(root, **options)
    wanted = [name for name in names if name not in view.rows or name in view.dirty]

    def read(name: str) -> DeploymentRow | LedgerError:
        try:
            return Ledger(root, name, **options).row(view.rows.get(name))
        except LedgerError as error:
            return error

    found = dict(zip(wanted, Store(root, "", **options).at_once(read, wanted), strict=True))
    rows = {name: found.get(name, view.rows.get(name)) for name in names}
    return {name: row for name, row in rows.items() if isinstance(row, LedgerError) or (row is not None and row.last)}


def _view(root: str | os.PathLike[str], options: Mapping[str, Any]) -> IndexView:
    try:
        return Index(root, **options).read()
    except LedgerError as error:
        _log.warning("Cannot use the index, so every ledger is read: %s; %s", error, REMEDY)
        return IndexView()


def rebuild_index(root: str | os.PathLike[str], **options: Any) -> dict[str, DeploymentRow | LedgerError]:
    """Rebuild the index from the ledgers.

    An unreadable ledger gets no index row, so that readers of the index see the error.
    """
    found: dict[str, DeploymentRow | LedgerError] = {}

    def read() -> dict[str, DeploymentRow]:
        found.clear()
        found.update(deployment_rows(root, by_index=False, **options))
        return {name: row for name, row in found.items() if isinstance(row, DeploymentRow)}

    Index(root, **options).rebuild(read)
    return found


# Keys of entries whose values map option names to values.
_OPTIONS = ("settings", "variables", "effective_settings")
_SHOWN = {"entry": "head", **{name: name for name in ("unfinished", "pending", "checked", "savepoint", "failed")}}


def masked_entry(entry: LedgerEntry) -> dict[str, Any]:
    return masked_values(entry.to_dict())


def masked_values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _masked(key, value, key in _OPTIONS) for key, value in row.items()}


def _masked(key: str, value: Any, option: bool) -> Any:
    if isinstance(value, str):
        return mask_option(key, value) if option else mask_secrets(value)
    if isinstance(value, Mapping):
        return {str(name): _masked(str(name), each, option) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(key, each, option) for each in value]
    return value


def listed(deployment: str, row: DeploymentRow | LedgerError) -> dict[str, Any]:
    """A deployment as a row of a list, with short forms of its entries."""
    if isinstance(row, Exception):
        return {"deployment": deployment, **dict.fromkeys(_SHOWN), "error": mask_secrets(str(row))}
    facts = row.to_dict()
    return {
        "deployment": deployment,
        **{key: _masked("", facts[name], False) for key, name in _SHOWN.items()},
        "error": None,
    }


def part_lines(part: str, row: Mapping[str, Any]) -> list[str]:
    """A part of a version as lines, with secrets masked."""
    if part == "engine":
        return [f"{row['engine']} {row['engine_version'] or ''}".strip()]
    if part in ("settings", "variables"):
        return [f"{key} = {mask_option(key, str(value))}" for key, value in sorted(row[part].items())]
    if part == "functions":
        return [
            mask_secrets(
                " ".join(str(each.get(key) or "") for key in ("name", "kind", "language", "definition")).strip()
            )
            for each in row["functions"]
        ]
    if part == "files":
        files = sorted(row["files"].items())
        return [line for path, text in files for line in (f"{path}:", *indented(mask_secrets(text)))]
    return mask_secrets(str(row[part])).splitlines()


def part_diff(part: str, old: Mapping[str, Any], new: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """A unified diff of a part of two versions."""
    before, after = (f"{part} of {name}" for name in names)
    return list(difflib.unified_diff(part_lines(part, old), part_lines(part, new), before, after, lineterm=""))


def indented(text: str) -> list[str]:
    """The lines of a text, each indented by two spaces."""
    return [f"  {line}".rstrip() for line in text.splitlines()]
