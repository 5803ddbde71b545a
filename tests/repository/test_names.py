"""Names in the package: one name, one thing; and no code that asks which engine it has before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from airflow_flinkcompat.model.engine import ENGINE_FACTS

PACKAGE = Path(__file__).parents[2] / "airflow_flinkcompat"


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its path, read when the first test asks."""
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def classes() -> dict[str, list[tuple[str, frozenset[str]]]]:
    """Every class name → the modules that define it, each with the names of its bases."""
    found: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = frozenset(ast.unparse(base).rpartition(".")[2] for base in node.bases)
                found.setdefault(node.name, []).append((module, bases))
    return found


@pytest.mark.slow
def test_no_two_classes_share_a_name_unless_one_subclasses_the_other() -> None:
    shared = {name for name, places in classes().items() if len(places) > 1 + sum(name in bases for _, bases in places)}
    assert not shared, "a new class gets a name of its own"


def engine_tests(tree: ast.AST) -> Iterator[int]:
    """Lines that compare something with the name of an engine."""
    names = set(ENGINE_FACTS)

    def named(node: ast.AST) -> bool:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(map(named, node.elts))
        return isinstance(node, ast.Constant) and node.value in names

    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others) if any(map(named, (left, *others))):
                yield node.lineno
            case ast.MatchValue(value=value) if named(value):
                yield node.lineno


@pytest.mark.slow
def test_no_code_asks_which_engine_it_has() -> None:
    """What differs from engine to engine is data of :class:`EngineFacts`, or an adjuster of its engine."""
    found = [f"{module}:{line}" for module, tree in modules().items() for line in engine_tests(tree)]
    assert found == []


@pytest.mark.parametrize(
    "code",
    ["engine == 'flink'", "'vvr' != side.engine", "engine in ('flink', 'other')", "match e:\n    case 'vvr': x"],
)
def test_a_test_of_the_engine_is_found(code: str) -> None:
    assert list(engine_tests(ast.parse(code)))
