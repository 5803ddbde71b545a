"""Parser of CREATE, ALTER and DROP, and of their clauses."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.query_parser import QueryParser

# Kinds of objects that ALTER and DROP change.
_OBJECT_KINDS = ("CATALOG", "DATABASE", "FUNCTION", "MODEL", "TABLE", "VIEW")
_LANGUAGES = ("JAVA", "PYTHON", "SCALA")
RESOURCE_KINDS = ("ARCHIVE", "FILE", "JAR")
_LIKE_STRATEGIES = ("EXCLUDING", "INCLUDING", "OVERWRITING")
_LIKE_PARTS = ("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_QUERY_STARTS = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.VALUES})


class DdlParser(QueryParser):
    """The part of the parser that reads CREATE, ALTER and DROP."""

    def parse_create(self) -> exp.Expr:
        """Read the rest of ``CREATE …``."""
        replace = self.match_words("OR", "REPLACE")
        temporary = self.match_words("TEMPORARY")
        system = self.match_words("SYSTEM")
        if self.match_words("FUNCTION"):
            return self._parse_create_function(temporary=bool(temporary), system=bool(system))
        if self.match_words("TABLE"):
            return self._parse_create_table(temporary=bool(temporary), replace=bool(replace))
        if self.match_words("VIEW"):
            return self._parse_create_view(temporary=bool(temporary), replace=bool(replace))
        if self.match_words("MODEL"):
            return self._parse_create_model(temporary=bool(temporary))
        kind = self.match_word("CATALOG", "DATABASE")
        if kind is None:
            self.fail("Expected TABLE, VIEW, FUNCTION, DATABASE, CATALOG or MODEL after CREATE")
        exists = self.parse_if_not_exists()
        name = self.parse_name()
        return nodes.CreateNamespace(
            this=name, kind=kind, exists=exists, comment=self.parse_comment(), options=self.parse_options()
        )

    def parse_replace(self) -> exp.Expr:
        """Read ``REPLACE TABLE …``, which Flink treats like CREATE OR REPLACE of an existing table."""
        self.expect_words("TABLE")
        create = self._parse_create_table(temporary=False, replace=True)
        create.set("only_replace", True)
        return create

    def _parse_create_model(self, *, temporary: bool) -> nodes.CreateModel:
        exists = self.parse_if_not_exists()
        create = nodes.CreateModel(this=self.parse_name(), temporary=temporary, exists=exists)
        for word, key in (("INPUT", "inputs"), ("OUTPUT", "outputs")):
            if self.match_words(word):
                create.set(key, self.wrapped_list(self._parse_column_definition))
        create.set("comment", self.parse_comment())
        create.set("options", self.parse_options())
        return create

    # ------------------------------------------------------------------------------------- common clauses
    def parse_if_not_exists(self) -> bool:
        """Read ``IF NOT EXISTS`` if it is next."""
        return bool(self.match_words("IF", "NOT", "EXISTS"))

    def parse_comment(self) -> exp.Literal | None:
        """Read ``COMMENT 'text'`` if it is next."""
        return self.require_string() if self.match_words("COMMENT") else None

    def parse_options(self) -> list[nodes.Option] | None:
        """Read ``WITH ('key' = 'value', …)`` if it is next."""
        return self.parse_option_list() if self._match(TokenType.WITH) else None

    def parse_option_list(self) -> list[nodes.Option]:
        """Read ``('key' = 'value', …)``; an empty list is allowed."""
        return self.wrapped_list(self._parse_option, empty=True)

    def _parse_option(self) -> nodes.Option:
        start = self._curr
        key = self.require_string()
        self.expect(TokenType.EQ, "= after the option's key")
        return self.place(nodes.Option(this=key, expression=self.require_string()), start)

    def parse_partition_value(self) -> nodes.PartitionValue:
        """Read ``name [= value]`` of a partition spec."""
        start = self._curr
        name = self.require_identifier()
        value = self.require_operand() if self._match(TokenType.EQ) else None
        return self.place(nodes.PartitionValue(this=name, expression=value), start)

    # --------------------------------------------------------------------------------------------- table
    def _parse_create_table(self, *, temporary: bool, replace: bool) -> nodes.CreateTable:
        exists = self.parse_if_not_exists()
        create = nodes.CreateTable(this=self.parse_name(), temporary=temporary, exists=exists, replace=replace)
        if self._match(TokenType.L_PAREN, advance=False):
            self._sort_table_elements(create, self.wrapped_list(self.parse_table_element, empty=True))
        create.set("comment", self.parse_comment())
        create.set("distribution", self.parse_distribution())
        if self.match_words("PARTITIONED", "BY"):
            create.set("partitioned_by", self.wrapped_list(self.require_identifier))
        create.set("distribution", create.args.get("distribution") or self.parse_distribution())
        create.set("options", self.parse_options())
        if self._match(TokenType.LIKE):
            create.set("like", self._parse_like())
        elif self._match(TokenType.ALIAS):
            create.set("expression", self.require_query())
        return create

    def _sort_table_elements(self, create: nodes.CreateTable, elements: list[exp.Expr]) -> None:
        watermarks = [element for element in elements if isinstance(element, nodes.Watermark)]
        constraints = [element for element in elements if isinstance(element, nodes.KeyConstraint)]
        columns = [element for element in elements if not isinstance(element, (nodes.Watermark, nodes.KeyConstraint))]
        create.set("columns", columns)
        create.set("watermarks", watermarks or None)
        create.set("constraints", constraints or None)

    def parse_table_element(self) -> exp.Expr:
        """Read one column, watermark or constraint."""
        start = self._curr
        if self.match_words("WATERMARK", "FOR"):
            column = self.parse_dotted_name()
            self.expect(TokenType.ALIAS, "AS in the watermark")
            return self.place(nodes.Watermark(this=column, expression=self.require_expression()), start)
        constraint = self._parse_table_constraint()
        if constraint is not None:
            return self.place(constraint, start)
        return self.place(self._parse_column_definition(), start)

    def _parse_table_constraint(self) -> nodes.KeyConstraint | None:
        name = self.require_identifier() if self.match_words("CONSTRAINT") else None
        index = self._index
        kind = self._match_key_kind()
        if kind is None or not self._match(TokenType.L_PAREN, advance=False):
            if name is not None:
                self.fail("Expected PRIMARY KEY (…) or UNIQUE (…) after CONSTRAINT")
            self._retreat(index)
            return None
        columns = self.wrapped_list(self.require_identifier)
        return nodes.KeyConstraint(this=name, kind=kind, expressions=columns, enforced=self._parse_enforced())

    def _match_key_kind(self) -> str | None:
        if self.match_words("PRIMARY", "KEY"):
            return "PRIMARY KEY"
        return "UNIQUE" if self.match_words("UNIQUE") else None

    def _parse_enforced(self) -> bool | None:
        if self.match_words("NOT", "ENFORCED"):
            return False
        return True if self.match_words("ENFORCED") else None

    def _parse_column_definition(self) -> exp.Expr:
        name, compound = self.require_identifier(), False
        while self._match(TokenType.DOT):
            compound = bool(self.require_identifier())  # Flink's parser only uses the a of a.b
        if self._match(TokenType.ALIAS):
            expression = self.require_expression()
            return nodes.ComputedColumn(this=name, expression=expression, comment=self.parse_comment())
        if self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN) and not compound:
            return name  # CREATE TABLE t (b, a) AS SELECT … only reorders columns
        kind = self.require_type()
        if self.match_words("METADATA"):
            key = self.require_string() if self._match(TokenType.FROM) else None
            virtual = bool(self.match_words("VIRTUAL"))
            return nodes.MetadataColumn(
                this=name, kind=kind, metadata_key=key, virtual=virtual, comment=self.parse_comment()
            )
        return nodes.PhysicalColumn(
            this=name, kind=kind, constraint=self._parse_column_constraint_clause(), comment=self.parse_comment()
        )

    def _parse_column_constraint_clause(self) -> nodes.KeyConstraint | None:
        start = self._curr
        name = self.require_identifier() if self.match_words("CONSTRAINT") else None
        kind = self._match_key_kind()
        if kind is None:
            if name is not None:
                self.fail("Expected PRIMARY KEY or UNIQUE after CONSTRAINT")
            return None
        return self.place(nodes.KeyConstraint(this=name, kind=kind, enforced=self._parse_enforced()), start)

    def parse_distribution(self) -> nodes.Distribution | None:
        """Read ``DISTRIBUTED BY HASH(a) INTO 4 BUCKETS`` if it is next."""
        start = self._curr
        return self.place(self.parse_distribution_clause(), start) if self.match_words("DISTRIBUTED") else None

    def parse_distribution_clause(self) -> nodes.Distribution:
        """Read ``BY HASH(a) INTO 4 BUCKETS``."""
        kind = None
        columns = None
        if self.match_words("BY"):
            kind = self.match_word("HASH", "RANGE")
            columns = self.wrapped_list(self.require_identifier)
        buckets = None
        if self.match_words("INTO"):
            buckets = self._parse_number()
            self.expect_words("BUCKETS")
        return nodes.Distribution(kind=kind, expressions=columns, buckets=buckets)

    def _parse_like(self) -> nodes.TableLike:
        start = self._prev
        table = self.parse_name()
        options: list[nodes.LikeOption] = []
        if self._match(TokenType.L_PAREN):
            while not self._match(TokenType.R_PAREN):
                strategy = self.require_word(*_LIKE_STRATEGIES)
                options.append(nodes.LikeOption(this=strategy, kind=self.require_word(*_LIKE_PARTS)))
            if not options:
                self.fail("Expected INCLUDING, EXCLUDING or OVERWRITING in the parentheses", self._prev)
        return self.place(nodes.TableLike(this=table, expressions=options), start)

    # ------------------------------------------------------------------------------------ view, function
    def _parse_create_view(self, *, temporary: bool, replace: bool) -> nodes.CreateView:
        exists = self.parse_if_not_exists()
        name = self.parse_name()
        columns = None
        if self._match(TokenType.L_PAREN, advance=False) and self._next.token_type not in _QUERY_STARTS:
            columns = self.wrapped_list(self.require_identifier)
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
        language = self.parse_language()
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

    def parse_language(self) -> str | None:
        """Read ``LANGUAGE PYTHON`` if it is next."""
        return self.require_word(*_LANGUAGES, context=" after LANGUAGE") if self.match_words("LANGUAGE") else None

    def parse_resource(self) -> nodes.Resource:
        """Read ``JAR 'path'``."""
        start = self._curr
        kind = self.require_word("ARTIFACT", *RESOURCE_KINDS)
        return self.place(nodes.Resource(this=self.require_string(), kind=kind), start)

    # --------------------------------------------------------------------------------------- alter and drop
    def parse_drop(self) -> nodes.Drop:
        """Read the rest of ``DROP …``."""
        temporary, system, kind = self._parse_object_kind()
        exists = self.match_words("IF", "EXISTS")
        name = self.parse_name()
        behavior = self.match_word("CASCADE", "RESTRICT")
        return nodes.Drop(this=name, kind=kind, temporary=temporary, system=system, exists=exists, behavior=behavior)

    def parse_alter(self) -> nodes.Alter:
        """Read the rest of ``ALTER …``."""
        temporary, system, kind = self._parse_object_kind()
        exists = self.match_words("IF", "EXISTS")
        name = self.parse_name()
        start = self._curr
        action = self.place(self._parse_action(kind), start)
        return nodes.Alter(this=name, kind=kind, action=action, temporary=temporary, system=system, exists=exists)

    def _parse_object_kind(self) -> tuple[bool, bool, str]:
        temporary = self.match_words("TEMPORARY")
        system = self.match_words("SYSTEM")
        return temporary, system, self.require_word(*_OBJECT_KINDS)

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
        """Read ``DISTRIBUTION BY HASH(a) INTO 4 BUCKETS``, the form of ALTER."""
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
