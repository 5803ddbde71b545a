"""Syntax tree nodes of Flink SQL for which sqlglot has no class.

Rules for every node in this module:

* Names are :class:`sqlglot.exp.Identifier` (case-sensitive), and values are :class:`sqlglot.exp.Literal`. A bare
  ``str`` argument is always one of a closed set of upper-case words, because sqlglot ignores the case of bare strings
  in comparisons.
* ``meta["start"]`` and ``meta["end"]`` are inclusive offsets into the text of the statement (see
  :func:`airflow_flinkcompat.sql.script.span_of`).

Statements
    ``CreateTable``, ``CreateView``, ``CreateFunction``, ``CreateNamespace``, ``CreateModel``, ``Drop``, ``Alter``,
    ``InsertInto``, ``StatementSet``, ``SetOption``, ``ResetOption``, ``UseNamespace``, ``ResourceStatement``,
    ``ModuleStatement``, ``Explain``, ``Show``, ``Describe``, ``Call``. A query is stock ``exp.Select``,
    ``exp.Union``, ``exp.Except``, ``exp.Intersect``, ``exp.Subquery`` or ``exp.Values``.

Relations (in ``exp.From.this`` / ``exp.Join.this``)
    ``exp.Table`` (``hints``: list of ``HintCall``; ``version``: ``SystemTime``), ``exp.Subquery``, ``exp.Unnest``,
    ``exp.Values``, ``TableFunction``, ``MatchRecognize``, ``exp.Lateral`` (lateral subquery or UNNEST).

Expressions
    Every function call, built-in or not, is ``exp.Anonymous(this=<name as written>, expressions=[…])``; calls
    with keywords inside the parentheses are ``KeywordCall``; functions without parentheses are ``Niladic``.
"""

# ruff: noqa: RUF012 -- sqlglot declares arg_types as plain class attributes

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


def _arguments(required: str, optional: str) -> dict[str, bool]:
    """The arguments of a node by name, each True if it is required."""
    return {**dict.fromkeys(required.split(), True), **dict.fromkeys(optional.split(), False)}


# ---------------------------------------------------------------------------------------------- definitions
class Option(exp.Expression):
    """``'key' = 'value'``. ``this``: Literal string, ``expression``: Literal."""

    arg_types = {"this": True, "expression": True}


class PhysicalColumn(exp.Expression):
    """``this``: Identifier, ``kind``: FlinkType, ``constraint``: KeyConstraint, ``comment``: Literal."""

    arg_types = {"this": True, "kind": True, "constraint": False, "comment": False}


class ComputedColumn(exp.Expression):
    """``this AS expression``."""

    arg_types = {"this": True, "expression": True, "comment": False}


class MetadataColumn(exp.Expression):
    """``this kind METADATA [FROM key] [VIRTUAL]``."""

    arg_types = {"this": True, "kind": True, "metadata_key": False, "virtual": False, "comment": False}


class Watermark(exp.Expression):
    """``WATERMARK FOR this AS expression``. ``this``: Identifier or exp.Dot."""

    arg_types = {"this": True, "expression": True}


class KeyConstraint(exp.Expression):
    """``[CONSTRAINT this] PRIMARY KEY (expressions) NOT ENFORCED``; ``kind``: ``PRIMARY KEY``, ``UNIQUE``.

    ``expressions`` is empty for a constraint after a column. ``enforced`` is True, False, or None if it is not
    written.
    """

    arg_types = {"this": False, "kind": True, "expressions": False, "enforced": False}


class Distribution(exp.Expression):
    """``DISTRIBUTED BY kind(expressions) INTO buckets BUCKETS``. ``kind``: ``HASH`` | ``RANGE`` | None."""

    arg_types = {"kind": False, "expressions": False, "buckets": False}


class TableLike(exp.Expression):
    """``LIKE this (options)``. ``this``: exp.Table, ``expressions``: list of LikeOption."""

    arg_types = {"this": True, "expressions": False}


class LikeOption(exp.Expression):
    """``this``: ``INCLUDING`` | ``EXCLUDING`` | ``OVERWRITING``; ``kind``: ``ALL``, ``OPTIONS`` or a part."""

    arg_types = {"this": True, "kind": True}


