"""Syntax tree nodes for Flink SQL that sqlglot has no class for.

Rules that hold for every node here:

* ``name``-like arguments are :class:`sqlglot.exp.Identifier` (case-sensitive) and text values are
  :class:`sqlglot.exp.Literal`; bare ``str`` arguments only ever hold one of a closed set of upper-case words,
  because sqlglot compares bare strings without regard to case.
* ``meta["start"]``/``meta["end"]`` are offsets (inclusive) into the text of the statement, see
  :func:`airflow_flinkcompat.sql.script.span_of`.

Statements
    ``CreateTable``, ``CreateView``, ``CreateFunction``, ``CreateNamespace``, ``Drop``, ``AlterTable`` and friends,
    ``InsertInto``, ``StatementSet``, ``SetOption``, ``ResetOption``, ``UseNamespace``, ``JarStatement``,
    ``Explain``, ``Show``, ``Describe``. A query is stock ``exp.Select`` / ``exp.Union`` / ``exp.Values`` …

Relations (in ``exp.From.this`` / ``exp.Join.this``)
    ``exp.Table`` (``hints``: list of ``HintCall``; ``version``: ``SystemTime``), ``exp.Subquery``, ``exp.Unnest``,
    ``exp.Values``, ``TableFunction``, ``MatchRecognize``, ``exp.Lateral`` (lateral subquery or UNNEST).

Expressions
    Every function call, built-in or not, is ``exp.Anonymous(this=<name as written>, expressions=[…])``; calls
    with keywords inside the parentheses are ``KeywordCall``; functions without parentheses are ``Niladic``.
"""

from __future__ import annotations

from sqlglot import exp


# --------------------------------------------------------------------------------------------- relations
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


class Descriptor(exp.Expression):
    """``DESCRIPTOR(ts)``. ``expressions``: list of Identifier."""

    arg_types = {"expressions": True}


class SystemTime(exp.Expression):
    """``FOR SYSTEM_TIME AS OF <expression>``; argument ``version`` of an exp.Table."""

    arg_types = {"this": True}


class HintCall(exp.Expression):
    """One hint. ``this``: Identifier. ``expressions``: list of Option, Identifier, exp.Dot or Literal, or None."""

    arg_types = {"this": True, "expressions": False}


# ------------------------------------------------------------------------------------ MATCH_RECOGNIZE
class MatchRecognize(exp.Expression):
    """``<this> MATCH_RECOGNIZE (…) AS alias``.

    ``this``: relation. ``partition_by``: list. ``order``: exp.Order. ``measures``: list of exp.Alias. ``rows``: one of
    ``ONE ROW PER MATCH`` / ``ALL ROWS PER MATCH`` or None. ``after``: AfterMatch or None. ``pattern``: Pattern* node.
    ``within``: exp.Interval or None. ``subsets``: list of PatternSubset. ``define``: list of PatternDefinition.
    """

    arg_types = {
        "this": True,
        "partition_by": False,
        "order": False,
        "measures": False,
        "rows": False,
        "after": False,
        "pattern": True,
        "within": False,
        "subsets": False,
        "define": False,
        "alias": False,
    }


class AfterMatch(exp.Expression):
    """``AFTER MATCH SKIP …``. ``this``: ``PAST LAST ROW`` | ``TO NEXT ROW`` | ``TO FIRST`` | ``TO LAST`` | ``TO``.

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
    """Quantifier. ``this``: pattern node, ``minimum``/``maximum``: Literal number or None (unbounded), ``reluctant``."""

    arg_types = {"this": True, "minimum": False, "maximum": False, "reluctant": False}


class PatternSubset(exp.Expression):
    """``this = (expressions)``."""

    arg_types = {"this": True, "expressions": True}


class PatternDefinition(exp.Expression):
    """``this AS expression`` in DEFINE."""

    arg_types = {"this": True, "expression": True}


# ----------------------------------------------------------------------------------------- expressions
class FlinkType(exp.Expression):
    """A Flink data type, synonyms folded.

    ``this``: canonical upper-case name (``INT``, ``STRING``, ``TIMESTAMP``, ``TIMESTAMP_LTZ``, ``ROW``, ``ARRAY``, ``MAP``,
    ``MULTISET``, ``RAW``, ``INTERVAL`` …, or ``USER``). ``expressions``: parameters — numbers as Literal, element types as
    FlinkType, fields as RowField, strings (RAW, STRUCTURED) as Literal, ``USER``: the dotted name. ``unit``: exp.Var or
    exp.IntervalSpan for INTERVAL. ``not_null``: bool.
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
    _sql_names: list[str] = []


class KeywordCall(exp.Expression, exp.Func):
    """A call whose arguments are separated or followed by keywords.

    ``this``: upper-case name. ``expressions``: operands in the order written. ``keywords``: upper-case words, one between
    each two operands. ``clauses``: list of CallClause after the last operand. Examples: ``EXTRACT(DAY FROM ts)`` →
    ``this="EXTRACT", expressions=[Var DAY, ts], keywords=["FROM"]``; ``FLOOR(ts TO HOUR)`` → keywords ``["TO"]``.
    """

    arg_types = {"this": True, "expressions": False, "keywords": False, "clauses": False}
    _sql_names: list[str] = []


class CallClause(exp.Expression):
    """A trailing clause of a KeywordCall. ``this``: upper-case words, ``expression``: operand or None.

    ``prefix``: True when the operand is written before the words (``DEFAULT x ON EMPTY`` has this=``DEFAULT … ON EMPTY``).
    """

    arg_types = {"this": True, "expression": False}


