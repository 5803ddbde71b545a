"""Generation of Flink SQL from trees; one table contains a function for each kind of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.generator import Generator

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.type_parser import USER_TYPE

_Print = Callable[["FlinkGenerator", Any], str]


def _words(*parts: str | None) -> str:
    """Join the non-empty parts with blanks."""
    return " ".join(part for part in parts if part)


def _when(condition: object, text: str) -> str:
    return text if condition else ""


# --------------------------------------------------------------------------------------------- relations
def _table(gen: FlinkGenerator, node: exp.Table) -> str:
    name = gen.names(node.args.get("catalog"), node.args.get("db"), node.this)
    joins = gen.expressions(node, key="joins", sep="", flat=True)
    hints = gen.expressions(node, key="hints", flat=True)
    return _words(name, _when(hints, f"/*+ {hints} */"), gen.sql(node, "version"), gen.alias(node)) + joins


def _table_function(gen: FlinkGenerator, node: nodes.TableFunction) -> str:
    call = f"{gen.sql(node, 'this')}({gen.list_of(node)})"
    if isinstance(node.parent, nodes.TableArgument):
        return f"TABLE({call})"
    joins = gen.expressions(node, key="joins", sep="", flat=True)
    return _words(_when(node.args.get("lateral"), "LATERAL"), f"TABLE({call})", gen.alias(node)) + joins


def _table_argument(gen: FlinkGenerator, node: nodes.TableArgument) -> str:
    relation = gen.sql(node, "this")
    keys = gen.list_of(node, "partition_by")
    order = gen.list_of(node.args["order"]) if node.args.get("order") else ""
    return _words(
        _when(isinstance(node.this, exp.Table), "TABLE"),
        relation,
        _when(keys, f"PARTITION BY ({keys})"),
        _when(order, f"ORDER BY ({order})"),
    )


def _match_recognize(gen: FlinkGenerator, node: nodes.MatchRecognize) -> str:
    order = gen.list_of(node.args["order"]) if node.args.get("order") else ""
    clauses = _words(
        gen.clause(node, "partition_by", "PARTITION BY"),
        _when(order, f"ORDER BY {order}"),
        gen.clause(node, "measures", "MEASURES"),
        node.args.get("rows"),
        gen.sql(node, "after"),
        f"PATTERN ({gen.sql(node, 'pattern')})",
        _when(node.args.get("within"), f"WITHIN {gen.sql(node, 'within')}"),
        gen.clause(node, "subsets", "SUBSET"),
        gen.clause(node, "define", "DEFINE"),
    )
    joins = gen.expressions(node, key="joins", sep="", flat=True)
    return _words(gen.sql(node, "this"), f"MATCH_RECOGNIZE ({clauses})", gen.alias(node)) + joins


def _pattern_operand(gen: FlinkGenerator, node: exp.Expr) -> str:
    text = gen.sql(node)
    compound = (nodes.PatternSequence, nodes.PatternAlternation, nodes.PatternRepeat)
    return f"({text})" if isinstance(node, compound) else text


def _pattern_sequence(gen: FlinkGenerator, node: nodes.PatternSequence) -> str:
    nested = (nodes.PatternSequence, nodes.PatternAlternation)
    return " ".join(f"({gen.sql(part)})" if isinstance(part, nested) else gen.sql(part) for part in node.expressions)


def _pattern_repeat(gen: FlinkGenerator, node: nodes.PatternRepeat) -> str:
    minimum, maximum = gen.sql(node, "minimum"), gen.sql(node, "maximum")
    fixed = {("0", ""): "*", ("1", ""): "+", ("0", "1"): "?"}
    exact = f"{{{minimum}}}" if minimum == maximum else f"{{{minimum},{maximum}}}"
    quantifier = fixed.get((minimum, maximum), exact)
    return f"{_pattern_operand(gen, node.this)}{quantifier}{_when(node.args.get('reluctant'), '?')}"


# ----------------------------------------------------------------------------------------- expressions
def _flink_type(gen: FlinkGenerator, node: nodes.FlinkType) -> str:
    name, parameters = node.this, gen.list_of(node)
    if name == USER_TYPE:
        text = parameters
    elif name == "INTERVAL":
        text = f"INTERVAL {gen.sql(node, 'unit')}"
    elif name in ("ARRAY", "MAP", "MULTISET", "ROW", "STRUCTURED"):
        text = f"{name}<{parameters}>"
    elif name in ("TIME_LTZ", "TIME_TZ", "TIMESTAMP_TZ"):
        base, zone = name.split("_")
        text = f"{base}{_when(parameters, f'({parameters})')} WITH {_when(zone == 'LTZ', 'LOCAL ')}TIME ZONE"
    else:
        text = f"{name}{_when(parameters, f'({parameters})')}"
    return text + _when(node.args.get("not_null"), " NOT NULL")


def _keyword_call(gen: FlinkGenerator, node: nodes.KeywordCall) -> str:
    parts: list[str] = []
    for index, operand in enumerate(node.expressions):
        if index:
            parts.append(node.args["keywords"][index - 1])
        parts.append(gen.sql(operand))
    return f"{node.this}({_words(*parts)})"


def _json_call(gen: FlinkGenerator, node: nodes.KeywordCall) -> str:
    clauses = [gen.sql(clause) for clause in node.args.get("clauses") or ()]
    return f"{node.this}({_words(gen.list_of(node), *clauses)})"


def _call_clause(gen: FlinkGenerator, node: nodes.CallClause) -> str:
    first, _, rest = str(node.this).partition(" ")
    return _words(first, gen.sql(node, "expression"), rest)


def _values(gen: FlinkGenerator, node: exp.Values) -> str:
    text = f"VALUES {gen.list_of(node)}"
    alias = gen.alias(node)
    if alias or isinstance(node.parent, (exp.From, exp.Join, exp.Table, exp.Lateral)):
        text = f"({text})"
    return gen.query_modifiers(node, _words(text, alias))


# ------------------------------------------------------------------------------------------ DDL pieces
def _key_constraint(gen: FlinkGenerator, node: nodes.KeyConstraint) -> str:
    columns = gen.list_of(node)
    enforced = {True: "ENFORCED", False: "NOT ENFORCED", None: ""}[node.args.get("enforced")]
    return _words(
        _when(node.this, f"CONSTRAINT {gen.sql(node, 'this')}"),
        node.args["kind"],
        _when(columns, f"({columns})"),
        enforced,
    )


def _metadata_column(gen: FlinkGenerator, node: nodes.MetadataColumn) -> str:
    key = gen.sql(node, "metadata_key")
    return _words(
        gen.sql(node, "this"),
        gen.sql(node, "kind"),
        "METADATA",
        _when(key, f"FROM {key}"),
        _when(node.args.get("virtual"), "VIRTUAL"),
        gen.comment(node),
    )


def _distribution(gen: FlinkGenerator, node: nodes.Distribution) -> str:
    word = "DISTRIBUTED" if isinstance(node.parent, nodes.CreateTable) else "DISTRIBUTION"
    columns = gen.list_of(node)
    buckets = gen.sql(node, "buckets")
    by = _when(columns, f"BY {node.args.get('kind') or ''}({columns})")
    return _words(word, by, _when(buckets, f"INTO {buckets} BUCKETS"))


def _table_like(gen: FlinkGenerator, node: nodes.TableLike) -> str:
    options = " ".join(gen.sql(option) for option in node.expressions)
    return _words("LIKE", gen.sql(node, "this"), _when(options, f"({options})"))


# ------------------------------------------------------------------------------------------ statements
def _create_head(gen: FlinkGenerator, node: exp.Expr, kind: str) -> str:
    args = node.args
    return _words(
        "REPLACE" if args.get("only_replace") else "CREATE",
        _when(args.get("replace") and not args.get("only_replace"), "OR REPLACE"),
        _when(args.get("temporary"), "TEMPORARY"),
        _when(args.get("system"), "SYSTEM"),
        kind,
        _when(args.get("exists"), "IF NOT EXISTS"),
        gen.sql(node, "this"),
    )


def _create_table(gen: FlinkGenerator, node: nodes.CreateTable) -> str:
    elements = [
        gen.sql(element) for key in ("columns", "watermarks", "constraints") for element in node.args.get(key) or ()
    ]
    query = gen.sql(node, "expression")
    partition = gen.list_of(node, "partitioned_by")
    return _words(
        _create_head(gen, node, "TABLE"),
        _when(node.args.get("columns") is not None or elements, f"({', '.join(elements)})"),
        gen.comment(node),
        gen.sql(node, "distribution"),
        _when(partition, f"PARTITIONED BY ({partition})"),
        gen.options(node),
        gen.sql(node, "like"),
        _when(query, f"AS {query}"),
    )


def _create_view(gen: FlinkGenerator, node: nodes.CreateView) -> str:
    columns = gen.list_of(node, "columns")
    return _words(
        _create_head(gen, node, "VIEW"),
        _when(columns, f"({columns})"),
        gen.comment(node),
        f"AS {gen.sql(node, 'expression')}",
    )


def _create_function(gen: FlinkGenerator, node: nodes.CreateFunction) -> str:
    language = node.args.get("language")
    return _words(
        _create_head(gen, node, "FUNCTION"),
        f"AS {gen.sql(node, 'expression')}",
        _when(language, f"LANGUAGE {language}"),
        gen.clause(node, "resources", "USING"),
        gen.options(node),
    )


def _insert(gen: FlinkGenerator, node: nodes.InsertInto) -> str:
    partition, columns = gen.list_of(node, "partition"), gen.list_of(node, "columns")
    conflict = node.args.get("conflict")
    return _words(
        _when(node.this, "INSERT OVERWRITE" if node.args.get("overwrite") else "INSERT INTO"),
        gen.sql(node, "this"),
        _when(partition, f"PARTITION ({partition})"),
        _when(columns, f"({columns})"),
        gen.sql(node, "expression"),
        _when(conflict, f"ON CONFLICT DO {conflict}"),
    )


def _statement_set(gen: FlinkGenerator, node: nodes.StatementSet) -> str:
    return _words("EXECUTE STATEMENT SET BEGIN", *(f"{gen.sql(statement)};" for statement in node.expressions), "END")


def _set_option(gen: FlinkGenerator, node: nodes.SetOption) -> str:
    return f"SET {gen.sql(node, 'this')} = {gen.sql(node, 'expression')}" if node.this else "SET"


def _create_namespace(gen: FlinkGenerator, node: nodes.CreateNamespace) -> str:
    return _words(_create_head(gen, node, node.args["kind"]), gen.comment(node), gen.options(node))


def _create_model(gen: FlinkGenerator, node: nodes.CreateModel) -> str:
    inputs, outputs = gen.list_of(node, "inputs"), gen.list_of(node, "outputs")
    return _words(
        _create_head(gen, node, "MODEL"),
        _when(inputs, f"INPUT ({inputs})"),
        _when(outputs, f"OUTPUT ({outputs})"),
        gen.comment(node),
        gen.options(node),
    )


def _object_head(gen: FlinkGenerator, node: exp.Expr, verb: str) -> str:
    args = node.args
    return _words(
        verb,
        _when(args.get("temporary"), "TEMPORARY"),
        _when(args.get("system"), "SYSTEM"),
        args["kind"],
        _when(args.get("exists"), "IF EXISTS"),
        gen.sql(node, "this"),
    )


def _drop_elements(gen: FlinkGenerator, node: nodes.DropElements) -> str:
    names = gen.list_of(node)
    if node.args["kind"] == "COLUMNS":
        return f"DROP ({names})"
    return _words("DROP", node.args["kind"], names)


def _partitions(gen: FlinkGenerator, node: nodes.Partitions) -> str:
    kind = node.args["kind"]
    exists = _when(node.args.get("exists"), "IF NOT EXISTS" if kind == "ADD" else "IF EXISTS")
    separator = " " if kind == "ADD" else ", "
    return _words(kind, exists, separator.join(gen.sql(spec) for spec in node.expressions))


def _elements(gen: FlinkGenerator, verb: str, node: exp.Expr) -> str:
    if isinstance(node.expressions[0], nodes.Distribution):
        return f"{verb} {gen.list_of(node)}"
    return f"{verb} ({gen.list_of(node)})"


def _explained(gen: FlinkGenerator, node: exp.Expr) -> str:
    text = gen.sql(node)
    return text.removeprefix("EXECUTE ") if isinstance(node, nodes.StatementSet) else text


def _show(gen: FlinkGenerator, node: nodes.Show) -> str:
    what, like = str(node.this), node.args.get("like")
    preposition = not (what.startswith("CREATE ") or what == "PARTITIONS")
    return _words(
        "SHOW",
        what,
        _when(node.args.get("of") and preposition, "FROM"),
        gen.sql(node, "of"),
        gen.sql(node, "partition"),
        _when(like and node.args.get("negated"), "NOT"),
        _when(like, f"{like} {gen.sql(node, 'pattern')}"),
    )


def _compile_plan(gen: FlinkGenerator, node: nodes.CompilePlan) -> str:
    return _words(
        "COMPILE",
        _when(node.args.get("execute"), "AND EXECUTE"),
        f"PLAN {gen.sql(node, 'this')}",
        _when(node.args.get("exists"), "IF NOT EXISTS"),
        f"FOR {gen.sql(node, 'expression').removeprefix('EXECUTE ')}",
    )


def _hive_table(gen: FlinkGenerator, node: nodes.HiveTable) -> str:
    return _words(node.args["kind"], gen.sql(node, "this"), *(gen.sql(part) for part in node.expressions))


_PRINTERS: dict[type[exp.Expr], _Print] = {
    exp.Table: _table,
    exp.Values: _values,
    exp.Hint: lambda gen, node: f" /*+ {gen.list_of(node)} */",
    exp.Cast: lambda gen, node: f"CAST({gen.sql(node, 'this')} AS {gen.sql(node, 'to')})",
    exp.TryCast: lambda gen, node: f"TRY_CAST({gen.sql(node, 'this')} AS {gen.sql(node, 'to')})",
    exp.Array: lambda gen, node: f"ARRAY[{gen.list_of(node)}]",
    exp.Interval: lambda gen, node: f"INTERVAL {gen.sql(node, 'this')} {gen.sql(node, 'unit')}",
    nodes.TableFunction: _table_function,
    nodes.NamedArgument: lambda gen, node: f"{gen.sql(node, 'this')} => {gen.sql(node, 'expression')}",
    nodes.TableArgument: _table_argument,
    nodes.ModelArgument: lambda gen, node: f"MODEL {gen.sql(node, 'this')}",
    nodes.Descriptor: lambda gen, node: f"DESCRIPTOR({gen.list_of(node)})",
    nodes.SystemTime: lambda gen, node: f"FOR SYSTEM_TIME AS OF {gen.sql(node, 'this')}",
    nodes.HintCall: lambda gen, node: (
        gen.sql(node, "this") + ("" if node.args.get("expressions") is None else f"({gen.list_of(node)})")
    ),
    nodes.MatchRecognize: _match_recognize,
    nodes.AfterMatch: lambda gen, node: _words("AFTER MATCH SKIP", node.this, gen.sql(node, "expression")),
    nodes.MeasureSemantics: lambda gen, node: f"{node.args['kind']} {gen.sql(node, 'this')}",
    nodes.PatternVariable: lambda gen, node: gen.sql(node, "this"),
    nodes.PatternSequence: _pattern_sequence,
    nodes.PatternAlternation: lambda gen, node: " | ".join(
        f"({gen.sql(part)})" if isinstance(part, nodes.PatternAlternation) else gen.sql(part)
        for part in node.expressions
    ),
    nodes.PatternPermutation: lambda gen, node: f"PERMUTE({gen.list_of(node)})",
    nodes.PatternExclusion: lambda gen, node: f"{{- {gen.sql(node, 'this')} -}}",
    nodes.PatternRepeat: _pattern_repeat,
    nodes.PatternSubset: lambda gen, node: f"{gen.sql(node, 'this')} = ({gen.list_of(node)})",
    nodes.PatternDefinition: lambda gen, node: f"{gen.sql(node, 'this')} AS {gen.sql(node, 'expression')}",
    nodes.FlinkType: _flink_type,
    nodes.RowField: lambda gen, node: _words(gen.sql(node, "this"), gen.sql(node, "kind"), gen.sql(node, "comment")),
    nodes.TypedLiteral: lambda gen, node: f"{node.args['kind']} {gen.sql(node, 'this')}",
    nodes.Niladic: lambda gen, node: str(node.this),
    nodes.KeywordCall: lambda gen, node: (_keyword_call if node.args.get("keywords") else _json_call)(gen, node),
    nodes.TimeDifference: lambda gen, node: f"{gen.sql(node, 'this')} {gen.sql(node, 'unit')}",
    nodes.JsonPair: lambda gen, node: f"KEY {gen.sql(node, 'this')} VALUE {gen.sql(node, 'expression')}",
    nodes.CallClause: _call_clause,
    nodes.MapConstructor: lambda gen, node: f"MAP[{gen.list_of(node)}]",
    nodes.MultisetConstructor: lambda gen, node: f"MULTISET[{gen.list_of(node)}]",
    nodes.Option: lambda gen, node: f"{gen.sql(node, 'this')} = {gen.sql(node, 'expression')}",
    nodes.PhysicalColumn: lambda gen, node: _words(
        gen.sql(node, "this"), gen.sql(node, "kind"), gen.sql(node, "constraint"), gen.comment(node)
    ),
    nodes.ComputedColumn: lambda gen, node: _words(
        gen.sql(node, "this"), "AS", gen.sql(node, "expression"), gen.comment(node)
    ),
    nodes.MetadataColumn: _metadata_column,
    nodes.Watermark: lambda gen, node: f"WATERMARK FOR {gen.sql(node, 'this')} AS {gen.sql(node, 'expression')}",
    nodes.KeyConstraint: _key_constraint,
    nodes.Distribution: _distribution,
    nodes.TableLike: _table_like,
    nodes.LikeOption: lambda gen, node: f"{node.this} {node.args['kind']}",
    nodes.Resource: lambda gen, node: f"{node.args['kind']} {gen.sql(node, 'this')}",
    nodes.PartitionValue: lambda gen, node: _words(
        gen.sql(node, "this"), _when(node.expression, f"= {gen.sql(node, 'expression')}")
    ),
    nodes.CreateTable: _create_table,
    nodes.CreateView: _create_view,
    nodes.CreateFunction: _create_function,
    nodes.InsertInto: _insert,
    nodes.StatementSet: _statement_set,
    nodes.SetOption: _set_option,
    nodes.ResetOption: lambda gen, node: _words("RESET", gen.sql(node, "this")),
    nodes.CreateNamespace: _create_namespace,
    nodes.CreateModel: _create_model,
    nodes.Drop: lambda gen, node: _words(_object_head(gen, node, "DROP"), node.args.get("behavior")),
    nodes.Alter: lambda gen, node: f"{_object_head(gen, node, 'ALTER')} {gen.sql(node, 'action')}",
    nodes.AddElements: lambda gen, node: _elements(gen, "ADD", node),
    nodes.ModifyElements: lambda gen, node: _elements(gen, "MODIFY", node),
    nodes.PlacedElement: lambda gen, node: _words(
        gen.sql(node, "this"), node.args.get("position"), gen.sql(node, "after")
    ),
    nodes.DropElements: _drop_elements,
    nodes.Partitions: _partitions,
    nodes.PartitionSpec: lambda gen, node: _words(f"PARTITION ({gen.list_of(node)})", gen.options(node)),
    nodes.RenameColumn: lambda gen, node: f"RENAME {gen.sql(node, 'this')} TO {gen.sql(node, 'expression')}",
    nodes.RenameTo: lambda gen, node: f"RENAME TO {gen.sql(node, 'this')}",
    nodes.SetOptions: lambda gen, node: f"SET ({gen.list_of(node)})",
    nodes.ResetOptions: lambda gen, node: f"RESET ({gen.list_of(node)})",
    nodes.SetQuery: lambda gen, node: f"AS {gen.sql(node, 'this')}",
    nodes.SetClass: lambda gen, node: _words(
        f"AS {gen.sql(node, 'this')}", _when(node.args.get("language"), f"LANGUAGE {node.args.get('language')}")
    ),
    nodes.SetComment: lambda gen, node: f"COMMENT {gen.sql(node, 'this')}",
    nodes.UseNamespace: lambda gen, node: _words(
        "USE", _when(node.args["kind"] != "DATABASE", node.args["kind"]), gen.list_of(node)
    ),
    nodes.ModuleStatement: lambda gen, node: _words(
        node.args["kind"], "MODULE", gen.sql(node, "this"), gen.options(node)
    ),
    nodes.ResourceStatement: lambda gen, node: _words(node.args["action"], node.args["kind"], gen.sql(node, "this")),
    nodes.Explain: lambda gen, node: _words(
        "EXPLAIN", ", ".join(node.args.get("details") or ()), _explained(gen, node.this)
    ),
    nodes.Describe: lambda gen, node: _words(
        "DESCRIBE", node.args.get("kind"), _when(node.args.get("extended"), "EXTENDED"), gen.sql(node, "this")
    ),
    nodes.Show: _show,
    nodes.CompilePlan: _compile_plan,
    nodes.ExecutePlan: lambda gen, node: f"EXECUTE PLAN {gen.sql(node, 'this')}",
    nodes.HiveTable: _hive_table,
    nodes.Call: lambda gen, node: f"CALL {gen.sql(node, 'this')}",
}


class FlinkGenerator(Generator):
    """Generator of Flink SQL. Parsing its output results in an equal tree."""

    TRANSFORMS: ClassVar = {**Generator.TRANSFORMS, **_PRINTERS}
    NULL_ORDERING_SUPPORTED = True
    SUPPORTS_BETWEEN_FLAGS = True
    QUERY_HINTS = True
    UNNEST_WITH_ORDINALITY = True

    def names(self, *parts: exp.Expr | None) -> str:
        """Join name parts with dots."""
        return ".".join(self.sql(part) for part in parts if part)

    def list_of(self, node: exp.Expr, key: str = "expressions") -> str:
        """Print the list argument ``key`` separated by commas."""
        return ", ".join(self.sql(item) for item in node.args.get(key) or ())

    def clause(self, node: exp.Expr, key: str, words: str) -> str:
        """Print ``words`` and the list argument ``key``; print nothing if the list is empty."""
        items = self.list_of(node, key)
        return f"{words} {items}" if items else ""

    def alias(self, node: exp.Expr) -> str:
        """Print ``AS alias`` or nothing."""
        alias = self.sql(node, "alias")
        return f"AS {alias}" if alias else ""

    def comment(self, node: exp.Expr) -> str:
        """Print the ``comment`` argument."""
        comment = self.sql(node, "comment")
        return f"COMMENT {comment}" if comment else ""

    def options(self, node: exp.Expr) -> str:
        """Print ``WITH (…)``. An empty list differs from a missing list."""
        return "" if node.args.get("options") is None else f"WITH ({self.list_of(node, 'options')})"
