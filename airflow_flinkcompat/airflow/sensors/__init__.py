"""Airflow sensors. Names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.airflow.sensors.change import FlinkSqlChangeSensor

__all__ = ["FlinkSqlChangeSensor"]


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name
    __getattr__, __dir__ = lazy_names(__name__, {".change": ("FlinkSqlChangeSensor",)})
