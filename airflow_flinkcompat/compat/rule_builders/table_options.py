"""Table options: the uses of a table, a changed option, and where a source starts without state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.query_form import OPTIONS, hint_options
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.compat.verdict import Verdict, inferred, refused_at_submit, right, unknown
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, OptionFact, TableUse
from airflow_flinkcompat.connectors.registry import FORMATS, source
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import Scan
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator, Output, Source, operators

_MAY_LOOK_UP = (JoinForm.LOOKUP, JoinForm.JOIN)


@dataclass(frozen=True)
class UsedTable:
    """A use of a table by a pair of queries, on either side."""

    use: TableUse
    pair: PipelinePair


def uses_of(change: Change, table: str) -> tuple[UsedTable, ...]:
    """All uses of a table by paired queries, on either side."""
    return tuple(used for pair in change.pipelines for used in uses_of_query(pair, table))


def uses_of_query(pair: PipelinePair, table: str) -> tuple[UsedTable, ...]:
    """All uses of a table by one pair of queries, on either side."""
    found = (use for side in (pair.old, pair.new) for use in uses_in(side, table))
    return tuple(UsedTable(use, pair) for use in dict.fromkeys(found))


def uses_in(output: Output, table: str) -> Iterator[TableUse]:
    """All uses of a table by one query."""
    if output.sink == table:
        yield TableUse.SINK
    if _reads(output.segment.origin, table):
        yield TableUse.SOURCE
    for operator in operators(output):
        form = operator.form if isinstance(operator, JoinOperator) else None
        for place, segment in enumerate(operator.segments):
            if not _reads(segment.origin, table):
                continue
            if form in _MAY_LOOK_UP and place == 1:
                yield TableUse.LOOKUP
            if form is not JoinForm.LOOKUP or place != 1:
                yield TableUse.SOURCE


def _reads(origin: object, table: str) -> bool:
    return isinstance(origin, Source) and origin.table == table


Options = Mapping[str, str]
_PARALLELISM = "parallelism.default"
_LOOPBACK = re.compile(r"(?<![\w.-])(?:localhost|127\.0\.0\.1|\[::1\])(?![\w-])")


@dataclass(frozen=True)
class OptionChange:
    """A changed option, with all options of its table on both sides and the uses of the table."""

    table: str
    connector: str | None
    key: str
    before: Options = field(repr=False)
    after: Options = field(repr=False)
    uses: Sequence[UsedTable] = field(default=())

    @property
    def values(self) -> tuple[str | None, str | None]:
        return self.before.get(self.key), self.after.get(self.key)


@dataclass(frozen=True)
class OptionVerdict:
    """A sentence about an option, and the verdict on its change."""

    sentence: str
    verdict: Verdict


def harmless(
    fact: OptionFact, sentence: str, mechanism: tuple[str, ...], other_evidence: tuple[str, ...] = ()
) -> OptionVerdict:
    """A compatible verdict by restores of the option, or by a document and restores of ``mechanism``."""
    if fact.ids:
        return OptionVerdict(fact.note or sentence, right(*fact.ids))
    return OptionVerdict(
        fact.note or sentence, inferred(Outcome.COMPATIBLE, fact.document, ids=mechanism, other_evidence=other_evidence)
    )


def effect_clause(fact: OptionFact) -> str:
    """The effect of an option, as the beginning of a sentence."""
    return f"it decides {fact.effect.value}"


def unmeasured_effect(fact: OptionFact) -> str:
    """A sentence about the effect of an option that was not measured with its connector."""
    return (
        f"{effect_clause(fact)}; the effect of a different value on a restored job was not measured with this connector"
    )


def not_measured(change: OptionChange, fact: OptionFact, sentence: str) -> OptionVerdict:
    """An unknown verdict that names the option and its document."""
    grounds = f" ({fact.document})" if fact.document else ""
    return OptionVerdict(sentence, unknown(f"'{change.key}' of {change.connector}{grounds}: no restore confirms it"))


def stateless_verdict(verdict: Verdict) -> OptionVerdict:
    """The verdict on an option of a job without state."""
    return OptionVerdict("its source, its query and its sink store nothing", verdict)


def effective_values(change: OptionChange, fact: OptionFact) -> tuple[str | None, str | None]:
    """The values of both sides; an omitted value becomes the default that all connector versions share."""
    old, new = (fact.default if value is None else value for value in change.values)
    return old, new


def selects_format(change: OptionChange) -> bool:
    """True if the option selects a format of the connector."""
    facts = registry.catalogue().get(change.connector or "")
    return facts is not None and change.key in facts.formats


def formats(change: OptionChange) -> tuple[str, str]:
    """The formats on both sides; "" if none is set."""
    keys = registry.catalogue()[change.connector or ""].formats
    old, new = (next((side[key] for key in keys if key in side), "") for side in (change.before, change.after))
    return old, new


def is_format_option(change: OptionChange) -> bool:
    """True if the option belongs to the format on each side that sets it."""
    sides = (
        zip((change.before, change.after), formats(change), strict=True)
        if (change.connector or "") in registry.catalogue()
        else ()
    )
    found = [change.key.startswith(f"{format}.") for side, format in sides if change.key in side]
    return bool(found) and all(found)


def append_only(*names: str) -> bool:
    """True if all these formats certainly contain only inserted rows."""
    return all(name in FORMATS and FORMATS[name].appends is Known.YES for name in names)


def members(address: str | None) -> set[str]:
    """The hosts in an address, with "localhost" for each name of the local machine."""
    return {_LOOPBACK.sub("localhost", part.strip().lower()) for part in (address or "").split(",") if part.strip()}


def parallelism(change: OptionChange, fact: OptionFact, pair: PipelinePair, equal: tuple[str, ...]) -> OptionVerdict:
    """Verdict on a parallelism option. A parallelism that differs from the job's unchains the operator."""
    jobs = [
        settings.effective(dict(pipeline.settings), _PARALLELISM, "flink")
        for pipeline in (pair.old_pipeline, pair.new_pipeline)
    ]
    own = [None if value == job else value for value, job in zip(change.values, jobs, strict=True)]
    if own[0] == own[1]:
        return OptionVerdict("the job has the same parallelism", right(*equal))
    if None in jobs:
        return OptionVerdict(f"{fact.note}, unless it equals the job's", unknown(f"{_PARALLELISM} is not set"))
    if not fact.ids:
        return not_measured(change, fact, fact.note)
    return OptionVerdict(fact.note, refused_at_submit(*fact.ids))


