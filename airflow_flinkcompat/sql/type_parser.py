"""Parser of Flink's types, such as ``TIMESTAMP(3) WITH LOCAL TIME ZONE`` or ``ROW<a INT>``."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.base_parser import BaseParser, by_first_word

# The canonical name of each type by its written words. Longer spellings are first.
TYPE_NAMES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("DOUBLE", "PRECISION"), "DOUBLE"),
    (("CHARACTER", "VARYING"), "VARCHAR"),
    (("CHAR", "VARYING"), "VARCHAR"),
    (("BINARY", "VARYING"), "VARBINARY"),
    *(
        ((name,), name)
        for name in (
            *("ARRAY", "BIGINT", "BINARY", "BITMAP", "BOOLEAN", "BYTES", "CHAR", "DATE", "DECIMAL", "DESCRIPTOR"),
            *("DOUBLE", "FLOAT", "INT", "INTERVAL", "MAP", "MULTISET", "NULL", "RAW", "ROW", "SMALLINT", "STRING"),
            *("STRUCTURED", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TINYINT", "VARBINARY", "VARCHAR", "VARIANT"),
        )
    ),
    (("CHARACTER",), "CHAR"),
    (("DEC",), "DECIMAL"),
    (("INTEGER",), "INT"),
    (("NUMERIC",), "DECIMAL"),
)

_BY_FIRST_WORD = by_first_word(TYPE_NAMES)

# Types with element types in angle brackets.
_ELEMENT_TYPES = frozenset({"ARRAY", "MAP", "MULTISET"})
_TEXTS = frozenset({"CHAR", "VARCHAR"})
CHARSET = "UTF-16LE"
_ZONED = frozenset({"TIME", "TIMESTAMP"})
# Collections that can be written after a type, such as ``INT ARRAY``.
_POSTFIX_COLLECTIONS = ("ARRAY", "MULTISET")

USER_TYPE = "USER"
"""Kind of user-defined types, which Flink looks up in its catalog."""

_RESERVED_UNITS = frozenset({"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})
INTERVAL_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})


def meant_type(name: str) -> str:
    """A remedy for an unknown type name: a similar type, if any."""
    meant = get_close_matches(name.upper(), [" ".join(words) for words, _ in TYPE_NAMES], 1)
    return f"{meant[0]} is probably meant" if meant else "write an existing type"


class TypeParser(BaseParser):
    """The part of the parser that reads data types and interval units."""

    def _parse_types(self, *_: Any, **__: Any) -> nodes.FlinkType | None:
        start = self._curr
        data_type = self._parse_named_type()
        if data_type is None:
            return None
        while True:
            if self.match_words("NOT", "NULL"):
                data_type.set("not_null", True)
            elif self._next.text.upper() == "ON" or not self.match_words("NULL"):  # not the NULL of NULL ON EMPTY
                collection = self.match_word(*_POSTFIX_COLLECTIONS)
                if collection is None:
                    return self.place(data_type, start)
                data_type = nodes.FlinkType(this=collection, expressions=[data_type])

    def require_type(self) -> nodes.FlinkType:
        """Read a data type or raise."""
        return self._parse_types() or self.fail("Expected a data type")

    def _parse_named_type(self) -> nodes.FlinkType | None:
        spellings = _BY_FIRST_WORD.get(self._curr.text.upper(), ())
        name = next((name for words, name in spellings if self.match_words(*words)), None)
        if name is None:
            return self._parse_user_type()
        if name == "INTERVAL":
            return nodes.FlinkType(this=name, unit=self.parse_interval_unit())
        if name == "ROW":
            return nodes.FlinkType(this=name, expressions=self._parse_row_fields())
        if name == "STRUCTURED":
            return nodes.FlinkType(this=name, expressions=self._parse_row_fields(class_name=True))
        if name in _ELEMENT_TYPES:
            return nodes.FlinkType(this=name, expressions=self._parse_element_types())
        parameters = self._parse_type_parameters()
        if name in _TEXTS and self.match_words("CHARACTER", "SET"):
            self._parse_charset()
        if name in _ZONED:
            if self.match_words("WITH", "LOCAL", "TIME", "ZONE"):
                name = f"{name}_LTZ"
            elif self.match_words("WITH", "TIME", "ZONE"):
                name = f"{name}_TZ"
            else:
                self.match_words("WITHOUT", "TIME", "ZONE")
        return nodes.FlinkType(this=name, expressions=parameters)

    def _parse_user_type(self) -> nodes.FlinkType | None:
        if self._curr.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
            return None
        start = self._curr
        name = self.parse_dotted_name()
        if self._match(TokenType.L_PAREN, advance=False):
            self.fail(f"The name before the parentheses is not a Flink type: {meant_type(name.name)}", start)
        return self.place(nodes.FlinkType(this=USER_TYPE, expressions=[name]), start)

    def _parse_type_parameters(self) -> list[exp.Expr] | None:
        if not self._match(TokenType.L_PAREN):
            return None
        parameters = self._parse_csv(lambda: self._parse_number() or self._parse_string())
        self._match_r_paren()
        if not parameters or not all(each.is_string or each.name.isdecimal() for each in parameters):
            self.fail("Expected whole numbers in the parentheses", self._prev)
        return parameters

    def _parse_charset(self) -> None:
        """Read the character set of a string type; Flink's planner only writes one character set."""
        start = self._curr
        if self.require_identifier().name.upper() != CHARSET:
            self.fail(f"Expected `{CHARSET}`, the only character set of strings", start)

    def _parse_element_types(self) -> list[nodes.FlinkType]:
        self.expect(TokenType.LT, "< after the collection type")
        elements = self._parse_csv(self.require_type)
        self.expect(TokenType.GT, "> after the element type")
        return elements

    def _parse_row_fields(self, class_name: bool = False) -> list[exp.Expr]:
        if self._match(TokenType.NEQ):  # ROW<>
            return []
        angle = self._match(TokenType.LT)
        if not angle:
            self.expect(TokenType.L_PAREN, "< or ( after the type")
        closing = TokenType.GT if angle else TokenType.R_PAREN
        fields: list[exp.Expr] = []
        if not self._match(closing, advance=False):
            if class_name and (literal := self._parse_string()):
                fields.append(literal)
                if not self._match(TokenType.COMMA):
                    self.expect(closing, "> after the class name")
                    return fields
            fields.extend(self._parse_csv(self._parse_row_field))
        self.expect(closing, "> after the fields" if angle else ") after the fields")
        return fields

    def _parse_row_field(self) -> nodes.RowField:
        start = self._curr
        name = self.require_identifier()
        field = nodes.RowField(this=name, kind=self.require_type(), comment=self.parse_string_literal())
        return self.place(field, start)

    # ------------------------------------------------------------------------------------------ intervals
    def parse_interval_unit(self) -> exp.Expr:
        """Read ``DAY``, ``DAY(3)`` or ``DAY TO SECOND(3)``; plural units become singular."""
        unit = self._parse_unit_word()
        if self.match_words("TO"):
            return exp.IntervalSpan(this=unit, expression=self._parse_unit_word())
        return unit

    def _parse_paren(self) -> exp.Expr | None:
        paren: exp.Expr | None = super()._parse_paren()
        unit = self._curr.text.upper() if self._curr and self._curr.token_type == TokenType.VAR else ""
        if isinstance(paren, exp.Paren) and isinstance(paren.this, exp.Sub) and unit in _RESERVED_UNITS:
            return nodes.TimeDifference(this=paren, unit=self.parse_interval_unit())
        return paren

    def _parse_unit_word(self) -> exp.Expr:
        word = self._curr.text.upper() if self._curr.token_type == TokenType.VAR else ""
        unit = word if word in INTERVAL_UNITS else word.removesuffix("S")
        if unit not in INTERVAL_UNITS:
            self.fail(f"Expected an interval unit ({', '.join(sorted(INTERVAL_UNITS))})")
        self._advance()
        if self._match(TokenType.L_PAREN):
            precision = self._parse_csv(self._parse_number)
            self._match_r_paren()
            return exp.Anonymous(this=unit, expressions=precision)
        return exp.var(unit)

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> exp.Interval | None:
        start, index = self._curr, self._index
        if not self._match(TokenType.INTERVAL):
            return None
        negative = self._match(TokenType.DASH)
        if not negative:
            self._match(TokenType.PLUS)
        if self._match(TokenType.STRING, advance=False):
            value = self._parse_string()
        else:
            value = self._parse_paren() or self._parse_number() or self._parse_column()
        if value is None:
            self._retreat(index)
            return None
        value = exp.Neg(this=value) if negative else value
        return self.place(exp.Interval(this=value, unit=self.parse_interval_unit()), start)
