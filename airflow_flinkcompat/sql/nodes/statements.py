"""Statements other than CREATE."""

# ruff: noqa: RUF012 -- sqlglot declares arg_types as plain class attributes

from __future__ import annotations

from sqlglot import exp


class InsertInto(exp.Expression):
    """``INSERT INTO|OVERWRITE this PARTITION (…) (columns) expression``.

    ``this``: exp.Table (hints allowed); None for a bare query with an ON CONFLICT clause. ``partition``: list of
    PartitionValue. ``columns``: list of Identifier or exp.Dot. ``expression``: query. ``overwrite``: bool.
    ``conflict``: ``ERROR`` | ``NOTHING`` | ``DEDUPLICATE`` | None.
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


class Drop(exp.Expression):
    """``DROP kind this``. ``kind``: ``TABLE``, ``VIEW``, ``FUNCTION``, ``DATABASE``, ``CATALOG`` or ``MODEL``.

    ``this``: exp.Table (the name). ``behavior``: ``CASCADE`` | ``RESTRICT`` | None; ``temporary``, ``system``,
    ``exists``: bool.
    """

    arg_types = {"this": True, "kind": True, "temporary": False, "system": False, "exists": False, "behavior": False}


class Alter(exp.Expression):
    """``ALTER kind this action``. ``kind`` as in Drop, ``this``: exp.Table, ``action``: one of the nodes below."""

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
    """``DROP …``. ``kind``: ``COLUMNS`` | ``PRIMARY KEY`` | ``CONSTRAINT`` | ``WATERMARK`` | ``DISTRIBUTION``.

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
    """``SHOW this [FROM of] [[NOT] LIKE pattern]``. ``this``: what, as upper-case words. ``of``: exp.Table or None.

    ``like``: ``LIKE`` | ``ILIKE`` | None with ``pattern``: Literal and ``negated``: bool. ``partition``: PartitionSpec.
    """

    arg_types = {"this": True, "of": False, "like": False, "pattern": False, "negated": False, "partition": False}


class Call(exp.Expression):
    """``CALL procedure(…)``. ``this``: exp.Anonymous or exp.Dot ending in one."""

    arg_types = {"this": True}


class CompilePlan(exp.Expression):
    """``COMPILE PLAN 'file' [IF NOT EXISTS] FOR expression``, or ``COMPILE AND EXECUTE PLAN 'file' FOR expression``.

    ``this``: Literal, ``expression``: InsertInto or StatementSet; ``exists``, ``execute``: bool.
    """

    arg_types = {"this": True, "expression": True, "exists": False, "execute": False}


class ExecutePlan(exp.Expression):
    """``EXECUTE PLAN 'file'``. ``this``: Literal."""

    arg_types = {"this": True}


class HiveTable(exp.Expression):
    """CREATE TABLE or ALTER TABLE in Hive's dialect, which is kept whole and known by the name of its table.

    ``kind``: the words before the name, ``this``: exp.Table. ``expressions``: everything behind it in order: strings as
    Literal, everything else, lower-case as Hive takes names and keywords, as Var or quoted Identifier.
    """

    arg_types = {"this": True, "kind": True, "expressions": False}
