"""The rules, one module per subject; ``ALL`` holds them in the order reports show them.

To add a rule, define it in the module of its subject: the catalogue, its page and its example test follow. The modules
are imported when ``ALL`` or ``BY_CODE`` is first used.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from airflow_flinkcompat.compat.rule import Rule, RuleScope

__all__ = ["ALL", "BY_CODE"]
ALL: tuple[Rule, ...]
BY_CODE: Mapping[str, Rule]


def _load() -> tuple[Rule, ...]:
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = list({id(rule): rule for module in modules for rule in _rules_of(module)}.values())
    if len({rule.code for rule in found}) != len(found):
        raise ValueError("two rules share a code")
    order = (RuleScope.SCRIPT, RuleScope.PIPELINE, RuleScope.OPERATOR)
    return tuple(sorted(found, key=lambda rule: (order.index(rule.scope), rule.level, rule.code)))


def _rules_of(module: ModuleType) -> Iterator[Rule]:
    """The rules that a module names, alone or in a tuple."""
    for value in vars(module).values():
        yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Rule))


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    global ALL, BY_CODE
    ALL = _load()
    BY_CODE = {rule.code: rule for rule in ALL}
    return globals()[name]
