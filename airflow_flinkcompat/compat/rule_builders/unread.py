"""What could not be read of either side and is written alike on both: where nothing that changed can reach it."""

from __future__ import annotations

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.references import expressions, function_names, may_name, with_views, words
from airflow_flinkcompat.compat.engines.flink import settings
from airflow_flinkcompat.model import NormalForm
from airflow_flinkcompat.plan.operators import sources
from airflow_flinkcompat.plan.program import Problem

_SETS = ("ADD", "ALTER", "BEGIN", "DROP", "EXECUTE", "LOAD", "REMOVE", "RESET", "SET", "STATEMENT", "UNLOAD", "USE")
"""How unread statements begin that may change what others mean, or hold them."""


def unread_alike(change: Change) -> frozenset[str]:
    """Messages of what neither side could be read of, where it is the same before and after the change.

    It is a query, a declaration or no SQL at all. A query outside of any set is a job of its own; neither it nor a
    declaration means anything else than before unless it names something that changed, and where a query that changed
    names what was declared, this is in doubt.

    Args:
        change: What is judged.

    Returns:
        The messages of both sides; none where anything of this is in doubt.
    """
    a, b = ([(problem.reason, problem.text) for problem in program.problems] for program in change.programs)
    texts = [problem for problem in change.programs[0].problems if problem.reason == "statement"]
    # First: most scripts are read whole, and what follows looks at every query and every view.
    if not texts or a != b or len(texts) != len(a) or any(map(_sets_something, texts)):
        return frozenset()
    names = _changed_names(change)
    if names is None:
        return frozenset()
    found = words(*(problem.text for problem in texts))
    for program in change.programs:
        found |= with_views(found, {name: text.normal for name, text in program.views})
    if any(may_name(found, name) for name in names):
        return frozenset()
    return frozenset(problem.message for program in change.programs for problem in program.problems)


def _sets_something(problem: Problem) -> bool:
    text = problem.text.text if isinstance(problem.text, NormalForm) else problem.text
    return text.lstrip().upper().startswith(_SETS)


def _changed_names(change: Change) -> frozenset[str] | None:
    """Names of all that changed and of all that changed queries use; None where a change has no name."""
    names: set[str] = set()
    for difference in change.script_differences:
        place, _, rest = difference.key.partition("/")
        if place == "table":
            names.add(rest.rpartition("/")[0])
        elif place in ("view", "function"):
            names.add(rest)
        elif place != "setting" or settings.asks_for_tables(rest):
            return None
    for pair in change.pipelines:
        if pair.changed:
            for output in (pair.old, pair.new):
                names |= {output.sink, *(source.table for source in sources(output))}
                names |= set(function_names(tuple(expressions(output))))
    return frozenset(names - {""})
