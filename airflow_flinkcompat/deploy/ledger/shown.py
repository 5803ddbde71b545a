"""Entries and rows as JSON values without secrets: one form for the command line and the pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry
from airflow_flinkcompat.deploy.ledger.rows import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from airflow_flinkcompat.secrets import mask_option, mask_secrets

# Mappings whose keys are names of options.
_OPTIONS = ("settings", "variables", "effective_settings")
_SHOWN = {"entry": "head", **{name: name for name in ("unfinished", "pending", "checked", "savepoint", "failed")}}


def masked_entry(entry: LedgerEntry) -> dict[str, Any]:
    """An entry for readers."""
    return masked_values(entry.to_dict())


def masked_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values for readers."""
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
    """One deployment of a list, its entries without their texts."""
    if isinstance(row, Exception):
        return {"deployment": deployment, **dict.fromkeys(_SHOWN), "error": mask_secrets(str(row))}
    told = row.to_dict()
    return {
        "deployment": deployment,
        **{key: _masked("", told[name], False) for key, name in _SHOWN.items()},
        "error": None,
    }
