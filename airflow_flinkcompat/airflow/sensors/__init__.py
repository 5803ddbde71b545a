"""Airflow sensors. Each name is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.airflow.sensors.change import FlinkSqlChangeSensor

__all__ = ["FlinkSqlChangeSensor"]


if not TYPE_CHECKING:  # type checkers assume that a module with __getattr__ has every name
    __getattr__, __dir__ = lazy_names(__name__, {".change": ("FlinkSqlChangeSensor",)})
