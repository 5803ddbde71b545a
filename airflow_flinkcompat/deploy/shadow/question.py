"""Question of an approval about a shadow run in the ledger. DuckDB is not needed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.compat.reports.markdown import code_span, plain_words
from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry, ShadowedEntry
from airflow_flinkcompat.secrets.redact import shortened

HEADING = "SHADOW: "
"""Beginning of the first line of a report."""
NO_PROOF = "This is no proof that the restored state is right: wrong state differs in the same columns."
"""Limit of a run whose rows differ only in columns that the change names."""
MEANINGS: Mapping[str, str] = {
    "equal": "Equal rows prove that both scripts write the same rows from the present state and the input of this "
    "run. They prove nothing about keys and values that did not occur in this input.",
    "differs as expected": "All differences are in columns that are expected to differ. The run does not prove that "
    "the new values of these columns are right.",
    "differs in changed columns": f"{NO_PROOF} Compare the values with the values that the change intends.",
    "could not tell": "The run has no result, so it proves nothing about the change.",
    "differs": "The rows differ in columns that neither the change nor `expect` names, or that are unknown. Resume "
    "only if every difference is intended.",
    "refused": "Flink did not run the new script from the state of the running job. Expect the same after a resume.",
}
"""Proof of each finding of the rows, and its limit, as sentences with Markdown code spans."""
_MEANINGS_OF_STATE: Mapping[str, str] = {
    "differs as expected": "The state differs only in columns that are expected to differ, and that also differ for "
    "the old script. The run does not prove that the stored values of these columns are right.",
    "could not tell": "The state was not compared. It can be wrong even if both scripts write the same rows from it.",
    "differs": "The stored state is wrong for the new script. The rows of both scripts do not show this, because both "
    "scripts start from this state. After a resume, the new script writes these wrong rows.",
}
"""The same of each finding of the state that decides."""
ACCEPTED = ("equal", "differs as expected")
"""Findings of agreeing rows or state."""


@dataclass(frozen=True)
class ComparedSides:
    """Names of both sides of a comparison: in words, and as keys of the numbers of changes."""

    words: tuple[str, str]
    counts: tuple[str, str]


SCRIPTS = ComparedSides(("by the old script", "by the new script"), ("old_changes", "new_changes"))
"""Sides of the rows of a run."""
STATES = ComparedSides(
    ("from the stored state", "from the state after all rows"), ("stored_changes", "reference_changes")
)
"""Sides of the comparison of the state."""
_FEW_ROWS, _FEW_COLUMNS, _FEW_SINKS = 5, 8, 4
"""Size of the tables in a question, which must be readable in Airflow's form."""
_LONGEST_VALUE = 40


def last_shadow_run(entries: Iterable[LedgerEntry], sha256: str) -> ShadowedEntry | None:
    """Find the last shadow run of a version; None without one.

    Args:
        entries: Entries of the ledger, oldest first.
        sha256: Digest of the version.

    Returns:
        The entry.
    """
    runs = [each for each in entries if isinstance(each, ShadowedEntry) and each.version.sha256 == sha256]
    return runs[-1] if runs else None


def render_question(entry: ShadowedEntry) -> str:
    """Render a shadow run as short Markdown for the question of an approval.

    Args:
        entry: The entry of the shadow run.

    Returns:
        Markdown without a final line break. Secrets are not masked.
    """
    return "\n".join(_question(entry))


def headline(entry: ShadowedEntry) -> str:
    """Finding and its meaning in one line.

    Args:
        entry: The entry of the shadow run.

    Returns:
        The text.
    """
    return entry.message.removeprefix(HEADING) or str(entry.shadow.get("finding", ""))


def decisive_finding(rows: str, state: str | None) -> str:
    """Choose the finding on which a person decides.

    Args:
        rows: The finding of the rows.
        state: The finding of the state; None if it was not compared.

    Returns:
        The finding of the state if the rows are accepted and the state is worse, else that of the rows.
    """
    order = [*MEANINGS]
    if state in order and rows in ACCEPTED and order.index(state) > order.index(rows):
        return state
    return rows


def finding(entry: ShadowedEntry) -> str:
    """Finding on which a person decides, of the rows or of the state.

    Args:
        entry: The entry of the shadow run.

    Returns:
        The finding; "" if the entry has none.
    """
    return decisive_finding(entry.shadow.get("finding", ""), (entry.shadow.get("state") or {}).get("finding"))


def meaning(entry: ShadowedEntry) -> str:
    """Proof of the decisive finding, and its limit.

    Args:
        entry: The entry of the shadow run.

    Returns:
        Sentences with Markdown code spans; "" for an unknown finding.
    """
    return (_MEANINGS_OF_STATE if _state_decides(entry) else MEANINGS).get(finding(entry), "")