class Resource(exp.Expression):
    """``JAR 'path'``. ``kind``: ``JAR`` | ``FILE`` | ``ARCHIVE``, ``this``: Literal."""

    arg_types = {"this": True, "kind": True}


class CreateTable(exp.Expression):
    """``this``: exp.Table; ``columns``: Physical-, Computed-, MetadataColumn, Identifier (AS SELECT).

    ``watermarks``: list of Watermark, ``constraints``: list of KeyConstraint, ``options``: list of Option,
    ``partitioned_by``: list of Identifier, ``distribution``: Distribution, ``like``: TableLike, ``expression``: query
    of AS SELECT, ``comment``: Literal; ``temporary``, ``exists``, ``replace``, ``only_replace`` (REPLACE TABLE): bool.
    """

    arg_types = _arguments(
        "this",
        "columns watermarks constraints comment distribution partitioned_by options like "
        "expression temporary exists replace only_replace",
    )


class CreateView(exp.Expression):
    """``this``: exp.Table, ``columns``: list of Identifier, ``comment``: Literal, ``expression``: query."""

    arg_types = _arguments("this expression", "columns comment temporary exists replace")


class CreateFunction(exp.Expression):
    """``this``: exp.Table (the name), ``expression``: Literal (class or ``module.object``).

    ``language``: ``JAVA`` | ``SCALA`` | ``PYTHON`` | None, ``resources``: list of Resource, ``options``: list of
    Option; ``temporary``, ``system``, ``exists``: bool.
    """

    arg_types = _arguments("this expression", "language resources options temporary system exists")


class CreateNamespace(exp.Expression):
    """``CREATE kind this``: a CATALOG or DATABASE; ``this``: exp.Table, ``options``: list of Option."""

    arg_types = {"this": True, "kind": True, "exists": False, "comment": False, "options": False}


class CreateModel(exp.Expression):
    """``CREATE MODEL this INPUT (…) OUTPUT (…)``. ``inputs``, ``outputs``: list of PhysicalColumn."""

    arg_types = _arguments("this", "inputs outputs comment options temporary exists")


# -------------------------------------------------------------------------------- relations and expressions
class TableFunction(exp.Expression):
    """``TABLE(f(…))``, ``LATERAL TABLE(f(…))`` or ``f(…)`` in FROM.

    ``this``: Identifier or exp.Dot of identifiers. ``expressions``: arguments. ``lateral``: bool.
    ``alias``: exp.TableAlias or None.
    """

    arg_types = {"this": True, "expressions": False, "lateral": False, "alias": False}


class NamedArgument(exp.Expression):
    """``NAME => value``. ``this``: Identifier, ``expression``: value."""

    arg_types = {"this": True, "expression": True}


class TableArgument(exp.Expression):
    """``TABLE t PARTITION BY k ORDER BY ts`` or ``(SELECT …)`` as an argument of a table function.

    ``this``: exp.Table, exp.Subquery or TableFunction. ``partition_by``: list. ``order``: exp.Order or None.
    """

    arg_types = {"this": True, "partition_by": False, "order": False}


class ModelArgument(exp.Expression):
    """``MODEL m`` as an argument of a table function. ``this``: exp.Table (the name)."""


class Descriptor(exp.Expression):
    """``DESCRIPTOR(ts)``. ``expressions``: list of Identifier."""

    arg_types = {"expressions": True}


class SystemTime(exp.Expression):
    """``FOR SYSTEM_TIME AS OF <expression>``; argument ``version`` of an exp.Table."""

    arg_types = {"this": True}


class HintCall(exp.Expression):
    """One hint; ``this``: Identifier, ``expressions``: None or Option, Identifier, exp.Dot, Literal nodes."""

    arg_types = {"this": True, "expressions": False}


# ------------------------------------------------------------------------------------ MATCH_RECOGNIZE
class MatchRecognize(exp.Expression):
    """``<this> MATCH_RECOGNIZE (…) AS alias``.

    ``this``: relation. ``partition_by``: list. ``order``: exp.Order. ``measures``: list of exp.Alias. ``rows``: one of
    ``ONE ROW PER MATCH`` / ``ALL ROWS PER MATCH`` or None. ``after``: AfterMatch or None. ``pattern``: Pattern* node.
    ``within``: exp.Interval or None. ``subsets``: list of PatternSubset. ``define``: list of PatternDefinition.
    """

    arg_types = _arguments("this pattern", "partition_by order measures rows after within subsets define alias")


