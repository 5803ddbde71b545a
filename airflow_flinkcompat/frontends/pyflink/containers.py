"""Lists, tuples and dictionaries of a program: their methods, as Python runs them on what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.pyflink import paths
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Container,
    NotRead,
    Value,
)

Args = Sequence[Value]


def method(owner: Container, name: str, args: Args, names: Mapping[str, Value]) -> Value | None:
    """``owner.name(*args, **names)`` of a container whose content is known; None for what is not read.

    Raises :class:`NotRead` where the program would fail.
    """
    if isinstance(owner.value, dict):
        return _of_dict(owner, owner.value, name, args, names)
    if owner.kind == "list" and not names:
        changed = _changed(owner.value, name, args)
        if changed is not None:
            return changed
    match name, list(args):
        case "index" | "count", [Const(given)] if owner.kind != "iterator" and not names:
            inner = [value.value for value in owner.value if isinstance(value, Const)]
            if len(inner) == len(owner.value) and not paths.symbolic(given) and not any(map(paths.symbolic, inner)):
                return Const(inner.count(given)) if name == "count" else _index(inner, given)
        case "copy", [] if owner.kind == "list":
            return Container(list(owner.value))
    return None


def _index(inner: Sequence[object], given: object) -> Value:
    if given not in inner:
        raise NotRead("an element that is not there is looked for")
    return Const(inner.index(given))


def _changed(inner: list[Value], name: str, args: Args) -> Value | None:
    """A method that changes a list in place."""
    match name, list(args):
        case "append", [value]:
            inner.append(value)
        case "extend", [Container(list(more), "", kind) as other] if kind != "set" or len(more) < 2:
            inner += list(more)
            if kind == "iterator":
                other.broken = "an iterator gives its values once"
        case "insert", [Const(int(at)), value]:
            inner.insert(at, value)
        case "reverse", []:
            inner.reverse()
        case "clear", []:
            inner.clear()
        case "pop", [] if inner:
            return inner.pop()
        case "pop", [Const(int(at))]:
            if not -len(inner) <= at < len(inner):
                raise NotRead("an element that is not there is taken")
            return inner.pop(at)
        case _:
            return None
    return Const(None)


def _of_dict(
    owner: Container, inner: dict[object, Value], name: str, args: Args, names: Mapping[str, Value]
) -> Value | None:
    match name, list(args):
        case "get" | "pop" | "setdefault", [Const(key), *_] if paths.symbolic(key):
            return None
        case "get", [Const(key), *default] if len(default) < 2 and not names:
            return inner[key] if key in inner else (default[0] if default else Const(None))
        case "items" | "keys" | "values", []:
            view = Container(_view(inner, name), kind="tuple")
            owner.views.append(view)
            return view
        case "copy", []:
            return Container(dict(inner), kind="dict")
        case "pop", [Const(key), *default] if key in inner or default:
            owner.change()
            return inner.pop(key) if key in inner else default[0]
        case "setdefault", [Const(key), value]:
            owner.change()
            return inner.setdefault(key, value)
        case "update", [] | [Container(dict(), "")]:
            more = args[0].value if args and isinstance(args[0], Container) else {}
            inner.update({**more, **names})  # type: ignore[dict-item]
        case "clear", []:
            inner.clear()
        case _:
            return None
    owner.change()
    return Const(None)


def _view(inner: dict[object, Value], name: str) -> list[Value]:
    if name == "values":
        return list(inner.values())
    keys: list[Value] = [Const(key) for key in inner]  # type: ignore[arg-type]
    if name == "keys":
        return keys
    return [Container([key, value], kind="tuple") for key, value in zip(keys, inner.values(), strict=True)]


def set_item(owner: Container, key: Value, value: Value) -> bool:
    """``owner[key] = value``; False where what it does is not known."""
    match owner, key:
        case Container(dict(inner), ""), Const(name) if not paths.symbolic(name):
            inner[name] = value
            owner.change()
            return True
        case Container(list(values), "", "list"), Const(int(at)) if -len(values) <= at < len(values):
            values[at] = value
            return True
    return False


def built(name: str, values: list[Value] | None, names: Mapping[str, Value]) -> Value | None:
    """``list(values)``, ``dict(**names)``, ``sorted(values)`` and their like; ``values`` is None without argument."""
    inner = values or []
    match name:
        case "list" | "tuple" if not names:
            return Container(inner, kind=name)
        case "iter" | "reversed" if not names and values is not None:
            return Container(inner[::-1] if name == "reversed" else inner, kind="iterator")
        case "dict":
            pairs = [pair.value for pair in inner if isinstance(pair, Container) and not pair.broken]
            if len(pairs) == len(inner) and all(len(pair) == 2 and isinstance(pair[0], Const) for pair in pairs):
                return Container({**{pair[0].value: pair[1] for pair in pairs}, **names}, kind="dict")
        case "enumerate" if values is not None:
            start = names.get("start", Const(0))
            if isinstance(start, Const) and isinstance(start.value, int) and set(names) <= {"start"}:
                begin = start.value
                return Container(
                    [Container([Const(begin + i), v], kind="tuple") for i, v in enumerate(inner)], kind="iterator"
                )
        case "sorted" if set(names) <= {"reverse"}:
            return _sorted(inner, names.get("reverse", Const(False)))
        case "any" | "all" if all(isinstance(value, Const) for value in inner) and not names:
            return Const({"any": any, "all": all}[name](value.value for value in inner if isinstance(value, Const)))
        case "set" | "frozenset" if all(isinstance(value, Const) for value in inner) and not names:
            return Container(
                list({value.value: value for value in inner if isinstance(value, Const)}.values()), kind="set"
            )
    return None


def _sorted(values: list[Value], down: Value) -> Value | None:
    known = [value for value in values if isinstance(value, Const) and not paths.symbolic(value.value)]
    if len(known) != len(values) or not isinstance(down, Const):
        return None
    try:
        return Container(sorted(known, key=lambda value: value.value, reverse=bool(down.value)))
    except TypeError:
        return None
