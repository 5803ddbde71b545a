"""List of the deployments of a root: from the index, or from a ledger where the index may be stale."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.deploy.ledger.history import Ledger, deployments
from airflow_flinkcompat.deploy.ledger.index import REMEDY, Index, IndexView
from airflow_flinkcompat.deploy.ledger.rows import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError, Store

_log = logging.getLogger(__name__)


def deployment_rows(
    root: str | os.PathLike[str], *, by_index: bool = True, **options: Any
) -> dict[str, DeploymentRow | LedgerError]:
    """The deployments under a root with their status.

    The ledger of a deployment is read if the index may lack an entry of it or has no row for it, as with deployments of
    earlier releases. Damage in a ledger that is not read is not noticed.
    """
    view = _view(root, options) if by_index else IndexView()
    # After the index: a deployment without a folder now was deleted, and is not just beginning.
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

    A ledger that cannot be read gets no row, so that every reader meets the error.
    """
    found: dict[str, DeploymentRow | LedgerError] = {}

    def read() -> dict[str, DeploymentRow]:
        found.clear()
        found.update(deployment_rows(root, by_index=False, **options))
        return {name: row for name, row in found.items() if isinstance(row, DeploymentRow)}

    Index(root, **options).rebuild(read)
    return found
