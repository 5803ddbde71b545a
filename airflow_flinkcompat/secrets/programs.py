"""Literal secrets in a program: values named like a secret, and secrets in embedded SQL."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from itertools import pairwise

from airflow_flinkcompat.model import Span, language_of
from airflow_flinkcompat.secrets.detect import Secret, find_secrets
from airflow_flinkcompat.secrets.redact import MASK, mask_secrets
from airflow_flinkcompat.secrets.spellings import PLACEHOLDER, is_secret_key
from airflow_flinkcompat.sql import Script

_LEFT_OPEN = re.compile(r"%\(\w+\)s|%s|\{\w*\}")
_FILLED = "${conn.filled.password}"
"""Replacement for a part of a string that is known only at run time."""
_HARMLESS = re.compile(r"\s*|\*+|true|false|none|null", re.IGNORECASE)


def program_secrets(text: str, source: str, language: str) -> tuple[Secret, ...]:
    """The literal secrets of a program, in order of position, without their values.

    A value is a secret if it is assigned to, passed as or stored under the name of a secret (``password = "…"``,
    ``option("password", "…")``). Secrets in embedded SQL are also found. Values that the program reads at run time are
    not reported.
    """
    tree = _tree(text) if language == "python" else None
    if tree is None:
        return find_secrets(Script(source, text, ()))
    lines = text.split("\n")
    found = [(_span(node, lines, source), key) for node, key in _literals(tree)]
    taken = {span for span, _ in found}
    for node, joined in _texts(tree):
        span = _span(node, lines, source)
        found += [(span, secret.key) for secret in _in_text(joined) if span not in taken]
    for span, comment in _comments(text, source):
        found += [(span, secret.key) for secret in _in_text(comment)]
    unique = dict.fromkeys(sorted(found, key=lambda row: (row[0].line, row[0].column)))
    return tuple(Secret(key, span) for span, key in unique)


def secrets_in_file(text: str, path: str) -> tuple[Secret, ...]:
    """Literal secrets of a file, including unquoted secrets if the file is neither Python nor SQL."""
    found = program_secrets(text, path, language_of(path))
    if found or path.endswith((".py", ".sql")):
        return found
    lines = enumerate(text.split("\n"), 1)
    return tuple(
        Secret("a value", Span(path, at, 1, at, len(line))) for at, line in lines if mask_secrets(line) != line
    )


def mask_program(text: str, language: str) -> str:
    """Replace every literal secret of a program with ``***``. The result is for display only."""
    tree = _tree(text) if language == "python" else None
    if tree is None:
        return mask_secrets(text)
    lines = text.split("\n")
    spans = sorted({_span(node, lines, "") for node, _ in _literals(tree)}, key=lambda span: (span.line, span.column))
    for span in reversed(spans):
        rest = lines[span.end_line - 1][span.end_column :]
        lines[span.line - 1 : span.end_line] = [f'{lines[span.line - 1][: span.column - 1]}"{MASK}"{rest}']
    return mask_secrets("\n".join(lines))


def secret_texts(text: str, language: str) -> tuple[str, ...]:
    """Values in a program that are named like a secret, to be masked in logs."""
    tree = _tree(text) if language == "python" else None
    return tuple(dict.fromkeys(str(node.value) for node, _ in _literals(tree))) if tree is not None else ()


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _literals(tree: ast.Module) -> Iterator[tuple[ast.Constant, str]]:
    """String literals that are named like a secret, each with its name."""
    for node in ast.walk(tree):
        for key, value in _named_values(node):
            if is_secret_key(key):
                yield from ((constant, key) for constant in _constants(value))


def _named_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((key, value) for target in targets for key in _names(target))
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from ((key, value) for key in _names(target))
        case ast.keyword(arg=str(key), value=value):
            yield key, value
        case ast.Dict(keys=keys, values=values):
            for name, value in zip(keys, values, strict=True):
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    yield name.value, value
        case ast.Call(args=args):
            for first, second in pairwise(args):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value, second
        case ast.arguments(args=args, defaults=defaults, kwonlyargs=only, kw_defaults=others):
            yield from ((a.arg, d) for a, d in zip(reversed(args), reversed(defaults), strict=False))
            yield from ((a.arg, d) for a, d in zip(only, others, strict=True) if d is not None)


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            yield name


def _constants(value: ast.expr) -> Iterator[ast.Constant]:
    """String literals that an expression may evaluate to. Results of calls are unknown."""
    pending: list[ast.AST] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Constant):
            text = node.value
            plain = isinstance(text, str) and not _HARMLESS.fullmatch(PLACEHOLDER.sub("", _LEFT_OPEN.sub("", text)))
            if plain:
                yield node
        elif isinstance(node, ast.BinOp | ast.BoolOp | ast.IfExp | ast.Tuple | ast.List):
            pending += [part for part in ast.iter_child_nodes(node) if part is not getattr(node, "test", None)]


def _texts(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """The outermost string expressions of a program, each with its concatenated text."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if id(node) in inner or not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
            continue
        parts: list[str] = []
        pending: list[ast.AST] = [node]
        while pending:
            part = pending.pop()
            inner.add(id(part))
            match part:
                case ast.Constant(value=str(text)):
                    parts.append(text)
                case ast.JoinedStr(values=values):
                    pending += reversed(values)
                case ast.BinOp(left=left, op=ast.Add(), right=right):
                    pending += (right, left)
                case ast.BinOp(left=left, op=ast.Mod()):
                    pending.append(left)
                case _:
                    parts.append(_FILLED)
        yield node, _LEFT_OPEN.sub(_FILLED, "".join(parts))


def _in_text(text: str) -> tuple[Secret, ...]:
    # A string without quotes and blanks is not SQL but a single value, such as an address.
    whole = text if "'" in text or re.search(r"\s", text) else f"'{text}'"
    return find_secrets(Script("", whole, ()))


def _comments(text: str, source: str) -> Iterator[tuple[Span, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                (line, column), (end_line, end_column) = token.start, token.end
                yield Span(source, line, column + 1, end_line, end_column), token.string
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return


def _span(node: ast.expr, lines: list[str], source: str) -> Span:
    """The position of a syntax node in characters, whereas :mod:`ast` counts UTF-8 bytes."""

    def column(line: int, offset: int) -> int:
        return len(lines[line - 1].encode()[:offset].decode(errors="replace")) if line <= len(lines) else offset

    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset + 1
    return Span(source, node.lineno, column(node.lineno, node.col_offset) + 1, end_line, column(end_line, end))