def _state_decides(entry: ShadowedEntry) -> bool:
    return bool(finding(entry) != entry.shadow.get("finding", ""))


def _question(entry: ShadowedEntry) -> Iterator[str]:
    shadow, state = entry.shadow, entry.shadow.get("state")
    yield f"## Shadow run: {plain_words(headline(entry))}"
    if words := meaning(entry):
        yield from ("", words)
    if shadow.get("reason"):
        yield from ("", f"Reason: {code_span(shadow['reason'])}")
    if dropped := shadow.get("dropped"):
        names = ", ".join(code_span(each["name"] or each["id"]) for each in dropped)
        yield from ("", f"State that only the old script restored: {names}")
    rows = _sinks(shadow, SCRIPTS)
    if state and _state_decides(entry):
        yield from (*_sinks(state, STATES), "", f"**Rows of both scripts: {plain_words(shadow['finding'])}**", *rows)
    else:
        yield from rows
        if state:
            yield from ("", f"**{plain_words(state['headline'])}**")
            yield from _sinks(state, STATES) if state["finding"] != "equal" else ()
    yield from ("", f"The complete result is in entry {entry.number} of the ledger.")


def _sinks(comparison: Mapping[str, Any], sides: ComparedSides) -> Iterator[str]:
    """The differing sinks with their first rows, then the names of the others."""
    sinks = comparison.get("sinks", ())
    differing = [each for each in sinks if each["differing"]]
    for sink in differing[:_FEW_SINKS]:
        yield from ("", *_sink(sink, sides))
    if more := [code_span(each["sink"]) for each in differing[_FEW_SINKS:]]:
        yield from ("", f"{len(more)} more sinks differ: {', '.join(more)}")
    same = [each for each in sinks if not each["differing"]]
    if unknown := [
        f"{code_span(each['sink'])}: {each['note']}" for each in same if each["finding"] == "could not tell"
    ]:
        yield from ("", f"Could not tell: {'; '.join(unknown)}")
    if equal := [_equal(each) for each in same if each["finding"] != "could not tell"]:
        yield from ("", f"Equal rows: {', '.join(equal)}")


def _equal(sink: Mapping[str, Any]) -> str:
    names = ", ".join(map(code_span, sink["not_compared"]))
    return code_span(sink["sink"]) + (names and f" (not compared, of only one script: {names})")


def _sink(sink: Mapping[str, Any], sides: ComparedSides) -> Iterator[str]:
    what = "keys" if sink["by_key"] else "rows"
    (first, second), (one, other) = (sink[each] for each in sides.counts), sides.words
    changes = f"{first} changes {one}, {second} {other}"
    yield f"### {code_span(sink['sink'])} {sink['finding']}: {sink['differing']} {what} ({changes})"
    facts = (
        ("by column", [f"{code_span(name)} {count}" for name, count in sink["columns"].items()]),
        ("columns that the change names", _named(sink)),
        ("columns that are expected to differ", map(code_span, sink["expected"])),
        ("columns of only one script", map(code_span, sink["not_compared"])),
    )
    lines = [f"* {name}: {listed}" for name, values in facts if (listed := ", ".join(values))]
    if lines:
        yield from ("", *lines)
    if sink["rows"]:
        yield from ("", *_table(sink))


def _named(sink: Mapping[str, Any]) -> list[str]:
    if sink["changed"] is None:
        return []
    if sink["other_rows"]:
        return ["all, because it filters, groups, joins or ranks other rows"]
    return [*map(code_span, sink["changed"])] or ["none"]


def _table(sink: Mapping[str, Any]) -> Iterator[str]:
    """The first differing rows; of a sink with a key, only the columns that differ."""
    rows = sink["rows"][:_FEW_ROWS]
    names = [*(sink.get("row_columns") or rows[0])]
    if sink["by_key"]:
        place = names.index("change") + 1
        names[place:] = [name for name in names[place:] if name.rpartition(" (")[0] in sink["columns"]]
    shown = names[:_FEW_COLUMNS]
    yield f"| {' | '.join(map(plain_words, shown))} |"
    yield "|" + "---|" * len(shown)
    for row in rows:
        yield f"| {' | '.join(map(_cell, (row[name] for name in shown)))} |"
    cut = (("differences", sink["differing"] - len(rows)), ("columns", len(names) - len(shown)))
    if hidden := [f"{count} of the {what}" for what, count in cut if count > 0]:
        yield from ("", f"*Not shown: {', '.join(hidden)}*")


def _cell(value: object) -> str:
    return "NULL" if value is None else code_span(shortened(str(value), _LONGEST_VALUE))
