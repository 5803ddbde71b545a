"""CREATE TABLE, VIEW, FUNCTION and their parts."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.query_parser import QueryParser

_LANGUAGES = ("JAVA", "PYTHON", "SCALA")
_RESOURCE_KINDS = ("ARCHIVE", "FILE", "JAR")
_LIKE_STRATEGIES = ("EXCLUDING", "INCLUDING", "OVERWRITING")
_LIKE_PARTS = (
    *("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS"),
)
_QUERY_STARTS = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.VALUES})


class DdlParser(QueryParser):
    """The part of the parser that reads definitions."""

    def parse_create(self) -> exp.Expr:
        """Read ``CREATE …`` after that word."""
        replace = self._match_text_seq("OR", "REPLACE")
        temporary = self._match_text_seq("TEMPORARY")
        system = self._match_text_seq("SYSTEM")
        if self._match_text_seq("FUNCTION"):
            return self._parse_create_function(temporary=bool(temporary), system=bool(system))
        if self._match_text_seq("TABLE"):
            return self._parse_create_table(temporary=bool(temporary), replace=bool(replace))
        if self._match_text_seq("VIEW"):
            return self._parse_create_view(temporary=bool(temporary), replace=bool(replace))
        self.raise_error("Expected TABLE, VIEW or FUNCTION after CREATE")
        raise AssertionError("unreachable: raise_error raises")

    # ------------------------------------------------------------------------------------- common clauses
    def parse_if_not_exists(self) -> bool:
        """Read ``IF NOT EXISTS`` if it is there."""
        return bool(self._match_text_seq("IF", "NOT", "EXISTS"))

    def parse_comment(self) -> exp.Literal | None:
        """Read ``COMMENT 'text'`` if it is there."""
        return self.require_string() if self._match_text_seq("COMMENT") else None

    def require_string(self) -> exp.Literal:
        """Read a string literal or raise."""
        literal = self._parse_string()
        if not isinstance(literal, exp.Literal):
            self.raise_error("Expected a string in single quotes")
            raise AssertionError("unreachable: raise_error raises")
        return literal

    def parse_options(self) -> list[nodes.Option] | None:
        """Read ``WITH ('key' = 'value', …)`` if it is there."""
        return self.parse_option_list() if self._match(TokenType.WITH) else None

    def parse_option_list(self) -> list[nodes.Option]:
        """Read ``('key' = 'value', …)``; an empty list is allowed."""
        self._match_l_paren()
        options: list[nodes.Option] = []
        if not self._match(TokenType.R_PAREN, advance=False):
            options = self._parse_csv(self._parse_option)
        self._match_r_paren()
        return options

    def _parse_option(self) -> nodes.Option:
        start = self._curr
        key = self.require_string()
        self.expect(TokenType.EQ, "= after the option's key")
        return self.place(nodes.Option(this=key, expression=self.require_string()), start)

    def parse_partition_value(self) -> nodes.PartitionValue:
        """Read ``name [= value]`` of a partition spec."""
        start = self._curr
        name = self.require_identifier()
        value = self._parse_bitwise() if self._match(TokenType.EQ) else None
        return self.place(nodes.PartitionValue(this=name, expression=value), start)

    # --------------------------------------------------------------------------------------------- table
    def _parse_create_table(self, *, temporary: bool, replace: bool) -> nodes.CreateTable:
        exists = self.parse_if_not_exists()
        create = nodes.CreateTable(this=self.parse_name(), temporary=temporary, exists=exists, replace=replace)
        if self._match(TokenType.L_PAREN):
            self._parse_table_elements(create)
            self._match_r_paren()
        create.set("comment", self.parse_comment())
        create.set("distribution", self.parse_distribution())
        if self._match_text_seq("PARTITIONED", "BY"):
            create.set("partitioned_by", self._parse_wrapped_csv(self.require_identifier))
        create.set("distribution", create.args.get("distribution") or self.parse_distribution())
        create.set("options", self.parse_options())
        if self._match(TokenType.LIKE):
            create.set("like", self._parse_like())
        elif self._match(TokenType.ALIAS):
            create.set("expression", self.require_query())
        return create

    def _parse_table_elements(self, create: nodes.CreateTable) -> None:
        elements = [] if self._match(TokenType.R_PAREN, advance=False) else self._parse_csv(self.parse_table_element)
        for key, kind in (("watermarks", nodes.Watermark), ("constraints", nodes.KeyConstraint)):
            found = [element for element in elements if isinstance(element, kind)]
            create.set(key, found or None)
        columns = [element for element in elements if not isinstance(element, (nodes.Watermark, nodes.KeyConstraint))]
        create.set("columns", columns)

    def parse_table_element(self) -> exp.Expr:
        """Read one column, watermark or constraint."""
        start = self._curr
        if self._match_text_seq("WATERMARK", "FOR"):
            column = self.parse_dotted_name()
            self.expect(TokenType.ALIAS, "AS in the watermark")
            return self.place(nodes.Watermark(this=column, expression=self._require_disjunction()), start)
        constraint = self._parse_table_constraint()
        if constraint is not None:
            return self.place(constraint, start)
        return self.place(self._parse_column_definition(), start)

    def _parse_table_constraint(self) -> nodes.KeyConstraint | None:
        name = self.require_identifier() if self._match_text_seq("CONSTRAINT") else None
        index = self._index
        kind = self._match_key_kind()
        if kind is None or not self._match(TokenType.L_PAREN, advance=False):
            self._retreat(index)
            if name is not None:
                self.raise_error("Expected PRIMARY KEY or UNIQUE after CONSTRAINT")
            return None
        columns = self._parse_wrapped_csv(self.require_identifier)
        return nodes.KeyConstraint(this=name, kind=kind, expressions=columns, enforced=self._parse_enforced())

    def _match_key_kind(self) -> str | None:
        if self._match_text_seq("PRIMARY", "KEY"):
            return "PRIMARY KEY"
        return "UNIQUE" if self._match_text_seq("UNIQUE") else None

    def _parse_enforced(self) -> bool | None:
        if self._match_text_seq("NOT", "ENFORCED"):
            return False
        return True if self._match_text_seq("ENFORCED") else None

    def _parse_column_definition(self) -> exp.Expr:
        name = self.require_identifier()
        if self._match(TokenType.ALIAS):
            expression = self._require_disjunction()
            return nodes.ComputedColumn(this=name, expression=expression, comment=self.parse_comment())
        if self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            return name  # CREATE TABLE t (b, a) AS SELECT … only reorders
        kind = self.require_type()
        if self._match_text_seq("METADATA"):
            key = self.require_string() if self._match(TokenType.FROM) else None
            virtual = bool(self._match_text_seq("VIRTUAL"))
            return nodes.MetadataColumn(
                this=name, kind=kind, metadata_key=key, virtual=virtual, comment=self.parse_comment()
            )
        return nodes.PhysicalColumn(
            this=name, kind=kind, constraint=self._parse_column_constraint_clause(), comment=self.parse_comment()
        )

    def _parse_column_constraint_clause(self) -> nodes.KeyConstraint | None:
        start = self._curr
        name = self.require_identifier() if self._match_text_seq("CONSTRAINT") else None
        kind = self._match_key_kind()
        if kind is None:
            if name is not None:
                self.raise_error("Expected PRIMARY KEY or UNIQUE after CONSTRAINT")
            return None
        return self.place(nodes.KeyConstraint(this=name, kind=kind, enforced=self._parse_enforced()), start)

    def parse_distribution(self) -> nodes.Distribution | None:
        """Read ``DISTRIBUTED BY HASH(a) INTO 4 BUCKETS`` if it is there."""
        start = self._curr
        if not self._match_text_seq("DISTRIBUTED"):
            return None
        kind = None
        columns = None
        if self._match_text_seq("BY"):
            kind = self.match_word("HASH", "RANGE")
            columns = self._parse_wrapped_csv(self.require_identifier)
        buckets = None
        if self._match_text_seq("INTO"):
            buckets = self._parse_number()
            self.expect_word("BUCKETS")
        return self.place(nodes.Distribution(kind=kind, expressions=columns, buckets=buckets), start)

    def _parse_like(self) -> nodes.TableLike:
        start = self._prev
        table = self.parse_name()
        options: list[nodes.LikeOption] = []
        if self._match(TokenType.L_PAREN):
            while not self._match(TokenType.R_PAREN):
                strategy = self.match_word(*_LIKE_STRATEGIES)
                part = self.match_word(*_LIKE_PARTS) if strategy else None
                if strategy is None or part is None:
                    self.raise_error("Expected INCLUDING, EXCLUDING or OVERWRITING and what of the table")
                options.append(nodes.LikeOption(this=strategy, kind=part))
        return self.place(nodes.TableLike(this=table, expressions=options), start)

    # ------------------------------------------------------------------------------------ view, function
    def _parse_create_view(self, *, temporary: bool, replace: bool) -> nodes.CreateView:
        exists = self.parse_if_not_exists()
        name = self.parse_name()
        columns = None
        if self._match(TokenType.L_PAREN, advance=False) and self._next.token_type not in _QUERY_STARTS:
            columns = self._parse_wrapped_csv(self.require_identifier)
        comment = self.parse_comment()
        self.expect(TokenType.ALIAS, "AS before the view's query")
        return nodes.CreateView(
            this=name,
            columns=columns,
            comment=comment,
            expression=self.require_query(),
            temporary=temporary,
            exists=exists,
            replace=replace,
        )

    def _parse_create_function(self, *, temporary: bool, system: bool) -> nodes.CreateFunction:
        exists = self.parse_if_not_exists()
        name = self.parse_name()
        self.expect(TokenType.ALIAS, "AS before the function's class")
        source = self.require_string()
        language = None
        if self._match_text_seq("LANGUAGE"):
            language = self.match_word(*_LANGUAGES)
            if language is None:
                self.raise_error(f"Expected {', '.join(_LANGUAGES)} after LANGUAGE")
        resources = self._parse_csv(self.parse_resource) if self._match(TokenType.USING) else None
        return nodes.CreateFunction(
            this=name,
            expression=source,
            language=language,
            resources=resources,
            options=self.parse_options(),
            temporary=temporary,
            system=system,
            exists=exists,
        )

    def parse_resource(self) -> nodes.Resource:
        """Read ``JAR 'path'``."""
        start = self._curr
        kind = self.match_word(*_RESOURCE_KINDS)
        if kind is None:
            self.raise_error(f"Expected {', '.join(_RESOURCE_KINDS)}")
        return self.place(nodes.Resource(this=self.require_string(), kind=kind), start)
