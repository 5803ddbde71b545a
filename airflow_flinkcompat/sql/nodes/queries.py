"""Relations and expressions."""

# ruff: noqa: RUF012 -- sqlglot declares arg_types as plain class attributes

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


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
    """A Flink data type, synonyms folded.

    ``this``: canonical upper-case name (``INT``, ``STRING``, ``TIMESTAMP``, ``TIMESTAMP_LTZ``, ``ROW``, ``ARRAY``,
    ``MAP``, ``MULTISET``, ``RAW``, ``INTERVAL`` …, or ``USER``). ``expressions``: parameters: numbers as Literal,
    element
    types as FlinkType, fields as RowField, strings (RAW, STRUCTURED) as Literal, for ``USER`` the dotted name.
    ``unit``:
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

    ``this``: upper-case name. ``expressions``: operands in the order written. ``keywords``: upper-case words, one
    between each two operands; None when commas separate them. ``clauses``: list of CallClause after the last operand.
    Examples: ``EXTRACT(DAY FROM ts)`` →
    ``this="EXTRACT", expressions=[Var DAY, ts], keywords=["FROM"]``; ``FLOOR(ts TO HOUR)`` → keywords ``["TO"]``.
    """

    arg_types = {"this": True, "expressions": False, "keywords": False, "clauses": False}
    _sql_names: ClassVar[list[str]] = []


class CallClause(exp.Expression):
    """A trailing clause of a KeywordCall.

    ``this``: its upper-case words, e.g. ``NULL ON EMPTY`` or ``WITH ARRAY WRAPPER``. ``expression``: the operand, which
    stands after the first word (``RETURNING type``, ``DEFAULT x ON EMPTY``), or None.
    """

    arg_types = {"this": True, "expression": False}


class JsonPair(exp.Expression):
    """``KEY this VALUE expression`` in JSON_OBJECT and JSON_OBJECTAGG."""

    arg_types = {"this": True, "expression": True}


class MapConstructor(exp.Expression, exp.Condition):
    """``MAP[k, v, …]``. ``expressions``: alternating keys and values."""

    arg_types = {"expressions": False}


class MultisetConstructor(exp.Expression, exp.Condition):
    """``MULTISET[…]``."""

    arg_types = {"expressions": False}
