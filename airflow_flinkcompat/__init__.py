"""Know what a change to a Flink SQL job does to its state, and let Airflow act on it.

``from airflow_flinkcompat import check, Side`` is the same judgement as ``flinkcompat check`` on the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_flinkcompat.compat import Policy, Report, Side, check

__version__ = "0.1.0"

__all__ = ["Policy", "Report", "Side", "__version__", "check"]

_COMPAT_NAMES = frozenset({"Policy", "Report", "Side", "check"})


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name

    def __getattr__(name: str) -> Any:
        """Load the public names on first use: a DAG processor that imports an operator must not pay for the parser."""
        if name not in _COMPAT_NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from airflow_flinkcompat import compat

        value = getattr(compat, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
