"""Selection of the decisive findings, and the merge of findings about one column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any

from airflow_flinkcompat.compat import rules
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.restore_verdict import DIFFERS
from airflow_flinkcompat.compat.rule import Level, Rule, RuleMatch
from airflow_flinkcompat.compat.verdict import combined
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall, FunctionCall
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import sources
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, PassedOutput, SourceColumn, leaves

Fired = Sequence[tuple[Level, Finding]]
"""Every finding with the level of its rule, before findings are overruled."""


def decision_groups(fired: Fired) -> list[tuple[Fired, Fired]]:
    """Groups of findings that compete with each other, each with its decisive findings.

    If there is a finding about the engine version, all findings are one group, which this finding decides. If not, each
    sink has one group of findings, and the findings about the script are one more group. In each group, the findings
    with the highest precedence level are decisive.
    """
    whole = [entry for entry in fired if entry[0] is Level.VERSION]
    if whole:
        return [(fired, whole)]
    groups: dict[str | None, list[tuple[Level, Finding]]] = {}
    for entry in fired:
        groups.setdefault(entry[1].sink, []).append(entry)
    found: list[tuple[Fired, Fired]] = []
    for group in groups.values():
        top = min(group, key=itemgetter(0))[0]
        found.append((group, group if len(group) == 1 else [entry for entry in group if entry[0] is top]))
    return found


def decided_outcome(fired: Fired) -> Outcome:
    """The worst outcome of the decisive findings."""
    return Outcome.worst([finding.outcome for _, deciders in decision_groups(fired) for _, finding in deciders])


def apply_precedence(fired: Fired) -> list[Finding]:
    """Mark overruled findings. In a sink's pipeline, the worst finding of the highest level decides."""
    return overrule_across_sinks(
        [finding for group, deciders in decision_groups(fired) for finding in _mark_overruled(group, deciders)]
    )


def _mark_overruled(group: Fired, deciders: Fired) -> list[Finding]:
    worst = max((finding for _, finding in deciders), key=lambda finding: finding.outcome.rank)
    deciding = {id(finding) for _, finding in deciders}
    ranks = {finding.rule: finding.outcome.rank for _, finding in group}
    marked = []
    for _, finding in group:
        loses = finding.outcome.rank < worst.outcome.rank or (
            id(finding) not in deciding and finding.outcome is not worst.outcome
        )
        page = rule.yields_to if (rule := rules.BY_CODE.get(finding.rule)) else ""
        by = page if ranks.get(page, -1) > finding.outcome.rank else worst.rule
        by = by if loses else _code_in_sql_terms(finding, deciders)
        marked.append(replace(finding, overruled_by=by) if by else finding)
    return marked


def _code_in_sql_terms(finding: Finding, deciders: Fired) -> str:
    """The code of a rule that describes, in SQL terms, the same effect as a finding of the plan diff."""
    if finding.rule != DIFFERS.code:
        return ""
    ends = ((each.rule, each.outcome, each.consequence) for _, each in deciders if each.rule != DIFFERS.code)
    return next((code for code, *end in ends if end == [finding.outcome, finding.consequence]), "")


def overrule_across_sinks(findings: list[Finding]) -> list[Finding]:
    """Across all sinks and the script as a whole, the worst finding decides."""
    counting = [finding for finding in findings if not finding.overruled_by]
    if not counting:
        return findings
    worst = max(counting, key=lambda finding: finding.outcome.rank)
    return [
        replace(finding, overruled_by=worst.rule)
        if not finding.overruled_by and finding.outcome.rank < worst.outcome.rank
        else finding
        for finding in findings
    ]


COLUMN_PARTS = frozenset({"columns", "types", "order", "computed", "metadata"})
"""Parts of a table's declaration that may all differ because of one column."""


def one_for_each_table(matches: Iterable[RuleMatch], rule: Rule, change: Change) -> Iterator[RuleMatch]:
    """A rule's matches, with all matches about the columns of one table merged."""
    about: dict[str, list[RuleMatch]] = {}
    for match in matches:
        table = _table_of(match)
        if table:
            about.setdefault(table, []).append(match)
        else:
            yield match
    for table, each in about.items():
        yield each[0] if len(each) == 1 else _merged_match(each, table, rule, change)


def _table_of(match: RuleMatch) -> str:
    """The table of a match that claims only differences of the table's columns; "" for other matches."""
    claims = [claim.removeprefix("table/").rpartition("/") for claim in match.claims if claim.startswith("table/")]
    names = {name for name, _, part in claims if part in COLUMN_PARTS}
    whole = len(claims) == len(match.claims) and all(part in COLUMN_PARTS for _, _, part in claims)
    return names.pop() if whole and len(names) == 1 else ""


def _merged_match(matches: Sequence[RuleMatch], table: str, rule: Rule, change: Change) -> RuleMatch:
    old, new = (program.table(table) for program in change.programs)
    about = matches[0].message.partition(": ")[0]
    message, before, after = ("", "", "") if old is None or new is None else _changed_columns(old, new)
    verdicts = {
        engine: combined(match.verdicts.get(engine) or rule.verdicts[engine] for match in matches)
        for engine in rule.verdicts
    }
    return RuleMatch(
        f"{about}: {message}" if message else matches[0].message,
        tuple(claim for match in matches for claim in match.claims),
        before or matches[0].before,
        after or matches[0].after,
        before_span=matches[0].before_span,
        after_span=matches[0].after_span,
        verdicts=verdicts,
        notes={engine: note for match in matches for engine, note in match.notes.items()},
    )