class MapConstructor(exp.Expression, exp.Condition):
    """``MAP[k, v, …]``. ``expressions``: alternating keys and values."""

    arg_types = {"expressions": False}


class MultisetConstructor(exp.Expression, exp.Condition):
    """``MULTISET[…]``."""

    arg_types = {"expressions": False}


# ------------------------------------------------------------------------------------------ DDL pieces
class Option(exp.Expression):
    """``'key' = 'value'``. ``this``: Literal string, ``expression``: Literal."""

    arg_types = {"this": True, "expression": True}


class PhysicalColumn(exp.Expression):
    """``this``: Identifier, ``kind``: FlinkType, ``constraint``: KeyConstraint or None, ``comment``: Literal or None."""

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
    """``[CONSTRAINT this] PRIMARY KEY (expressions) NOT ENFORCED``. ``kind``: ``PRIMARY KEY`` | ``UNIQUE``.

    ``expressions`` is empty for a constraint written after a column. ``enforced``: True, False or None (not written).
    """

    arg_types = {"this": False, "kind": True, "expressions": False, "enforced": False}


class Distribution(exp.Expression):
    """``DISTRIBUTED BY kind(expressions) INTO buckets BUCKETS``. ``kind``: ``HASH`` | ``RANGE`` | None."""

    arg_types = {"kind": False, "expressions": False, "buckets": False}


class TableLike(exp.Expression):
    """``LIKE this (options)``. ``this``: exp.Table, ``expressions``: list of LikeOption."""

    arg_types = {"this": True, "expressions": False}


class LikeOption(exp.Expression):
    """``this``: ``INCLUDING`` | ``EXCLUDING`` | ``OVERWRITING``, ``kind``: ``ALL``, ``OPTIONS``, ``WATERMARKS`` …"""

    arg_types = {"this": True, "kind": True}


class Resource(exp.Expression):
    """``JAR 'path'``. ``kind``: ``JAR`` | ``FILE`` | ``ARCHIVE``, ``this``: Literal."""

    arg_types = {"this": True, "kind": True}


# ------------------------------------------------------------------------------------------ statements
class CreateTable(exp.Expression):
    """``this``: exp.Table. ``columns``: Physical-/Computed-/MetadataColumn, Identifier for a bare name (AS SELECT).

    ``watermarks``: list of Watermark, ``constraints``: list of KeyConstraint, ``options``: list of Option,
    ``partitioned_by``: list of Identifier, ``distribution``: Distribution, ``like``: TableLike, ``expression``: query of
    AS SELECT, ``comment``: Literal; ``temporary``, ``exists``, ``replace``: bool.
    """

    arg_types = {
        "this": True,
        "columns": False,
        "watermarks": False,
        "constraints": False,
        "comment": False,
        "distribution": False,
        "partitioned_by": False,
        "options": False,
        "like": False,
        "expression": False,
        "temporary": False,
        "exists": False,
        "replace": False,
    }


class CreateView(exp.Expression):
    """``this``: exp.Table, ``columns``: list of Identifier, ``comment``: Literal, ``expression``: query."""

    arg_types = {
        "this": True,
        "columns": False,
        "comment": False,
        "expression": True,
        "temporary": False,
        "exists": False,
        "replace": False,
    }


class CreateFunction(exp.Expression):
    """``this``: exp.Table (the name), ``expression``: Literal (class or ``module.object``).

    ``language``: ``JAVA`` | ``SCALA`` | ``PYTHON`` | None, ``resources``: list of Resource, ``options``: list of Option;
    ``temporary``, ``system``, ``exists``: bool.
    """

    arg_types = {
        "this": True,
        "expression": True,
        "language": False,
        "resources": False,
        "options": False,
        "temporary": False,
        "system": False,
        "exists": False,
    }


class InsertInto(exp.Expression):
    """``INSERT INTO|OVERWRITE this PARTITION (…) (columns) expression``.

    ``this``: exp.Table (hints allowed); None for a bare query with an ON CONFLICT clause. ``partition``: list of PartitionValue. ``columns``: list of Identifier or
    exp.Dot. ``expression``: query. ``overwrite``: bool. ``conflict``: ``ERROR`` | ``NOTHING`` | ``DEDUPLICATE`` | None.
    """

    arg_types = {
        "this": False,
        "partition": False,
        "columns": False,
        "expression": True,
        "overwrite": False,
        "conflict": False,
    }


class PartitionValue(exp.Expression):
    """``this = expression`` of a partition spec; ``expression`` is None for a dynamic partition."""

    arg_types = {"this": True, "expression": False}


class StatementSet(exp.Expression):
    """``EXECUTE STATEMENT SET BEGIN …; END`` (or ``BEGIN STATEMENT SET; …; END``). ``expressions``: statements."""

    arg_types = {"expressions": False}


class SetOption(exp.Expression):
    """``SET 'k' = 'v'`` or ``SET k = v``. ``this``, ``expression``: Literal string; both None for a bare ``SET``."""

    arg_types = {"this": False, "expression": False}


class ResetOption(exp.Expression):
    """``RESET`` or ``RESET 'k'``. ``this``: Literal string or None (everything)."""

    arg_types = {"this": False}


class MeasureSemantics(exp.Expression):
    """``FINAL x`` or ``RUNNING x`` in MEASURES. ``this``: expression, ``kind``: ``FINAL`` | ``RUNNING``."""

    arg_types = {"this": True, "kind": True}
