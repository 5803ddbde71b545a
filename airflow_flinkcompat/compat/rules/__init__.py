"""The rules, one small file each; ``ALL`` holds them in the order reports show them.

To add a rule, add a module here with a ``RULE``: the catalogue, its documentation page and its example test follow
from it.
"""

from __future__ import annotations

import importlib
import pkgutil

from airflow_flinkcompat.compat.rule import Rule, RuleScope

__all__ = ["ALL", "BY_CODE"]


def _load() -> tuple[Rule, ...]:
    found = [importlib.import_module(f"{__name__}.{module.name}").RULE for module in pkgutil.iter_modules(__path__)]
    codes = [rule.code for rule in found]
    if len(set(codes)) != len(codes):
        raise ValueError("two rules share a code")
    order = (RuleScope.SCRIPT, RuleScope.PIPELINE, RuleScope.OPERATOR)
    return tuple(sorted(found, key=lambda rule: (order.index(rule.scope), rule.level, rule.code)))


ALL: tuple[Rule, ...] = _load()
BY_CODE = {rule.code: rule for rule in ALL}