class AfterMatch(exp.Expression):
    """``AFTER MATCH SKIP this``: PAST LAST ROW, TO NEXT ROW, TO FIRST, TO LAST or TO.

    ``expression``: Identifier of the pattern variable for the last three.
    """

    arg_types = {"this": True, "expression": False}


class PatternVariable(exp.Expression):
    """``this``: Identifier."""

    arg_types = {"this": True}


class PatternSequence(exp.Expression):
    """``expressions``: pattern nodes in order."""

    arg_types = {"expressions": True}


class PatternAlternation(exp.Expression):
    """``expressions``: pattern nodes, any of which matches."""

    arg_types = {"expressions": True}


class PatternPermutation(exp.Expression):
    """``PERMUTE(a, b)``. ``expressions``: pattern nodes."""

    arg_types = {"expressions": True}


class PatternExclusion(exp.Expression):
    """``{- … -}``. ``this``: pattern node."""

    arg_types = {"this": True}


class PatternRepeat(exp.Expression):
    """Quantifier.

    ``this``: pattern node, ``minimum``, ``maximum``: Literal or None (unbounded), ``reluctant``: bool.
    """

    arg_types = {"this": True, "minimum": False, "maximum": False, "reluctant": False}


class PatternSubset(exp.Expression):
    """``this = (expressions)``."""

    arg_types = {"this": True, "expressions": True}


class PatternDefinition(exp.Expression):
    """``this AS expression`` in DEFINE."""

    arg_types = {"this": True, "expression": True}


class MeasureSemantics(exp.Expression):
    """``FINAL x`` or ``RUNNING x`` in MEASURES. ``this``: expression, ``kind``: ``FINAL`` | ``RUNNING``."""

    arg_types = {"this": True, "kind": True}


# ----------------------------------------------------------------------------------------- expressions
class FlinkType(exp.Expression):
    """A data type of Flink, without synonyms.

    ``this``: canonical upper-case name (``INT``, ``STRING``, ``TIMESTAMP``, ``TIMESTAMP_LTZ``, ``ROW``, ``ARRAY``,
    ``MAP``, ``MULTISET``, ``RAW``, ``INTERVAL`` …, or ``USER``). ``expressions``: numbers and strings (RAW,
    STRUCTURED) as Literal, element types as FlinkType, fields as RowField; the dotted name for ``USER``. ``unit``:
    exp.Var or exp.IntervalSpan for INTERVAL. ``not_null``: bool.
    """

    arg_types = {"this": True, "expressions": False, "unit": False, "not_null": False}


class RowField(exp.Expression):
    """``this``: Identifier, ``kind``: FlinkType, ``comment``: Literal or None."""

    arg_types = {"this": True, "kind": True, "comment": False}


class TypedLiteral(exp.Expression, exp.Condition):
    """``DATE '…'``, ``TIME '…'``, ``TIMESTAMP '…'``. ``this``: Literal string, ``kind``: upper-case word."""

    arg_types = {"this": True, "kind": True}


class Niladic(exp.Expression, exp.Func):
    """A function called without parentheses, e.g. ``CURRENT_TIMESTAMP``. ``this``: upper-case word."""

    arg_types = {"this": True}
    _sql_names: ClassVar[list[str]] = []


class KeywordCall(exp.Expression, exp.Func):
    """A call whose arguments are separated or followed by keywords.

    ``this``: upper-case name. ``expressions``: operands in written order. ``keywords``: one upper-case word between
    each two operands; None if commas separate them. ``clauses``: list of CallClause after the last operand. Examples:
    ``EXTRACT(DAY FROM ts)`` → ``this="EXTRACT", expressions=[Var DAY, ts], keywords=["FROM"]``; ``FLOOR(ts TO HOUR)``
    → keywords ``["TO"]``.
    """

    arg_types = {"this": True, "expressions": False, "keywords": False, "clauses": False}
    _sql_names: ClassVar[list[str]] = []


