"""Lists, tuples and dictionaries of a program: their methods, as Python runs them on what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_flinkcompat.program.python import paths
from airflow_flinkcompat.program.values import Items, Known, NotRead, Unknown, Value

Args = Sequence[Value]


def method(owner: Items, name: str, args: Args, names: Mapping[str, Value]) -> Value | None:
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
        case "index" | "count", [Known(given)] if owner.kind != "iterator" and not names:
            inner = [value.value for value in owner.value if isinstance(value, Known)]
            if len(inner) == len(owner.value) and not paths.symbolic(given) and not any(map(paths.symbolic, inner)):
                return Known(inner.count(given)) if name == "count" else _index(inner, given)
        case "copy", [] if owner.kind == "list":
            return Items(list(owner.value))
    return None


def _index(inner: Sequence[object], given: object) -> Value:
    if given not in inner:
        raise NotRead("an element that is not there is looked for")
    return Known(inner.index(given))


def _changed(inner: list[Value], name: str, args: Args) -> Value | None:
    """A method that changes a list in place."""
    match name, list(args):
        case "append", [value]:
            inner.append(value)
        case "extend", [Items(list(more), "", kind) as other] if kind != "set" or len(more) < 2:
            inner += list(more)
            if kind == "iterator":
                other.broken = "an iterator gives its values once"
        case "insert", [Known(int(at)), value]:
            inner.insert(at, value)
        case "reverse", []:
            inner.reverse()
        case "clear", []:
            inner.clear()
        case "pop", [] if inner:
            return inner.pop()
        case "pop", [Known(int(at))]:
            if not -len(inner) <= at < len(inner):
                raise NotRead("an element that is not there is taken")
            return inner.pop(at)
        case _:
            return None
    return Known(None)


def _of_dict(
    owner: Items, inner: dict[object, Value], name: str, args: Args, names: Mapping[str, Value]
) -> Value | None:
    match name, list(args):
        case "get", [Known(key), *default] if len(default) < 2 and not names:
            return inner[key] if key in inner else (default[0] if default else Known(None))
        case "items" | "keys" | "values", []:
            view = Items(_view(inner, name), kind="tuple")
            owner.views.append(view)
            return view
        case "copy", []:
            return Items(dict(inner), kind="dict")
        case "pop", [Known(key), *default] if key in inner or default:
            owner.change()
            return inner.pop(key) if key in inner else default[0]
        case "setdefault", [Known(key), value]:
            owner.change()
            return inner.setdefault(key, value)
        case "update", [] | [Items(dict(), "")]:
            more = args[0].value if args and isinstance(args[0], Items) else {}
            inner.update({**more, **names})  # type: ignore[dict-item]
        case "clear", []:
            inner.clear()
        case _:
            return None
    owner.change()
    return Known(None)


def _view(inner: dict[object, Value], name: str) -> list[Value]:
    if name == "values":
        return list(inner.values())
    keys: list[Value] = [Known(key) for key in inner]  # type: ignore[arg-type]
    if name == "keys":
        return keys
    return [Items([key, value], kind="tuple") for key, value in zip(keys, inner.values(), strict=True)]


def set_item(owner: Items, key: Value, value: Value) -> bool:
    """``owner[key] = value``; False where what it does is not known."""
    match owner, key:
        case Items(dict(inner), ""), Known(name):
            inner[name] = value
            owner.change()
            return True
        case Items(list(values), "", "list"), Known(int(at)) if -len(values) <= at < len(values):
            values[at] = value
            return True
    return False


def built(name: str, values: list[Value] | None, names: Mapping[str, Value]) -> Value | None:
    """``list(values)``, ``dict(**names)``, ``sorted(values)`` and their like; ``values`` is None without argument."""
    inner = values or []
    match name:
        case "list" | "tuple" if not names:
            return Items(inner, kind=name)
        case "iter" | "reversed" if not names and values is not None:
            return Items(inner[::-1] if name == "reversed" else inner, kind="iterator")
        case "dict":
            pairs = [pair.value for pair in inner if isinstance(pair, Items) and not pair.broken]
            if len(pairs) == len(inner) and all(len(pair) == 2 and isinstance(pair[0], Known) for pair in pairs):
                return Items({**{pair[0].value: pair[1] for pair in pairs}, **names}, kind="dict")
        case "enumerate" if values is not None:
            start = names.get("start", Known(0))
            if isinstance(start, Known) and isinstance(start.value, int) and set(names) <= {"start"}:
                begin = start.value
                return Items([Items([Known(begin + i), v], kind="tuple") for i, v in enumerate(inner)], kind="iterator")
        case "sorted" if set(names) <= {"reverse"}:
            return _sorted(inner, names.get("reverse", Known(False)))
        case "any" | "all" if all(isinstance(value, Known) for value in inner) and not names:
            return Known({"any": any, "all": all}[name](value.value for value in inner if isinstance(value, Known)))
        case "set" | "frozenset" if all(isinstance(value, Known) for value in inner) and not names:
            return Items(list({value.value: value for value in inner if isinstance(value, Known)}.values()), kind="set")
    return None


def _sorted(values: list[Value], down: Value) -> Value | None:
    known = [value for value in values if isinstance(value, Known) and not paths.symbolic(value.value)]
    if len(known) != len(values) or not isinstance(down, Known):
        return None
    try:
        return Items(sorted(known, key=lambda value: value.value, reverse=bool(down.value)))
    except TypeError:
        return None


def unknown_content(owner: Items) -> Unknown:
    return Unknown(owner.broken or "what it holds is not known")
