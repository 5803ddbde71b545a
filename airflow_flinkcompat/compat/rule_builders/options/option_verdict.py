"""One option of a table that differs, and what may be said of any such, whatever a query does with the table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat import connectors
from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.table_use import UsedTable
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured
from airflow_flinkcompat.compat.rule import Verdict, inferred, measured
from airflow_flinkcompat.connectors import FORMATS, Known, OptionFact
from airflow_flinkcompat.model import Consequence, Outcome

Options = Mapping[str, str]
_PARALLELISM = "parallelism.default"
_LOOPBACK = re.compile(r"(?<![\w.-])(?:localhost|127\.0\.0\.1|\[::1\])(?![\w-])")


@dataclass(frozen=True)
class OptionChange:
    """One option that differs, with all options of the table on both sides, and what the queries do with it."""

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
    """What is to be said of one option, and the verdict."""

    says: str
    verdict: Verdict


def harmless(
    fact: OptionFact, says: str, mechanism: tuple[str, ...], other_evidence: tuple[str, ...] = ()
) -> OptionVerdict:
    """Compatible by its own restores, or by those of the same mechanism where a document says what it does."""
    if fact.ids:
        return OptionVerdict(fact.says or says, right(*fact.ids))
    return OptionVerdict(
        fact.says or says, inferred(Outcome.COMPATIBLE, fact.document, ids=mechanism, other_evidence=other_evidence)
    )


def decides(fact: OptionFact) -> str:
    """What the option decides, as a sentence that goes on."""
    return f"it decides {fact.effect.value}"


def not_with_this_connector(fact: OptionFact) -> str:
    """What the option decides, where no restore speaks of it."""
    return f"{decides(fact)}: what a restored job makes of another value was not measured with this connector"


def not_measured(change: OptionChange, fact: OptionFact, says: str) -> OptionVerdict:
    """Unknown, with what is known of the option all the same."""
    grounds = f" ({fact.document})" if fact.document else ""
    return OptionVerdict(says, unmeasured(f"'{change.key}' of {change.connector}{grounds}: no restore shows it"))


def nothing_stored(verdict: Verdict) -> OptionVerdict:
    """What is to be said of any option of a job without state."""
    return OptionVerdict("neither its source nor its sink keeps anything, and its query does not", verdict)


def given(change: OptionChange, fact: OptionFact) -> tuple[str | None, str | None]:
    """The values of both sides, the connector's default where a table leaves it out and every version has one."""
    old, new = (fact.default if value is None else value for value in change.values)
    return old, new


def names_a_format(change: OptionChange) -> bool:
    """Whether the option is one in which the connector finds its format."""
    facts = connectors.catalogue().get(change.connector or "")
    return facts is not None and change.key in facts.formats


def formats(change: OptionChange) -> tuple[str, str]:
    """The format of the values before and after, "" where none is given."""
    keys = connectors.catalogue()[change.connector or ""].formats
    old, new = (next((side[key] for key in keys if key in side), "") for side in (change.before, change.after))
    return old, new


def of_its_format(change: OptionChange) -> bool:
    """Whether each side that gives the option reads it in its format, by whose name it begins."""
    sides = zip((change.before, change.after), formats(change), strict=True) if _has_formats(change) else ()
    found = [change.key.startswith(f"{format}.") for side, format in sides if change.key in side]
    return bool(found) and all(found)


def _has_formats(change: OptionChange) -> bool:
    return (change.connector or "") in connectors.catalogue()


def append_only(*names: str) -> bool:
    """Whether rows of all these formats are surely only ever added."""
    return all(name in FORMATS and FORMATS[name].appends is Known.YES for name in names)


def members(address: str | None) -> set[str]:
    """The hosts of an address, this machine's by one name: those with one in common lead to the same system."""
    return {_LOOPBACK.sub("localhost", part.strip().lower()) for part in (address or "").split(",") if part.strip()}


def parallelism(change: OptionChange, fact: OptionFact, pair: PipelinePair, equal: tuple[str, ...]) -> OptionVerdict:
    """A parallelism of its own unchains an operator; one that is the job's changes nothing."""
    jobs = [
        settings.effective(dict(pipeline.settings), _PARALLELISM, "flink")
        for pipeline in (pair.old_pipeline, pair.new_pipeline)
    ]
    own = [None if value == job else value for value, job in zip(change.values, jobs, strict=True)]
    if own[0] == own[1]:
        return OptionVerdict("it is the job's parallelism anyway", right(*equal))
    if None in jobs:
        return OptionVerdict(f"{fact.says}, unless it is the job's", unmeasured(f"{_PARALLELISM} is not given"))
    if not fact.ids:
        return not_measured(change, fact, fact.says)
    return OptionVerdict(
        fact.says, measured(Outcome.INCOMPATIBLE, *fact.ids, consequence=Consequence.REFUSED_AT_SUBMIT)
    )