def _changed_columns(old: Table, new: Table) -> tuple[str, str, str]:
    """A sentence on the changed columns, and the declarations of these columns on both sides."""
    ours, theirs = ({column.name: str(column.type) for column in side.columns} for side in (old, new))
    computed = [dict(side.computed) for side in (old, new)]
    removed = [name for name in ours if name not in theirs]
    added = [name for name in theirs if name not in ours]
    other = [
        name
        for name in ours
        if name in theirs and (ours[name] != theirs[name] or (name in computed[0]) != (name in computed[1]))
    ]
    words = [
        *_columns_phrase(removed, "removed"),
        *_columns_phrase(added, "added"),
        *_columns_phrase(other, "declared differently"),
    ]
    if [name for name in ours if name in theirs] != [name for name in theirs if name in ours]:
        words.append("columns are in a different order")
        if not (removed or added or other):
            return words[0], ", ".join(ours), ", ".join(theirs)
    before, after = (
        ", ".join(f"{name} {side[name]}" for name in side if name in {*removed, *added, *other})
        for side in (ours, theirs)
    )
    return ", ".join(words), before or "absent", after or "absent"


def _columns_phrase(names: Sequence[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"column{'' if len(names) == 1 else 's'} {', '.join(names)} {what}"]


_OF_TABLES = ("columns", "types", "order")


_OF_QUERIES = ("columns", "aggregates", "row", "row of input 1", "row of input 2")


def one_for_each_column(findings: Sequence[Finding], change: Change) -> list[Finding]:
    """Findings, with those merged that are due to one column between its source and its sink."""
    found = list(findings)
    differences = {difference.key: difference for difference in change.differences}
    for pair in change.pipelines:
        allowed = _keys_of_one_column(pair, differences)
        about = [each for each in found if each.claims and allowed.issuperset(each.claims)]
        if len(about) < 2:
            continue
        worst = max(about, key=_weight)
        # A finding about a different operator stays separate.
        others = [each for each in about if each is not worst and not each.operator]
        whole = _merged_finding(worst, others, differences)
        found = [whole if each is worst else each for each in found if each not in others]
    return found


def _weight(finding: Finding) -> tuple[bool, int, bool, bool]:
    """Sort key of findings: decisive before overruled, then by outcome, then the query before its tables."""
    of_query = not any(key.startswith("table/") for key in finding.claims)
    return not finding.overruled_by, finding.outcome.rank, bool(finding.operator), of_query


def _merged_finding(worst: Finding, others: Sequence[Finding], differences: Mapping[str, Difference]) -> Finding:
    """Merge the worst finding with others. Evidence is merged if the outcomes are equal."""
    keys = [key for each in others for key in each.claims]
    tables = dict.fromkeys(f"table {key.split('/')[1]}" for key in keys if key.startswith("table/"))
    more = any(len(differences[key].after) > len(differences[key].before) for key in keys)
    verb = ("get" if more else "lose") + ("s" if len(tables) == 1 else "")
    alike = [worst, *(each for each in others if each.outcome is worst.outcome)]
    return replace(
        worst,
        message=worst.message + (f"; {' and '.join(tables)} also {verb} a column" if tables else ""),
        source="; ".join(dict.fromkeys(each.source for each in alike if each.source)),
        evidence=tuple(dict.fromkeys(id for each in alike for id in each.evidence)),
    )


def _keys_of_one_column(pair: PipelinePair, differences: Mapping[str, Difference]) -> frozenset[str]:
    """Keys of all differences that are due to one column that the query reads and writes to its sink."""
    in_query = chain(pair.differences, *(each.differences for each in pair.operators))
    query = {d.key: each for d in in_query if d.part in _OF_QUERIES and (each := _single_change(d)) is not None}
    read = {name for each in query.values() for name in _columns_of(each)}
    found = set(query)
    for table in {pair.old.sink, *(source.table for side in (pair.old, pair.new) for source in sources(side))} - {""}:
        declared = [d for part in _OF_TABLES if (d := differences.get(f"table/{table}/{part}"))]
        columns = {_single_change(d) for d in declared}
        if len(columns) == 1 and None not in columns and (table == pair.old.sink or columns <= read):
            found |= {d.key for d in declared}
    return frozenset(found)


def _single_change(difference: Difference) -> Any:
    """The value that was added or removed, if it is the only difference; else None."""
    before, after = difference.before, difference.after
    mappings = isinstance(before, Mapping) and isinstance(after, Mapping)
    if mappings and any(before[key] != after[key] for key in before.keys() & after.keys()):
        return None
    sides = [tuple(side) for side in (before, after) if isinstance(side, tuple | Mapping)]
    if len(sides) != 2 or abs(len(sides[0]) - len(sides[1])) != 1:
        return None
    short, long = sorted(sides, key=len)
    at = next((i for i, each in enumerate(short) if each != long[i]), len(short))
    return long[at] if long[:at] + long[at + 1 :] == short else None


def _columns_of(value: Any) -> Iterator[str]:
    """The source columns from which a value is computed."""
    match value:
        case AggregateCall():
            for part in (*value.args, value.filter):
                yield from () if part is None else _columns_of(part)
        case KeyOutput():
            yield from _columns_of(value.key)
        case PassedOutput():
            yield from _columns_of(value.column)
        case OperatorColumn():
            yield from _columns_of(value.output)
        case SourceColumn():
            yield value.column
        case FunctionCall():
            for leaf in leaves(value):
                yield from _columns_of(leaf)
