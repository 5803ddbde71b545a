"""What a column more, less or other means is one finding, though several parts of the table's declaration change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, combined
from airflow_flinkcompat.plan.nodes import Table

PARTS = frozenset({"columns", "types", "order", "computed", "metadata"})
"""Parts of a declaration that one column changes together."""


def one_for_each_table(matches: Iterable[RuleMatch], rule: Rule, change: Change) -> Iterator[RuleMatch]:
    """A rule's matches, those about the columns of one table put together."""
    about: dict[str, list[RuleMatch]] = {}
    for match in matches:
        table = _table_of(match)
        if table:
            about.setdefault(table, []).append(match)
        else:
            yield match
    for table, each in about.items():
        yield each[0] if len(each) == 1 else _together(each, table, rule, change)


def _table_of(match: RuleMatch) -> str:
    """The table of which a match claims columns, and nothing else."""
    claims = [claim.removeprefix("table/").rpartition("/") for claim in match.claims if claim.startswith("table/")]
    names = {name for name, _, part in claims if part in PARTS}
    whole = len(claims) == len(match.claims) and all(part in PARTS for _, _, part in claims)
    return names.pop() if whole and len(names) == 1 else ""


def _together(matches: Sequence[RuleMatch], table: str, rule: Rule, change: Change) -> RuleMatch:
    old, new = (program.table(table) for program in change.programs)
    about = matches[0].message.partition(": ")[0]
    said, before, after = ("", "", "") if old is None or new is None else _columns(old, new)
    verdicts = {
        engine: combined(match.verdicts.get(engine) or rule.verdicts[engine] for match in matches)
        for engine in rule.verdicts
    }
    return RuleMatch(
        f"{about}: {said}" if said else matches[0].message,
        tuple(claim for match in matches for claim in match.claims),
        before or matches[0].before,
        after or matches[0].after,
        matches[0].before_span,
        matches[0].after_span,
        verdicts=verdicts,
        notes={engine: note for match in matches for engine, note in match.notes.items()},
    )


def _columns(old: Table, new: Table) -> tuple[str, str, str]:
    """What became of the columns, in words, and those that differ as they are declared on both sides."""
    ours, theirs = ({column.name: str(column.type) for column in side.columns} for side in (old, new))
    computed = [dict(side.computed) for side in (old, new)]
    gone = [name for name in ours if name not in theirs]
    come = [name for name in theirs if name not in ours]
    other = [
        name
        for name in ours
        if name in theirs and (ours[name] != theirs[name] or (name in computed[0]) != (name in computed[1]))
    ]
    words = [*_some(gone, "removed"), *_some(come, "added"), *_some(other, "declared otherwise")]
    if [name for name in ours if name in theirs] != [name for name in theirs if name in ours]:
        words.append("columns stand in another order")
        if not (gone or come or other):
            return words[0], ", ".join(ours), ", ".join(theirs)
    before, after = (
        ", ".join(f"{name} {side[name]}" for name in side if name in {*gone, *come, *other}) for side in (ours, theirs)
    )
    return ", ".join(words), before or "absent", after or "absent"


def _some(names: Sequence[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"column{'' if len(names) == 1 else 's'} {', '.join(names)} {what}"]
