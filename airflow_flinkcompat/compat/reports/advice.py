"""Next steps for a report: texts with commands, equal in all output formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from airflow_flinkcompat.compat import single_script
from airflow_flinkcompat.compat.migration_report import MigratedOperator
from airflow_flinkcompat.compat.report import Finding, Report
from airflow_flinkcompat.compat.reports.entries import ending
from airflow_flinkcompat.compat.reports.sections import notice
from airflow_flinkcompat.compat.restore_verdict import graph_may_decide
from airflow_flinkcompat.compat.rule import Fate
from airflow_flinkcompat.compat.verdict import Remedy
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, Consequence, Outcome, Reason, language_of
from airflow_flinkcompat.model.engine import (
    CLAIM_MODE,
    ENGINE_FACTS,
    IGNORE_UNCLAIMED,
    RECOVERY_PATH,
    is_of_line,
    recovery_option,
)
from airflow_flinkcompat.secrets import mask_secrets

CONSEQUENCES: Mapping[Consequence | None, str] = {
    Consequence.REFUSED_AT_SUBMIT: "Flink would refuse the job when it is submitted",
    Consequence.REFUSED_AT_RESTORE: "Flink would accept the job, then fail it while restoring",
    Consequence.SILENTLY_WRONG: "Flink would keep running WITH WRONG ROWS AND NO ERROR",
    None: "the result is unknown: Flink may refuse the job, or run with wrong rows and no error",
}
_MORE: Mapping[Consequence | None, str] = {
    Consequence.REFUSED_AT_SUBMIT: " (with ignore-unclaimed-state the job would start, but its state would be "
    "silently empty)",
    Consequence.REFUSED_AT_RESTORE: " (the job is RUNNING for a moment first; ignore-unclaimed-state does not help)",
}
_TO_READ_ALL: Mapping[Reason, str] = {
    Reason.NOT_READ: "Correct or remove the parts that could not be read, and check again.",
    Reason.UNDECLARED: "Declare the missing tables and functions (--catalog FILE, --function NAME=KIND), and "
    "check again.",
}
_OLD_REFUSED = (
    "Flink refuses the deployed script. Check again with the engine version that runs the job (--old-engine-version), "
    "with the script that is actually deployed, or with the jars that the script needs (--jar FILE)."
)
_TO_SPLIT: Mapping[Reason, str] = {
    Reason.SEVERAL_CHANGES: "Split the change into parts, and check and deploy them one after the other.",
    Reason.AMBIGUOUS: "Change one query at a time, or give each query a separate sink, so that old and new queries "
    "can be paired.",
    Reason.VERSION: "Change the engine version and the script in two separate deployments.",
}
_FROM_SAVEPOINT = {RECOVERY_PATH: "<savepoint>", IGNORE_UNCLAIMED: "false", CLAIM_MODE: "NO_CLAIM"}
_STOP = "flink stop --savepointPath '<folder>' '<job id>'"
_MIGRATE_TASK = (
    "Do not resume. Keep the state with the branch `migrate` (Migrate the state). This branch stops the job with a "
    "savepoint, rewrites the savepoint, verifies the result, rehearses a restore with stand-ins for the sinks, and "
    "starts the job from the rewritten savepoint. If any step fails, the former script resumes from its own "
    "savepoint."
)
_ACCEPT_MOVED = " With source-moved in check.accept, {} starts from the beginning and the rest of the state is kept."
_NO_START = "Not advised: Flink refuses this script, with or without state."
_MEND = (
    "Correct the script as the findings describe, and check again. Do not stop the running job: Flink refuses the new "
    "script, with or without state."
)
_ADD_CLAUSE = (
    "End the INSERT with an ON CONFLICT clause, or set table.exec.sink.require-on-conflict = false. DEDUPLICATE keeps "
    "the latest row of a primary key, NOTHING keeps the first row, ERROR fails the job. NOTHING and ERROR need a "
    "watermark on every source."
)
_CLAUSES = ("INSERT INTO … SELECT … ON CONFLICT DO DEDUPLICATE;",)
_REHEARSE = (
    "Rehearse the restore: trigger a savepoint of the running job without stopping the job. Start {new} from this "
    "savepoint under a different name, with a separate location for every sink (a restored sink may commit or abort "
    "pending transactions of the live job). Compare the rows with those of a start without state."
)
_REHEARSE_BRIEFLY = "Rehearse {new} from a savepoint of the running job (`flinkcompat rehearse`)."


@dataclass(frozen=True)
class Step:
    """One next step.

    ``commands`` are lines in ``language``, which is ``sql`` or ``sh``. ``brief`` replaces ``text`` in a short report;
    None means the same text. A short report omits a step whose ``brief`` is empty.
    """

    text: str
    commands: tuple[str, ...] = ()
    language: str = "sql"
    brief: str | None = None


@dataclass(frozen=True)
class ReportContext:
    """Facts about a change and its deployment that a report itself does not contain.

    ``job_id`` is the deployed job, ``entry`` its entry in the ledger of ``deployment``. ``approver`` is True if the
    report is shown to the person who decides. ``backfill`` is True if a backfill follows a restart, None if unknown.
    ``backfill_refused`` is the reason why a backfill of the proposed script would be refused. ``migrates`` is True if a
    task can start the job from a rewritten savepoint. ``takes_commands`` is True if the job has a Flink id, so that
    Flink's own commands can stop it. ``chooses_offsets`` is True if the target accepts starting offsets. ``project`` is
    a sentence about values from the project file. ``stored`` are the numbers of the job's stored state, in words.
    ``downtime`` is a sentence about the time without a running job if state is migrated.
    """

    deployment: str = ""
    job_id: str = ""
    entry: int = 0
    approver: bool = False
    backfill: bool | None = None
    backfill_refused: str = ""
    migrates: bool = False
    takes_commands: bool = True
    chooses_offsets: bool = True
    project: str = ""
    stored: str = ""
    downtime: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values with secrets masked; :meth:`from_dict` is the inverse.

        Returns:
            The ``context`` of a report in a ledger.
        """
        return {name: mask_secrets(value) if isinstance(value, str) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """Read the values of :meth:`to_dict`.

        Args:
            row: The context as JSON values. Unknown fields of a different release are ignored.

        Returns:
            The same.
        """
        return cls(**{each.name: row[each.name] for each in fields(cls) if each.name in row})


@dataclass(frozen=True)
class PossibleAnswer:
    """The consequence of one possible decision. ``branch`` is resume, migrate, restart or reject."""

    branch: str
    text: str


NO_CONTEXT = ReportContext()


def steps(report: Report, known: ReportContext = NO_CONTEXT) -> tuple[Step, ...]:
    """Next steps."""
    return tuple(_with_ids(step, known) for step in _steps(report, known))


def _with_ids(step: Step, known: ReportContext) -> Step:
    if not known.job_id:
        return step
    text, *commands = (line.replace("<job id>", known.job_id) for line in (step.text, *step.commands))
    return Step(text, tuple(commands), step.language, step.brief)


def possible_answers(report: Report, known: ReportContext = NO_CONTEXT) -> tuple[PossibleAnswer, ...]:
    """The consequence of each possible decision of the approver."""
    if report.findings[0].rule in _ONE_SIDED:
        return ()
    consequences = {
        "resume": _if_resumed(report),
        "migrate": _if_migrated(report, known),
        "restart": _if_restarted(report, known),
        "reject": "The deployed version keeps running, and this version is not proposed again.",
    }
    return tuple(PossibleAnswer(branch, text) for branch, text in consequences.items() if text)


def _if_resumed(report: Report) -> str:
    if report.is_refused:
        return _NO_START
    match report.outcome:
        case Outcome.COMPATIBLE:
            empty = f" {notice(report)}" if report.sinks_begin_empty else ""
            return f"The job resumes from a savepoint, with all of its state.{empty}"
        case Outcome.PARTIAL:
            names, until = _from_zero(report)
            return f"The job resumes from a savepoint. These metrics start from zero: {names}; {until}."
        case Outcome.UNKNOWN:
            return "The job starts from a savepoint, but its state may not fit."
        case Outcome.INCOMPATIBLE:
            (result, *_) = if_resumed(report) or ("its state does not fit",)
            return f"Not advised: {result}."


def _if_migrated(report: Report, known: ReportContext) -> str:
    """The consequence of a migration; "" if a migration keeps no state."""
    if report.migration is None or not report.keeps_state:
        return ""
    operators = report.migration.operators
    empty = [_with_numbers(each) for each in operators if each.effect is RestoreEffect.EMPTY]
    dropped = [_with_numbers(each) for each in operators if each.effect is RestoreEffect.DROPPED and each.loses]
    parts = (
        ("kept", [name for each in operators for name in each.keeps]),
        ("computed from history", [name for each in operators for name in each.computed]),
        ("begins now", [*(name for each in operators for name in each.begins), *empty]),
        ("lost", [*(name for each in operators for name in each.gone), *dropped]),
    )
    words = "; ".join(f"{word}: {_first_names(names)}" for word, names in parts if names)
    return (
        f"A savepoint is rewritten, and the job resumes from the rewritten savepoint{f' ({words})' if words else ''}. "
        f"If that fails, the former script resumes from its own savepoint.{f' {known.downtime}' * bool(known.downtime)}"
    )


def _with_numbers(operator: MigratedOperator) -> str:
    return f"{operator.operator} ({operator.stored})" if operator.stored else operator.operator


def _if_restarted(report: Report, known: ReportContext) -> str:
    if report.is_refused:
        return _NO_START
    begins = "; ".join(f"table {table} {begin}" for table, begin in report.sources)
    words = ["All state is discarded, including state that would fit."]
    if known.stored:
        words.append(f"Stored state: {known.stored}")
    if begins:
        words.append(f"Without state, {begins}.")
    if known.backfill_refused:
        words.append(f"A backfill cannot recompute history: {known.backfill_refused.rstrip('.')}.")
    elif known.backfill is not None:
        words.append(
            "A backfill then recomputes the results that a start without state lacks."
            if known.backfill
            else "No backfill recomputes the results that a start without state lacks."
        )
    return " ".join(words)


def if_resumed(report: Report) -> tuple[str, ...]:
    """The result of a start from the savepoint on open-source Flink; empty if the state fits.

    The first line describes the result of the start. Any other line names stored values that would be misread.
    """
    predictable = ENGINE_FACTS[report.engine].endings_known and report.outcome is Outcome.INCOMPATIBLE
    if not predictable or report.is_refused:
        return ()
    if report.findings[0].rule in _ONE_SIDED:
        return ()
    end = ending(report.deciding)
    misread = [line for operator in report.operators for line in operator.resumed]
    lines = misread if end is Consequence.SILENTLY_WRONG else []
    return (CONSEQUENCES[end] + _MORE.get(end, ""), *dict.fromkeys(lines))


def _steps(report: Report, known: ReportContext) -> Iterator[Step]:
    if report.findings[0].rule in _ONE_SIDED:
        yield from _clause(report.findings)
        yield _ONE_SIDED[report.findings[0].rule](report, known)
        return
    if all(finding.rule == "unchanged" for finding in report.deciding) and report.outcome is Outcome.COMPATIBLE:
        yield Step("No deployment is needed. A restart from a savepoint is safe at any time.")
        return
    match report.outcome:
        case Outcome.COMPATIBLE if report.sinks_begin_empty:
            yield Step(_may_begin_empty(report, known))
            yield _resume(report, known, "If so, resume")
            yield _proof(report, known)
            yield _restart(report, known, "If not, start")
            yield _backfill(report, known)
        case Outcome.COMPATIBLE:
            yield _resume(report, known, "Resume")
            yield _proof(report, known)
        case Outcome.PARTIAL:
            yield Step(_question(report, known))
            yield _resume(report, known, "If so, resume")
            yield _restart(report, known, "If not, start")
            yield _backfill(report, known)
        case Outcome.UNKNOWN:
            reasons = {finding.reason for finding in report.deciding if finding.outcome is Outcome.UNKNOWN}
            if report.deployed_is_refused:
                yield Step(_OLD_REFUSED)
            else:
                yield from (Step(text) for reason, text in _TO_READ_ALL.items() if reason in reasons)
            if not reasons & _TO_READ_ALL.keys():
                yield from _steps_for_more_facts(report, known)
                yield Step(
                    _REHEARSE.format(new=report.new_source), brief=_REHEARSE_BRIEFLY.format(new=report.new_source)
                )
            yield from _smaller_changes(report, reasons)
            if not known.approver:
                yield Step(
                    "Or let a person decide (in Airflow, the branch `approve`): resume, or start without state.",
                    brief="",
                )
            yield _restart(report, known, "When in doubt, start")
            yield _backfill(report, known)
        case Outcome.INCOMPATIBLE:
            if report.is_refused:
                yield from _clause(report.deciding)
                yield Step(_MEND)
                return
            keeps = list(_steps_that_keep_state(report, known))
            yield from keeps
            fits = any(operator.outcome.rank < report.outcome.rank for operator in report.operators)
            lead = "Or start" if keeps else "Do not resume. Start"
            yield _restart(report, known, lead, whole=fits)
            yield _backfill(report, known)


def _clause(findings: Iterable[Finding]) -> Iterator[Step]:
    """A step with the missing ON CONFLICT clause, if a finding requires the clause."""
    if any(finding.remedy is Remedy.ON_CONFLICT for finding in findings):
        yield Step(_ADD_CLAUSE, _CLAUSES)


def _steps_that_keep_state(report: Report, known: ReportContext) -> Iterator[Step]:
    """Steps that keep state across an incompatible change; none if no state can be kept."""
    if report.migration_is_unknown:
        yield _ask_what_is_kept(report, known)
    elif report.migration is not None and report.keeps_state:
        yield _migrate_in_airflow(report) if known.migrates else _migrate(report)
    elif any(_moved_sources(report)):
        yield _ask_what_is_kept(report, known)
    if report.migration is None or report.migration.kept is not MigrationExtent.WHOLE:
        yield from _split(report)


def _is_program(report: Report) -> bool:
    return report.new_source.endswith(PROGRAM_SUFFIXES)


def _by_client(report: Report, options: str) -> tuple[str, ...]:
    """Commands that start a Python program with Flink's client; none for other programs."""
    runs = language_of(report.new_source) == "python"
    return (_STOP, f"flink run {options} -py {report.new_source}") if runs else ()


def metrics_from_zero(report: Report) -> tuple[str, ...]:
    """The metrics that start from zero."""
    metrics = (metric for operator in report.operators for metric in operator.metrics)
    return tuple(dict.fromkeys(name for name, fate in metrics if fate is Fate.FROM_ZERO))


def _first_names(names: Iterable[str]) -> str:
    """Format a list of names: the first four distinct names, then the number of remaining names."""
    found = list(dict.fromkeys(names))
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _from_zero(report: Report) -> tuple[str, str]:
    """The first metrics that start from zero if the job is resumed, and the affected results."""
    short = [operator for operator in report.operators if any(fate is Fate.FROM_ZERO for _, fate in operator.metrics)]
    windowed = all(operator.after is not None and operator.after.window for operator in short)
    until = (
        "windows that are open at the restart have incomplete results, later ones are correct"
        if windowed
        else "groups that exist at the restart have incomplete results from then on"
    )
    return _first_names(metrics_from_zero(report)) or "the new metrics", until


def _question(report: Report, known: ReportContext) -> str:
    names, until = _from_zero(report)
    question = f"Decide whether {names} may start from zero ({until})"
    return f"{question}." if known.approver else f"{question}; in Airflow, the branch `approve` asks a person."


def _may_begin_empty(report: Report, known: ReportContext) -> str:
    """The question whether a keyed sink at a new location may begin empty."""
    sinks = " and ".join(report.sinks_begin_empty)
    question = (
        f"Decide whether the new location of {sinks} may lack keys that no longer change, or copy the old rows first"
    )
    return f"{question}." if known.approver else f"{question}; in Airflow the policy sink_begins_empty decides."


def _takes_commands(report: Report, known: ReportContext) -> bool:
    """True if a person runs the Flink commands, because no DAG branch acts after an approval."""
    return ENGINE_FACTS[report.engine].takes_commands and known.takes_commands and not known.approver


def _resume(report: Report, known: ReportContext, lead: str) -> Step:
    brief = f"{lead}: stop the job with a savepoint and start {report.new_source} from it."
    if not _takes_commands(report, known):
        text = f"{lead}: stop the deployment with a savepoint and start {report.new_source} from it "
        return Step(f"{text}(in Airflow the branch `resume`).", brief=brief)
    drain = "--drain" if _is_program(report) else "WITH DRAIN"
    text = f"{lead}: stop the job with a savepoint, never {'with ' if _is_program(report) else ''}{drain}, and start "
    text += f"{report.new_source} from it (in Airflow the branch `resume`)."
    if _is_program(report):
        return Step(text, _by_client(report, "-d -s '<savepoint>'"), "sh", brief)
    return Step(
        text,
        (
            "STOP JOB '<job id>' WITH SAVEPOINT;",
            *(
                f"SET '{recovery_option(option, report.engine_version)}' = '{value}';"
                for option, value in _FROM_SAVEPOINT.items()
            ),
            f"-- then the statements of {report.new_source}",
        ),
        brief=brief,
    )


def _steps_for_more_facts(report: Report, known: ReportContext) -> Iterator[Step]:
    """Steps that give the check more facts: the parallelism, or compiled plans."""
    unknown = [finding for finding in report.deciding if finding.outcome is Outcome.UNKNOWN]
    if any(finding.remedy is Remedy.PARALLELISM_ONE for finding in unknown):
        # A planner does not help here: different ranks or a different order always change the plan.
        yield Step(
            "If both jobs run at parallelism 1, add `--set parallelism.default=1` to the options of this check "
            "and check again."
        )
    elif (
        ENGINE_FACTS[report.engine].compiles_plans
        and not any(source.endswith(PROGRAM_SUFFIXES) for source in (report.old_source, report.new_source))
        and any(map(_graph_may_decide, unknown))
        and not (report.is_planned or report.doubt)
        and not any(finding.rule.startswith("plan-") for finding in report.findings)
    ):
        yield _planner(report, known)


def _graph_may_decide(finding: Finding) -> bool:
    from airflow_flinkcompat.compat.reports.catalogue import BY_CODE  # loads every rule

    rule = BY_CODE.get(finding.rule)
    return rule is not None and graph_may_decide(finding, rule)


def _install(report: Report) -> str:
    return f"flinkcompat planner install {report.engine_version}"


def _where_checked(report: Report) -> str:
    """Clause on the use of the planner in an Airflow check."""
    return f'run `{_install(report)}` on the machine of the check, and repeat the check with planner="auto"'


def _planner(report: Report, known: ReportContext) -> Step:
    words = "Ask Flink's own planner, which starts no job"
    if known.entry:  # the deployed side is not a file
        return Step(f"{words}: {_where_checked(report)}.")
    install = _install(report)
    check = (
        f"flinkcompat check {report.old_source} {report.new_source} \\",
        f"  --engine flink --engine-version {report.engine_version} --planner always",
    )
    return Step(
        f'{words}, with the same options as this check (in Airflow: planner="always").',
        (install, *check) if report.ground else check,
        "sh",
    )


def _proof(report: Report, known: ReportContext) -> Step:
    where = " (GET /jobs/<job id>/checkpoints: latest.restored)" if _takes_commands(report, known) else ""
    return Step(
        f"RUNNING is not proof: verify that the job restored that savepoint{where} and completed a checkpoint.",
        brief="",
    )


def _restart(report: Report, known: ReportContext, lead: str, *, whole: bool = False) -> Step:
    begins = "; ".join(f"{table} {begin}" for table, begin in report.sources)
    brief = f"{lead} {report.new_source} without state.{f' Then {begins}.' if begins else ''}"
    words = (
        f"{lead} {report.new_source} without state. First stop the job with a savepoint, so that you can return to it "
        f"(in Airflow the branch `restart`)."
    )
    if whole:
        words += " State that would fit also starts from zero, because a job restores a savepoint as a whole."
    words += f" A start without state ignores the source positions in the savepoint{f': {begins}' if begins else ''}."
    if known.chooses_offsets and not _is_program(report):
        words += " To start at different positions, set source_offsets (as-stored, earliest, latest or a time)."
    if not _takes_commands(report, known):
        return Step(words, brief=brief)
    if _is_program(report):
        return Step(words, _by_client(report, "-d"), "sh", brief)
    return Step(
        words,
        (
            "STOP JOB '<job id>' WITH SAVEPOINT;",
            f"RESET '{recovery_option(RECOVERY_PATH, report.engine_version)}';",
            f"-- then the statements of {report.new_source}",
        ),
        brief=brief,
    )


def _backfill(report: Report, known: ReportContext) -> Step:
    if known.backfill_refused:
        why = known.backfill_refused.rstrip(".")
        words = f"A backfill of {report.new_source} cannot recompute history"
        return Step(f"{words}: {why}.", brief=f"{words}.")
    if known.backfill is True:
        return Step("Then the backfill of this deployment recomputes the missing results.")
    options = "--set, --var and --catalog" if _is_program(report) else "--set and --catalog"
    lead = "Then backfill the missing results"
    if known.backfill is False:
        lead = "No backfill follows a restart. Manually backfill the missing results"
    return Step(
        f"{lead}, with the same {options} as this check.",
        (
            f"flinkcompat backfill {report.new_source} \\",
            "  --from '<begin of history>' --to '<time of the switch>'",
        ),
        "sh",
        f"{lead}: `flinkcompat backfill {report.new_source} --from … --to …`.",
    )


def _migrate(report: Report) -> Step:
    versions = _version_options(report)
    return Step(
        "Do not resume. Keep the state: stop the job with a canonical savepoint, rewrite the savepoint with the same "
        f"--set and --catalog as this check, and start {report.new_source} from the result.",
        (
            f"flinkcompat migrate apply {report.old_source} {report.new_source}{_restart_options(report)} \\",
            *((f" {versions} --accept unseen \\",) if versions else ()),
            "  --savepoint '<its folder>' --to '<folder to write>'",
        ),
        "sh",
    )


def _migrate_in_airflow(report: Report) -> Step:
    moved = _first_names(_moved_sources(report))
    return Step(f"{_MIGRATE_TASK}{_ACCEPT_MOVED.format(moved)}" if moved else _MIGRATE_TASK)


def _smaller_changes(report: Report, reasons: Set[Reason | None]) -> Iterator[Step]:
    """Steps that split a change. The finding on an upgrade of Flink has its own advice."""
    of_flink = ENGINE_FACTS[report.engine].compiles_plans
    for reason, text in _TO_SPLIT.items():
        if reason in reasons and not (of_flink and reason is Reason.VERSION):
            yield Step(text)


def _split(report: Report) -> Iterator[Step]:
    """Step that deploys statements with harmless changes before the worst changes."""
    outcomes = dict(report.sinks)
    changed = {each.sink for each in report.findings if each.sink}
    worst = [sink for sink in outcomes if sink in changed and outcomes[sink] is report.outcome]
    rest = [sink for sink in outcomes if sink in changed and sink not in worst]
    if worst and rest:
        parts = f"the statements for {_first_names(rest)} first, then those for {_first_names(worst)}"
        yield Step(f"Or split the change, and check and deploy {parts}.")


def _ask_what_is_kept(report: Report, known: ReportContext) -> Step:
    """Step that asks Flink's planner for the state that a migration keeps."""
    words = (
        "Do not resume. A rewritten savepoint may keep some of the state. To find out, ask Flink's planner, which "
        "starts no job"
    )
    if known.entry:  # the deployed side is not a file
        moved = _first_names(_moved_sources(report))
        anew = _ACCEPT_MOVED.format(moved) if moved else ""
        return Step(f"{words}: {_where_checked(report)}.{anew}")
    anew = _restart_options(report)
    more = "; --restart-source restarts a moved source and keeps all other state" if anew else ""
    return Step(
        f"{words}{more}.",
        (f"flinkcompat migrate plan {report.old_source} {report.new_source}{_version_options(report)}{anew}",),
        "sh",
    )


def _moved_sources(report: Report) -> Iterator[str]:
    """Tables whose sources now read different data. These sources can restart while other state is kept."""
    for finding in report.deciding:
        if finding.remedy is Remedy.RESTART_SOURCE:
            yield from finding.remedy_tables


def _restart_options(report: Report) -> str:
    """Options of ``flinkcompat migrate`` that restart moved sources."""
    return "".join(f" --restart-source {table}" for table in dict.fromkeys(_moved_sources(report)))


def _version_options(report: Report) -> str:
    """Options of ``flinkcompat migrate`` with both versions; "" if they are equal or unknown."""
    old, new = report.old_version, report.engine_version
    same = not old or is_of_line(old, new)
    return "" if same else f" --old-engine-version {old} --engine-version {new}"


def _first_start(report: Report, _known: ReportContext) -> Step:
    begins = "; ".join(f"{table} {begin}" for table, begin in report.sources)
    start = "Start" if report.outcome is Outcome.COMPATIBLE else "Fix the findings below first. Then start"
    return Step(f"{start} {report.new_source} without state{': ' if begins else '.'}{begins}{'.' if begins else ''}")


def _removal(report: Report, known: ReportContext) -> Step:
    words = (
        f"Stop the job of {report.old_source} with a savepoint, so that you can restore the job (`flinkcompat ledger "
        f"list` shows the job of each deployment). Then remove the deployment from the tool that deploys it. If the "
        f"file was only moved, check with the new file instead."
    )
    if not _takes_commands(report, known):
        return Step(words)
    if report.old_source.endswith(PROGRAM_SUFFIXES):
        return Step(words, (_STOP,), "sh")
    return Step(words, ("STOP JOB '<job id>' WITH SAVEPOINT;",))


_ONE_SIDED = {single_script.ADDED.code: _first_start, single_script.REMOVED.code: _removal}
