"""How values of a script's own plan are stored, in the words of Flink's compiled plans."""

from __future__ import annotations

from airflow_flinkcompat.plan.types import MAX_LENGTH, DataType

_WIDE = {"STRING": f"VARCHAR({MAX_LENGTH})", "BYTES": f"VARBINARY({MAX_LENGTH})"}
_PLAIN = frozenset(
    {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP",
     "TIMESTAMP_LTZ", "CHAR", "VARCHAR", "STRING", "BYTES"}
)  # fmt: skip


class LayoutNotDerived(Exception):
    """The layout of an operator cannot be told; says why, as the end of a sentence."""


def stored_as(type: DataType) -> str:
    """A type as it is stored.

    Args:
        type: Of a column or result.

    Returns:
        It in Flink's words, such as ``VARCHAR(2147483647) NOT NULL``.

    Raises:
        LayoutNotDerived: How such values are stored was not measured.
    """
    if type.name not in _PLAIN or not type.is_known:
        raise LayoutNotDerived(f"how a {type} is stored is not known")
    text = str(type)
    word = text.partition(" ")[0]
    return text.replace(word, _WIDE[word], 1) if word in _WIDE else text
