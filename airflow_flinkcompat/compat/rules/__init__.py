"""The rules, one small file each; ``ALL`` holds them in the order reports show them.

To add a rule, add a module here with a ``RULE``: the catalogue, its documentation page and its example test follow
from it. All are imported when ``ALL`` or ``BY_CODE`` is first used; who needs one rule imports its module.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.compat.rule import Rule, RuleScope

__all__ = ["ALL", "BY_CODE"]

ALL: tuple[Rule, ...]
BY_CODE: Mapping[str, Rule]


def _load() -> tuple[Rule, ...]:
    found = [importlib.import_module(f"{__name__}.{module.name}").RULE for module in pkgutil.iter_modules(__path__)]
    codes = [rule.code for rule in found]
    if len(set(codes)) != len(codes):
        raise ValueError("two rules share a code")
    order = (RuleScope.SCRIPT, RuleScope.PIPELINE, RuleScope.OPERATOR)
    return tuple(sorted(found, key=lambda rule: (order.index(rule.scope), rule.level, rule.code)))


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    global ALL, BY_CODE
    ALL = _load()
    BY_CODE = {rule.code: rule for rule in ALL}
    return globals()[name]
