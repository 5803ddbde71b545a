"""Matches of rules for options of tables: those of which the same is to be said are said together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.changes.table_use import UsedTable
from airflow_flinkcompat.compat.rule import RuleMatch, Verdict, combined
from airflow_flinkcompat.compat.rule_builders.options.option_verdict import OptionChange, Options, OptionVerdict
from airflow_flinkcompat.compat.rule_builders.options.tables import changed_keys, judged

OnVvr = Callable[[str, Options, Options], Verdict]
"""What the vendor's documents say of one option, by its name and all options of both sides."""


def option_matches(
    table: str, what: str, connector: str | None, difference: Difference, uses: Sequence[UsedTable], on_vvr: OnVvr
) -> Iterator[RuleMatch]:
    """One match for each thing that is to be said of a table's changed options.

    Args:
        table: The table's name.
        what: How a reader knows it, ``source table orders``.
        connector: Its connector, the same on both sides.
        difference: Where the options of both sides differ.
        uses: What queries do with it.
        on_vvr: What the vendor's documents say.

    Yields:
        The matches, each with the options that it speaks of.
    """
    before, after = difference.before or {}, difference.after or {}
    groups: dict[tuple[str, Verdict, Verdict], list[str]] = {}
    for key in changed_keys(before, after):
        found = judged(OptionChange(table, connector, key, before, after, uses))
        groups.setdefault((found.says, found.verdict, on_vvr(key, before, after)), []).append(key)
    for (says, verdict, vvr), keys in groups.items():
        old, new = (format_value({key: side[key] for key in keys if key in side}) for side in (before, after))
        yield RuleMatch(
            f"{what}: {', '.join(keys)} changed",
            (difference.key,),
            old,
            new,
            difference.before_span,
            difference.after_span,
            verdicts={"vvr": vvr, "flink": verdict},
            notes={"flink": f": {says}"},
            options=tuple(keys),
        )


def options_judged(
    table: str, connector: str | None, before: Options, after: Options, uses: Iterable[UsedTable]
) -> OptionVerdict | None:
    """What all changed options of a table come to: the worst of them; None where none differs.

    Args:
        table: The table's name.
        connector: Its connector, the same on both sides.
        before: The options of one side.
        after: Those of the other.
        uses: What queries do with it.

    Returns:
        Its sentence with the options it speaks of, and the verdict over all of them.
    """
    used = tuple(uses)
    found = {
        key: judged(OptionChange(table, connector, key, before, after, used)) for key in changed_keys(before, after)
    }
    if not found:
        return None
    worst = max(found, key=lambda key: found[key].verdict.outcome.rank)
    return OptionVerdict(f"{worst}: {found[worst].says}", combined(each.verdict for each in found.values()))
