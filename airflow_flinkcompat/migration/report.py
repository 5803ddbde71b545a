"""What a migration keeps, for a reader and for a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_flinkcompat.state.layout import StateLayout
from airflow_flinkcompat.state.migration import Keep, Kept, Migration, OperatorMigration
from airflow_flinkcompat.state.model import StateKind

_HEADLINES = {
    Kept.WHOLE: "MIGRATABLE: a rewritten savepoint keeps all of the state",
    Kept.PARTIAL: "PARTLY MIGRATABLE: a rewritten savepoint keeps some of the state",
    Kept.NONE: "NOT MIGRATABLE: a rewritten savepoint keeps no state of an operator",
}
_KINDS = {StateKind.POSITIONS: "source", StateKind.SINK: "sink"}
_DEFAULT = "`default_catalog`.`default_database`."


def lines(migration: Migration) -> Iterator[str]:
    """What a migration keeps, in words.

    Args:
        migration: What becomes of each state of a job.

    Yields:
        The headline, then for each operator a line, and lines for what of it goes on, begins now, and is gone.
    """
    yield _HEADLINES[migration.kept]
    for each in migration.operators:
        yield ""
        reason = f": {each.reason}" if each.keep in (Keep.IMPOSSIBLE, Keep.BEGINS, Keep.DROPPED) else ""
        yield f"  {operator_name(each)}: {each.keep}{reason}"
        for word, metrics in (("keeps", kept_metrics(each)), ("begins now", each.begun), ("gone", each.lost)):
            if metrics:
                yield f"    {word:<10} {', '.join(metrics)}"


def to_dict(migration: Migration) -> Mapping[str, Any]:
    """What a migration keeps, as JSON holds it.

    Args:
        migration: What becomes of each state of a job.

    Returns:
        ``kept`` (``whole``, ``partial``, ``none``) and ``operators``, each with ``operator``, ``state``, ``reason``
        and the lists ``keeps``, ``begins`` and ``gone`` of metrics in SQL's words.
    """
    return {
        "kept": migration.kept.value,
        "operators": [
            {
                "operator": operator_name(each),
                "state": each.keep.value,
                "reason": each.reason,
                "keeps": list(kept_metrics(each)),
                "begins": list(each.begun),
                "gone": list(each.lost),
            }
            for each in migration.operators
        ],
    }


def operator_name(line: OperatorMigration) -> str:
    """An operator for a reader.

    Args:
        line: What becomes of its state.

    Returns:
        A source or sink with its table, any other operator in the words of Flink's plans.
    """
    spec = line.new or line.old
    assert spec is not None
    if spec.kind is StateKind.OPERATOR:
        return spec.name
    return f"{_KINDS[spec.kind]} {spec.name.removeprefix(_DEFAULT).replace('`', '')}"


def kept_metrics(line: OperatorMigration) -> tuple[str, ...]:
    """The metrics of an operator that go on.

    Args:
        line: What becomes of its state.

    Returns:
        Them in SQL's words, of an operator whose fields are known.
    """
    if line.keep is Keep.REWRITTEN:
        found = (
            field.words
            for state in line.states
            for field, source in zip(state.new.value.fields, state.fields, strict=True)
            if source is not None
        )
        return tuple(each for each in dict.fromkeys(found) if each and each not in line.begun)
    if line.keep in (Keep.CARRIED, Keep.MOVED) and line.new is not None and isinstance(line.new.layout, StateLayout):
        found = (field.words for state in line.new.layout.states for field in state.value.fields)
        return tuple(each for each in dict.fromkeys(found) if each)
    return ()