class CallClause(exp.Expression):
    """A trailing clause of a KeywordCall.

    ``this``: the upper-case words, such as ``NULL ON EMPTY`` or ``WITH ARRAY WRAPPER``. ``expression``: the operand
    after the first word (``RETURNING type``, ``DEFAULT x ON EMPTY``), or None.
    """

    arg_types = {"this": True, "expression": False}


class JsonPair(exp.Expression):
    """``KEY this VALUE expression`` in JSON_OBJECT and JSON_OBJECTAGG."""

    arg_types = {"this": True, "expression": True}


class TimeDifference(exp.Expression, exp.Condition):
    """``(a - b) DAY``. ``this``: exp.Paren of an exp.Sub, ``unit`` as in exp.Interval."""

    arg_types = {"this": True, "unit": True}


class MapConstructor(exp.Expression, exp.Condition):
    """``MAP[k, v, …]``. ``expressions``: alternating keys and values."""

    arg_types = {"expressions": False}


class MultisetConstructor(exp.Expression, exp.Condition):
    """``MULTISET[…]``."""

    arg_types = {"expressions": False}


# ----------------------------------------------------------------------------- statements other than CREATE
class InsertInto(exp.Expression):
    """``INSERT INTO|OVERWRITE this PARTITION (…) (columns) expression``.

    ``this``: exp.Table (hints allowed); None for a bare query with an ON CONFLICT clause. ``partition``: list of
    PartitionValue. ``columns``: list of Identifier or exp.Dot. ``expression``: query. ``overwrite``: bool.
    ``conflict``: ``ERROR`` | ``NOTHING`` | ``DEDUPLICATE`` | None.
    """

    arg_types = _arguments("expression", "this partition columns overwrite conflict")


class PartitionValue(exp.Expression):
    """``this = expression`` of a partition spec; ``expression`` is None for a dynamic partition."""

    arg_types = {"this": True, "expression": False}


class StatementSet(exp.Expression):
    """``EXECUTE STATEMENT SET BEGIN …; END`` or ``BEGIN STATEMENT SET; …; END``, as ``expressions``."""

    arg_types = {"expressions": False}


class SetOption(exp.Expression):
    """``SET 'k' = 'v'`` or ``SET k = v``; ``this``, ``expression``: Literal string, None for bare ``SET``."""

    arg_types = {"this": False, "expression": False}


class ResetOption(exp.Expression):
    """``RESET`` or ``RESET 'k'``. ``this``: Literal string or None (everything)."""

    arg_types = {"this": False}


class Drop(exp.Expression):
    """``DROP kind this``; ``kind``: TABLE, VIEW, FUNCTION, DATABASE, CATALOG or MODEL.

    ``this``: exp.Table (the name). ``behavior``: ``CASCADE`` | ``RESTRICT`` | None; ``temporary``, ``system``,
    ``exists``: bool.
    """

    arg_types = {"this": True, "kind": True, "temporary": False, "system": False, "exists": False, "behavior": False}


class Alter(exp.Expression):
    """``ALTER kind this action``; ``kind`` as in Drop, ``this``: exp.Table, ``action``: a node below."""

    arg_types = {"this": True, "kind": True, "action": True, "temporary": False, "system": False, "exists": False}


class AddElements(exp.Expression):
    """``ADD (…)``. ``expressions``: list of PlacedElement, KeyConstraint, Watermark or Distribution."""

    arg_types = {"expressions": True}


class ModifyElements(exp.Expression):
    """``MODIFY (…)``, shaped like AddElements."""

    arg_types = {"expressions": True}


class PlacedElement(exp.Expression):
    """A column of ADD or MODIFY. ``this``: column node. ``position``: ``FIRST`` | ``AFTER`` | None.

    ``after``: Identifier.
    """

    arg_types = {"this": True, "position": False, "after": False}


class DropElements(exp.Expression):
    """``DROP kind``: COLUMNS, PRIMARY KEY, CONSTRAINT, WATERMARK or DISTRIBUTION.

    ``expressions``: names of the columns or of the constraint.
    """

    arg_types = {"kind": True, "expressions": False}


class Partitions(exp.Expression):
    """``ADD|DROP [IF [NOT] EXISTS] PARTITION (…), …``. ``expressions``: list of PartitionSpec."""

    arg_types = {"kind": True, "expressions": True, "exists": False}