def startup_options(connector: str) -> tuple[str, ...]:
    """The options that decide where a source starts without state."""
    known = source(connector).startup
    return (known.option, *known.more) if known and known.option else ()


def start_clause(connector: str, options: Mapping[str, str]) -> str:
    """A clause ``starts …`` about the start of a source without state."""
    known = source(connector).startup
    if known is None:
        return f"starts as its connector ({connector or 'of its catalog'}) does; that start is unknown"
    if not known.option:
        return f"starts {known.itself}"
    set_ = [f"{key} = {options[key]}" for key in known.more if key in options]
    if known.option in options:
        return f"starts by its own options: {', '.join([f'{known.option} = {options[known.option]}', *set_])}"
    more = f" ({', '.join(set_)})" if set_ else ""
    return f"starts by its connector's default, {known.option} = {known.default}{more}"


def startup_positions(side: Side) -> tuple[tuple[str, str], ...]:
    """Clauses about where each source of a side starts without state; hints override table options."""
    outputs, failures = side.outputs
    scans = [node for each in side.program.pipelines for node in each.sink.nodes if isinstance(node, Scan)]
    found: dict[str, str] = {}
    for scan in scans:
        name = scan.table.name
        uses = {use for output in outputs.values() for use in uses_in(output, name)}
        if scan.table.declared and (failures or TableUse.SOURCE in uses or TableUse.LOOKUP not in uses):
            options = {**dict(scan.table.options), **dict(hint_options(scan.hints, OPTIONS))}
            found.setdefault(name, start_clause(options.get("connector", ""), options))
    return tuple(found.items())
