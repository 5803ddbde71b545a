"""``DataTypes`` of PyFlink, as SQL writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Container,
    Expr,
    NotRead,
    Type,
    Value,
)
from airflow_flinkcompat.model.text import sql_name

_PLAIN = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "STRING", "BYTES",
)  # fmt: skip
_SIZED = {
    "DECIMAL": (2, 2), "TIMESTAMP": (0, 1), "TIMESTAMP_LTZ": (0, 1), "CHAR": (1, 1), "VARCHAR": (1, 1), "TIME": (0, 1),
    "BINARY": (1, 1), "VARBINARY": (1, 1), "TIMESTAMP_WITH_LOCAL_TIME_ZONE": (0, 1),
}  # fmt: skip
"""How many numbers each takes."""
_WRITTEN = {"TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP_LTZ"}
_DEFAULTS: Mapping[str, tuple[int, ...]] = {
    "TIMESTAMP": (6,),
    "TIMESTAMP_LTZ": (6,),
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": (6,),
    "TIME": (0,),
}
"""What a type without a number means."""


def data_type(name: str, args: Sequence[Value], names: Mapping[str, Value] | None = None) -> Value:
    """``DataTypes.NAME(args)``. Raises :class:`NotRead` for a type that is not read."""
    given = dict(names or {})
    nullable = given.pop("nullable", Const(True))
    inner = list(args)
    if inner and isinstance(inner[-1], Const) and isinstance(inner[-1].value, bool):
        nullable = inner.pop()
    end = " NOT NULL" if nullable == Const(False) else ""
    numbers = [arg.value for arg in (*inner, *given.values()) if isinstance(arg, Const) and isinstance(arg.value, int)]
    if name == "FIELD" and len(inner) in (2, 3) and isinstance(inner[0], Const) and isinstance(inner[1], Type):
        return Expr("row field", (str(inner[0].value), inner[1].sql))
    if name in _PLAIN and not inner and not given:
        return Type(name + end)
    low, high = _SIZED.get(name, (1, 0))
    if low <= len(numbers) <= high and len(numbers) == len(inner) + len(given) and _in_order(given):
        shown = ", ".join(map(str, numbers or _DEFAULTS.get(name, ())))
        return Type(f"{_WRITTEN.get(name, name)}({shown}){end}" if shown else name + end)
    types = [arg.sql for arg in inner if isinstance(arg, Type)]
    if name in ("ARRAY", "MULTISET") and len(types) == len(inner) == 1:
        return Type(f"{name}<{types[0]}>{end}")
    if name == "MAP" and len(types) == len(inner) == 2:
        return Type(f"MAP<{types[0]}, {types[1]}>{end}")
    if name == "ROW" and len(inner) == 1 and isinstance(inner[0], Container) and not inner[0].broken:
        fields = [field for field in inner[0].value if isinstance(field, Expr) and field.kind == "row field"]
        if len(fields) == len(inner[0].value) and fields:
            written = ", ".join(f"{sql_name(f.parts[0])} {f.parts[1]}" for f in fields)
            return Type(f"ROW<{written}>{end}", tuple((f.parts[0], f.parts[1]) for f in fields))
    raise NotRead(f"the type {name} is not read, or not with these arguments")


def _in_order(given: Mapping[str, Value]) -> bool:
    return list(given) in ([], ["precision"], ["length"], ["precision", "scale"], ["scale"])


def method(type: Type, name: str, args: Sequence[Value]) -> Type | None:
    """``not_null()`` and ``nullable()``."""
    if name == "not_null" and not args:
        return Type(f"{type.sql.removesuffix(' NOT NULL')} NOT NULL")
    return Type(type.sql.removesuffix(" NOT NULL")) if name == "nullable" and not args else None