class PartitionSpec(exp.Expression):
    """``PARTITION (…) [WITH (…)]``. ``expressions``: list of PartitionValue, ``options``: list of Option."""

    arg_types = {"expressions": True, "options": False}


class RenameColumn(exp.Expression):
    """``RENAME this TO expression``."""

    arg_types = {"this": True, "expression": True}


class RenameTo(exp.Expression):
    """``RENAME TO this``. ``this``: exp.Table."""

    arg_types = {"this": True}


class SetOptions(exp.Expression):
    """``SET ('key' = 'value', …)``. ``expressions``: list of Option."""

    arg_types = {"expressions": True}


class ResetOptions(exp.Expression):
    """``RESET ('key', …)``. ``expressions``: list of Literal."""

    arg_types = {"expressions": True}


class SetQuery(exp.Expression):
    """``AS query`` of ALTER VIEW. ``this``: query."""

    arg_types = {"this": True}


class SetClass(exp.Expression):
    """``AS 'class' LANGUAGE language`` of ALTER FUNCTION. ``this``: Literal."""

    arg_types = {"this": True, "language": False}


class SetComment(exp.Expression):
    """``COMMENT 'text'`` of ALTER CATALOG. ``this``: Literal."""

    arg_types = {"this": True}


class UseNamespace(exp.Expression):
    """``USE [CATALOG|MODULES] …``.

    ``kind``: ``CATALOG`` | ``DATABASE`` | ``MODULES``. ``expressions``: exp.Table names.
    """

    arg_types = {"kind": True, "expressions": True}


class ModuleStatement(exp.Expression):
    """``LOAD|UNLOAD MODULE this WITH (…)``. ``kind``: ``LOAD`` | ``UNLOAD``."""

    arg_types = {"this": True, "kind": True, "options": False}


class ResourceStatement(exp.Expression):
    """``ADD JAR 'path'``.

    ``action``: ``ADD`` | ``REMOVE``. ``kind``: ``JAR`` | ``FILE`` | ``ARCHIVE``. ``this``: Literal.
    """

    arg_types = {"this": True, "kind": True, "action": True}


class Explain(exp.Expression):
    """``EXPLAIN [details] this``. ``this``: statement, ``details``: list of upper-case words."""

    arg_types = {"this": True, "details": False}


class Describe(exp.Expression):
    """``DESCRIBE [CATALOG|DATABASE|FUNCTION|MODEL] [EXTENDED] this``. ``this``: exp.Table."""

    arg_types = {"this": True, "kind": False, "extended": False}


class Show(exp.Expression):
    """``SHOW this [FROM of] [[NOT] LIKE pattern]``; ``this``: upper-case words, ``of``: exp.Table or None.

    ``like``: ``LIKE`` | ``ILIKE`` | None with ``pattern``: Literal and ``negated``: bool. ``partition``: PartitionSpec.
    """

    arg_types = {"this": True, "of": False, "like": False, "pattern": False, "negated": False, "partition": False}


class Call(exp.Expression):
    """``CALL procedure(…)``. ``this``: exp.Anonymous or exp.Dot ending in one."""

    arg_types = {"this": True}


class CompilePlan(exp.Expression):
    """``COMPILE PLAN 'file' [IF NOT EXISTS] FOR expression``, or ``COMPILE AND EXECUTE PLAN …``.

    ``this``: Literal, ``expression``: InsertInto or StatementSet; ``exists``, ``execute``: bool.
    """

    arg_types = {"this": True, "expression": True, "exists": False, "execute": False}


class ExecutePlan(exp.Expression):
    """``EXECUTE PLAN 'file'``. ``this``: Literal."""

    arg_types = {"this": True}


class HiveTable(exp.Expression):
    """CREATE TABLE or ALTER TABLE in Hive's dialect: its words, of which only the table name is parsed.

    ``kind``: the words before the name. ``this``: exp.Table. ``expressions``: everything after the name in order.
    Strings are Literal. All other text is Var or quoted Identifier in lower case, because Hive ignores the case of
    names and keywords.
    """

    arg_types = {"this": True, "kind": True, "expressions": False}
