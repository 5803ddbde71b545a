"""All rules, with one module for each subject, and the search for the rules that apply to a change.

``ALL`` contains the rules in the order of reports.

To add a rule, define it in the module of its subject. The rule catalogue, the documentation page and the example test
are derived from the definition. The first use of ``ALL`` or ``BY_CODE`` imports the modules.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.rule import Level, Rule, RuleScope

__all__ = ["ALL", "BY_CODE"]
ALL: tuple[Rule, ...]
BY_CODE: Mapping[str, Rule]


@cache
def _load() -> tuple[Rule, ...]:
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = list({id(rule): rule for module in modules for rule in _rules_of(module)}.values())
    if len({rule.code for rule in found}) != len(found):
        raise ValueError("two rules share a code")
    order = (RuleScope.SCRIPT, RuleScope.PIPELINE, RuleScope.OPERATOR)
    return tuple(sorted(found, key=lambda rule: (order.index(rule.scope), rule.level, rule.code)))


def _rules_of(module: ModuleType) -> Iterator[Rule]:
    """The rules that a module defines, directly or in a tuple."""
    for value in vars(module).values():
        yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Rule))


def applicable_rules(change: Change) -> list[tuple[Rule, Any]]:
    """The rules that may apply to a change, each with a pair of its scope, in the order of the catalogue."""
    targets: list[tuple[RuleScope, Any, set[type], set[str]]] = []
    every = {each.part for each in change.script_differences}
    every |= {each.key.partition("/")[0] for each in change.script_differences}
    for pipeline in change.pipelines:
        classes = {type(side) for pair in pipeline.operators for side in (pair.old, pair.new)}
        classes |= {type(each) for each in (*pipeline.removed, *pipeline.added)}
        parts = _kinds_of(pipeline.differences)
        every |= parts
        targets.append((RuleScope.PIPELINE, pipeline, classes, parts))
        for pair in pipeline.operators:
            parts = _kinds_of(pair.differences)
            every |= parts
            targets.append((RuleScope.OPERATOR, pair, {type(pair.new)}, parts))
    targets.append((RuleScope.SCRIPT, change, set(), every))
    by_part = _rules_by_part(change.engine)
    found = {
        (number, place): (rule, target)
        for place, (scope, target, classes, parts) in enumerate(targets)
        for part in ("", *parts)
        for number, rule in by_part.get((scope, part), ())
        if not (rule.operators and classes.isdisjoint(rule.operators))
    }
    return [found[each] for each in sorted(found)]


@cache
def _rules_by_part(engine: str) -> Mapping[tuple[RuleScope, str], Sequence[tuple[int, Rule]]]:
    """The numbered rules of an engine by scope and part. Rules without a part have the key ""."""
    found: dict[tuple[RuleScope, str], list[tuple[int, Rule]]] = {}
    for number, rule in enumerate(_load()):
        if rule.level is not Level.UNCHANGED and engine not in rule.not_applicable:
            for part in rule.parts or ("",):
                found.setdefault((rule.scope, part), []).append((number, rule))
    return found


def _kinds_of(differences: Iterable[Difference]) -> set[str]:
    return {each.part.partition(" of input ")[0] for each in differences}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    global ALL, BY_CODE
    ALL = _load()
    BY_CODE = {rule.code: rule for rule in ALL}
    return globals()[name]
