"""Airflow sensors. Names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_flinkcompat.sensors.change import FlinkSqlChangeSensor

__all__ = ["FlinkSqlChangeSensor"]


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from airflow_flinkcompat.sensors import change

        return getattr(change, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
