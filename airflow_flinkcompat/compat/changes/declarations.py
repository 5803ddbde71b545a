"""Differences that belong to no single pipeline: settings, tables, views, functions and other statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.diff_fields import Difference, differences_of, table_parts
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan.program import Program


def declared_differences(
    a: Program, b: Program, engine: str, pairs: Sequence[tuple[int, int]] = ()
) -> tuple[Difference, ...]:
    """Every difference between what two programs set and declare; ``pairs`` are the places of their common queries."""
    return (
        *_settings_changed(a, b, engine, pairs),
        *_tables(a, b),
        *_named("view", dict(a.views), dict(b.views)),
        *_named("function", _functions(a), _functions(b)),
        *_statements(a, b),
        *([Difference("opaque", "opaque", a.opaque, b.opaque)] if a.opaque != b.opaque else []),
    )


def _settings_changed(a: Program, b: Program, engine: str, pairs: Sequence[tuple[int, int]]) -> list[Difference]:
    """A value left out where it is the default, or spelled otherwise, is no difference.

    What is set for a query that comes or goes matters to that query alone, where it may be a job of its own.
    """
    seen = [[effective_settings(program, [pair[n] for pair in pairs]) for n, program in enumerate((a, b))]]
    if ENGINE_FACTS[engine].one_deployment:
        seen.append([effective_settings(program) for program in (a, b)])
    found: dict[str, Difference] = {}
    for old, new in seen:
        for key in sorted({*old, *new}):
            if settings.effective(old, key, engine) != settings.effective(new, key, engine):
                found.setdefault(key, Difference(f"setting/{key}", "setting", old.get(key), new.get(key)))
    return list(found.values())


def _functions(program: Program) -> dict[str, Any]:
    return {f.name.lower(): (f.kind, f.language, f.definition) for f in program.functions}


def effective_settings(program: Program, places: Sequence[int] = ()) -> dict[str, str]:
    """The settings in force where the queries stand, or those at ``places``.

    Where a setting differs from query to query, its value is all values in order.
    """
    if not program.pipelines:
        return _by_name(program.settings)
    read = [program.pipelines[place] for place in places] or program.pipelines
    per_query = [_by_name(pipeline.settings) for pipeline in read]
    keys = {key for each in per_query for key in each}
    values = {key: [each.get(key, "(unset)") for each in per_query] for key in keys}
    return {key: found[0] if len(set(found)) == 1 else " / ".join(found) for key, found in values.items()}


def _by_name(given: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {settings.name(key): value for key, value in given}


def _named(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    return [
        Difference(f"{kind}/{name}", kind, old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _statements(a: Program, b: Program) -> list[Difference]:
    """Statements that are no query and declare nothing the plan models, and those that could not be read."""
    found = []
    old, new = ([(f.kind, f.text, f.after) for f in p.other_statements] for p in (a, b))
    if old != new:
        facts = {(f.kind, f.text, f.after): f for p in (a, b) for f in p.other_statements}
        gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
        for each in gone:
            key = f"statement/-{each[0]} {each[1]}"
            found.append(Difference(key, "statement", facts[each], None, facts[each].span))
        for each in come:
            key = f"statement/+{each[0]} {each[1]}"
            found.append(Difference(key, "statement", None, facts[each], None, facts[each].span))
        if not gone and not come:
            found.append(Difference("statement/order", "statement", "the same statements", "in another order"))
    problems_old, problems_new = ([(q.reason, q.text) for q in p.problems] for p in (a, b))
    if problems_old != problems_new:
        found.append(Difference("unread", "unread", tuple(problems_old), tuple(problems_new)))
    return found


def _tables(a: Program, b: Program) -> list[Difference]:
    old, new = ({table.name: table for table in p.tables} for p in (a, b))
    found: list[Difference] = []
    for name in sorted({*old, *new}):
        if name in old and name in new:
            if old[name] == new[name]:
                continue
            spans = (old[name].span, new[name].span)
            found += differences_of(f"table/{name}", table_parts(old[name]), table_parts(new[name]), spans)
        else:
            found.append(
                Difference(
                    f"table/{name}/declared",
                    "declared",
                    old.get(name),
                    new.get(name),
                    old[name].span if name in old else None,
                    new[name].span if name in new else None,
                )
            )
    return found
