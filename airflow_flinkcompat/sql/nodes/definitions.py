"""CREATE statements and the parts of a definition."""

# ruff: noqa: RUF012 -- sqlglot declares arg_types as plain class attributes

from __future__ import annotations

from sqlglot import exp


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
    """``this``: ``INCLUDING`` | ``EXCLUDING`` | ``OVERWRITING``, ``kind``: ``ALL``, ``OPTIONS`` or another part."""

    arg_types = {"this": True, "kind": True}


class Resource(exp.Expression):
    """``JAR 'path'``. ``kind``: ``JAR`` | ``FILE`` | ``ARCHIVE``, ``this``: Literal."""

    arg_types = {"this": True, "kind": True}


class CreateTable(exp.Expression):
    """``this``: exp.Table. ``columns``: Physical-/Computed-/MetadataColumn, Identifier for a bare name (AS SELECT).

    ``watermarks``: list of Watermark, ``constraints``: list of KeyConstraint, ``options``: list of Option,
    ``partitioned_by``: list of Identifier, ``distribution``: Distribution, ``like``: TableLike, ``expression``: query
    of AS SELECT, ``comment``: Literal; ``temporary``, ``exists``, ``replace``, ``only_replace`` (REPLACE TABLE): bool.
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
        "only_replace": False,
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

    ``language``: ``JAVA`` | ``SCALA`` | ``PYTHON`` | None, ``resources``: list of Resource, ``options``: list of
    Option; ``temporary``, ``system``, ``exists``: bool.
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


class CreateNamespace(exp.Expression):
    """``CREATE CATALOG|DATABASE``. ``kind``: that word, ``this``: exp.Table (the name), ``options``: list of Option."""

    arg_types = {"this": True, "kind": True, "exists": False, "comment": False, "options": False}


class CreateModel(exp.Expression):
    """``CREATE MODEL this INPUT (…) OUTPUT (…)``. ``inputs``, ``outputs``: list of PhysicalColumn."""

    arg_types = {
        "this": True,
        "inputs": False,
        "outputs": False,
        "comment": False,
        "options": False,
        "temporary": False,
        "exists": False,
    }
