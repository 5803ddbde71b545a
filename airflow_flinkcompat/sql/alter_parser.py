"""ALTER and DROP."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.ddl_parser import DdlParser

#: What ALTER and DROP speak of.
OBJECT_KINDS = ("CATALOG", "DATABASE", "FUNCTION", "MODEL", "TABLE", "VIEW")


class AlterParser(DdlParser):
    """The part of the parser that reads ALTER and DROP."""

    def parse_drop(self) -> nodes.Drop:
        """Read ``DROP …`` after that word."""
        temporary, system, kind = self._parse_object_kind()
        exists = self.match_words("IF", "EXISTS")
        name = self.parse_name()
        behavior = self.match_word("CASCADE", "RESTRICT")
        return nodes.Drop(this=name, kind=kind, temporary=temporary, system=system, exists=exists, behavior=behavior)

    def parse_alter(self) -> nodes.Alter:
        """Read ``ALTER …`` after that word."""
        temporary, system, kind = self._parse_object_kind()
        exists = self.match_words("IF", "EXISTS")
        name = self.parse_name()
        start = self._curr
        action = self.place(self._parse_action(kind), start)
        return nodes.Alter(this=name, kind=kind, action=action, temporary=temporary, system=system, exists=exists)

    def _parse_object_kind(self) -> tuple[bool, bool, str]:
        temporary = self.match_words("TEMPORARY")
        system = self.match_words("SYSTEM")
        return temporary, system, self.require_word(*OBJECT_KINDS)

    def _parse_action(self, kind: str) -> exp.Expr:
        if self.match_words("ADD"):
            return self._parse_add()
        if self.match_words("MODIFY"):
            return nodes.ModifyElements(expressions=self._parse_elements())
        if self.match_words("DROP"):
            return self._parse_drop_elements()
        if self.match_words("RENAME"):
            return self._parse_rename()
        if self.match_words("SET"):
            return nodes.SetOptions(expressions=self.parse_option_list())
        if self.match_words("RESET"):
            return nodes.ResetOptions(expressions=self.wrapped_list(self.require_string))
        if self.match_words("COMMENT"):
            return nodes.SetComment(this=self.require_string())
        if self._match(TokenType.ALIAS):
            if kind == "FUNCTION":
                return nodes.SetClass(this=self.require_string(), language=self.parse_language())
            return nodes.SetQuery(this=self.require_query())
        self.fail("Expected ADD, MODIFY, DROP, RENAME, SET, RESET, COMMENT or AS")

    # ---------------------------------------------------------------------------------------- add, modify
    def _parse_add(self) -> exp.Expr:
        index = self._index
        exists = self.match_words("IF", "NOT", "EXISTS")
        if self._match(TokenType.PARTITION, advance=False):
            return self._parse_partitions("ADD", exists)
        self._retreat(index)
        return nodes.AddElements(expressions=self._parse_elements())

    def _parse_elements(self) -> list[exp.Expr]:
        distribution = self.parse_distribution()
        if distribution is None and self._match_texts(("DISTRIBUTION",), advance=False):
            distribution = self._parse_distribution_word()
        if distribution is not None:
            return [distribution]
        if self._match(TokenType.L_PAREN, advance=False):
            return self.wrapped_list(self._parse_placed_element)
        return [self._parse_placed_element()]

    def _parse_distribution_word(self) -> nodes.Distribution:
        """``DISTRIBUTION BY HASH(a) INTO 4 BUCKETS``, as ALTER spells it."""
        start = self._curr
        self._advance()
        return self.place(self.parse_distribution_clause(), start)

    def _parse_placed_element(self) -> exp.Expr:
        start = self._curr
        element = self.parse_table_element()
        if isinstance(element, (nodes.Watermark, nodes.KeyConstraint)):
            return element
        position = self.match_word("FIRST", "AFTER")
        after = self.require_identifier() if position == "AFTER" else None
        return self.place(nodes.PlacedElement(this=element, position=position, after=after), start)

    # --------------------------------------------------------------------------------------- drop, rename
    def _parse_drop_elements(self) -> exp.Expr:
        if self.match_words("PRIMARY", "KEY"):
            return nodes.DropElements(kind="PRIMARY KEY")
        if self.match_words("CONSTRAINT"):
            return nodes.DropElements(kind="CONSTRAINT", expressions=[self.require_identifier()])
        if self.match_words("WATERMARK"):
            return nodes.DropElements(kind="WATERMARK")
        if self.match_words("DISTRIBUTION"):
            return nodes.DropElements(kind="DISTRIBUTION")
        exists = self.match_words("IF", "EXISTS")
        if exists or self._match(TokenType.PARTITION, advance=False):
            return self._parse_partitions("DROP", exists)
        if self._match(TokenType.L_PAREN, advance=False):
            return nodes.DropElements(kind="COLUMNS", expressions=self.wrapped_list(self.parse_dotted_name))
        return nodes.DropElements(kind="COLUMNS", expressions=[self.parse_dotted_name()])

    def _parse_partitions(self, kind: str, exists: bool) -> nodes.Partitions:
        specs: list[nodes.PartitionSpec] = []
        while self._match(TokenType.PARTITION):
            specs.append(self.parse_partition_spec())
            self._match(TokenType.COMMA)
        if not specs:
            self.fail("Expected PARTITION")
        return nodes.Partitions(kind=kind, expressions=specs, exists=exists)

    def parse_partition_spec(self) -> nodes.PartitionSpec:
        """Read ``(name = value, …) [WITH (…)]`` after PARTITION."""
        start = self._prev
        values = self.wrapped_list(self.parse_partition_value)
        return self.place(nodes.PartitionSpec(expressions=values, options=self.parse_options()), start)

    def _parse_rename(self) -> exp.Expr:
        if self.match_words("TO"):
            return nodes.RenameTo(this=self.parse_name())
        column = self.parse_dotted_name()
        self.expect_words("TO")
        return nodes.RenameColumn(this=column, expression=self.parse_dotted_name())
