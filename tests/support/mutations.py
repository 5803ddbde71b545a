"""Small changes of statements, made generically: every identifier, literal, flag, word, part and list of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_flinkcompat.sql import parse_script

SWAPS: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.Add: exp.Sub,
    exp.Sub: exp.Add,
    exp.Mul: exp.Add,
    exp.Div: exp.Mul,
    exp.Mod: exp.Div,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.LTE,
    exp.LTE: exp.LT,
    exp.GT: exp.GTE,
    exp.GTE: exp.GT,
    exp.And: exp.Or,
    exp.Or: exp.And,
    exp.Cast: exp.TryCast,
    exp.TryCast: exp.Cast,
    exp.Cube: exp.Rollup,
    exp.Rollup: exp.Cube,
    exp.Union: exp.Except,
    exp.NullSafeEQ: exp.NullSafeNEQ,
}
"""Classes of nodes with the same arguments and another meaning."""

Change = Callable[[exp.Expression], exp.Expression | None]
"""Changes a node in place, or answers the node that stands for it."""
LEAVES: dict[type[exp.Expression], tuple[str, Change]] = {
    exp.Identifier: ("this renamed", lambda n: n.set("this", n.name + "_x")),
    exp.Literal: ("this changed", lambda n: n.set("this", (_other_text if n.is_string else _other_number)(n.name))),
    exp.Var: ("this changed", lambda n: n.set("this", {"SECOND": "MINUTE"}.get(n.name.upper(), "SECOND"))),
    exp.Boolean: ("this flipped", lambda n: n.set("this", not n.this)),
}
"""Classes of nodes without parts, and the one change of each."""

Words = dict[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True)
class Mutation:
    """A changed script; ``what`` names the change: node, argument, what was done, and the statement it stands in."""

    what: str
    node: str
    argument: str
    text: str

    def __str__(self) -> str:
        return self.what


def statements(text: str) -> list[exp.Expression]:
    """The trees of a script's statements; every statement must be readable."""
    trees = []
    for statement in parse_script(text).statements:
        assert statement.tree is not None, f"{statement.span}: {statement.error}"
        trees.append(statement.tree)
    return trees


def printed(trees: list[exp.Expression]) -> str:
    return ";\n".join(tree.sql(dialect="flink", comments=False) for tree in trees) + ";\n"


def words_of(texts: list[str]) -> Words:
    """Which words stand in which argument, so that one can be put for another."""
    found: dict[tuple[str, str], set[str]] = {}
    for text in texts:
        for tree in statements(text):
            for node in tree.walk():
                for name, value in node.args.items():
                    if isinstance(value, str) and not isinstance(
                        node, exp.Identifier | exp.Literal | exp.Anonymous | exp.Var
                    ):
                        found.setdefault((type(node).__name__, name), set()).add(value)
    return {key: tuple(sorted(values)) for key, values in found.items()}


def mutations(text: str, words: Words, only: int | None = None) -> Iterator[Mutation]:
    """Every small change of a script (of one statement where ``only`` says which) whose printed text differs."""
    trees = statements(text)
    before = printed(trees)
    for i, tree in enumerate(trees):
        if only is not None and i != only:
            continue
        for j, node in enumerate(tree.walk()):
            for argument, how in list(_changes(node, words)):
                copies = list(trees)
                copies[i] = tree.copy()
                target = next(n for k, n in enumerate(copies[i].walk()) if k == j)
                changed = how(target)
                if changed is not None and target is copies[i]:
                    copies[i] = changed
                elif changed is not None:
                    target.replace(changed)
                try:
                    after = printed(copies)
                except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                    continue  # a tree no parser makes
                if after != before:
                    kind = type(node).__name__
                    label = f"{kind}.{argument} in {node.sql(dialect='flink')[:60]!r}"
                    yield Mutation(label, kind, argument, after)


def _changes(node: exp.Expression, words: Words) -> Iterator[tuple[str, Change]]:
    if type(node) in LEAVES:
        yield LEAVES[type(node)]
        return
    if type(node) in SWAPS:
        yield "class", lambda n: SWAPS[type(n)](**n.args)
    for name in dict.fromkeys((*node.arg_types, *node.args)):
        yield from _argument_changes(node, name, words)


def _argument_changes(node: exp.Expression, name: str, words: Words) -> Iterator[tuple[str, Change]]:
    value = node.args.get(name)
    required = node.arg_types.get(name, False)
    kind = type(node).__name__
    if isinstance(value, bool):
        yield f"{name} flipped", lambda n: n.set(name, not value)
    elif isinstance(value, str) and isinstance(node, exp.Anonymous):
        yield (
            f"{name} renamed",
            lambda n: n.set(name, {"MAX": "MIN"}.get(value.upper(), "MAX")),
        )
    elif isinstance(value, str):
        for other in words.get((kind, name), ()):
            if other != value:
                yield f"{name} = {other}", lambda n, other=other: n.set(name, other)
        if not required:
            yield f"{name} removed", lambda n: n.set(name, None)
    elif isinstance(value, exp.Expression) and not required:
        yield f"{name} removed", lambda n: n.set(name, None)
    elif isinstance(value, list):
        for k in range(len(value)):
            if len(value) > 1 or not required:
                yield f"{name}[{k}] removed", lambda n, k=k: n.set(name, _without(n.args[name], k))
            if k and value[k] != value[k - 1]:
                yield f"{name}[{k}] swapped", lambda n, k=k: n.set(name, _swapped(n.args[name], k))


def _without(values: list[object], k: int) -> list[object] | None:
    return [*values[:k], *values[k + 1 :]] or None


def _swapped(values: list[object], k: int) -> list[object]:
    return [*values[: k - 1], values[k], values[k - 1], *values[k + 1 :]]


def _other_text(text: str) -> str:
    if text.strip("-").isdigit():
        return str(int(text) + 1)
    if text[:2] in ("19", "20") and "-" in text:
        return text.replace("-01", "-02", 1)
    return text + "x"


def _other_number(text: str) -> str:
    return str(int(text) + 1) if text.isdigit() else text + "5"
