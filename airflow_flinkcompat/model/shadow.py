"""Choices of a deployment about its shadow runs, for DAGs, the project file and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

from airflow_flinkcompat.model.durations import parse_duration
from airflow_flinkcompat.model.job import InputError
from airflow_flinkcompat.model.options import PROGRAM_SUFFIXES
from airflow_flinkcompat.model.outcome import Outcome
from airflow_flinkcompat.model.text import misspelling

ResumeMode = Literal["savepoint", "shadow"]
"""Start of a changed job: directly from a savepoint, or after a shadow run."""
RESUME_MODES: tuple[ResumeMode, ...] = get_args(ResumeMode)
OnExpected = Literal["ask", "switch"]
"""Reaction to rows that differ only in expected columns."""
ON_EXPECTED: tuple[OnExpected, ...] = get_args(OnExpected)
SHADOWED_OUTCOMES = ("compatible", "partial", "unknown")
"""Outcomes of a check that lead to a shadow run by default."""
CHANGED = "changed"
"""Name in place of a column, for all columns that the change names."""
_FROM_STATE = ("resume", "approve")
"""Branches of a check that may start the new script from the unchanged savepoint."""
_ONLY_OF_COMMAND = "is an option of flinkcompat shadow, not a key of this table; omit it"
_OF_COMMAND = {
    "for": "is unknown; did you mean duration?",
    **dict.fromkeys(("rows", "migrate", "accept"), _ONLY_OF_COMMAND),
}
"""Options of the command that are no keys, with the words about them."""


@dataclass(frozen=True)
class ShadowPolicy:
    """Choices about shadow runs. Raises ValueError, with the name of the choice, for a wrong value.

    Attributes:
        duration: Time whose rows both scripts read, such as 10min.
        timeout: Longest time in which each script must read these rows, such as 1h.
        expect: Columns that may differ, as ``column`` or ``sink.column``.
        savepoint_directory: Folder that the cluster and this machine share; None for the cluster's savepoint folder.
        plan_dir: Folder for compiled plans, which a SQL Gateway on another machine shares with this machine.
        until_rows: Number of rows of all sources after which the duration ends early; None: it never ends early.
        from_earliest: True to compare the stored state, too, by runs over all rows of the sources.
        when: Outcomes of the check that are followed by a shadow run.
        on_expected: Reaction to rows that differ only in expected columns.
    """

    duration: str = "5min"
    timeout: str = "30min"
    expect: Sequence[str] = ()
    savepoint_directory: str | None = None
    plan_dir: str | None = None
    until_rows: int | None = None
    from_earliest: bool = False
    when: Sequence[str] = SHADOWED_OUTCOMES
    on_expected: str = "ask"

    def __post_init__(self) -> None:
        for name in ("duration", "timeout"):
            try:
                parse_duration(getattr(self, name))
            except InputError as error:
                raise ValueError(f"{name}: {error}") from None
        for name in ("expect", "when"):
            value: object = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(e, str) for e in value):
                raise ValueError(f"{name}: a list of texts is needed")
        if unknown := [each for each in self.when if each not in tuple(Outcome)]:
            raise ValueError(f"when: {unknown[0]!r} is not one of {', '.join(Outcome)}")
        if self.on_expected not in ON_EXPECTED:
            raise ValueError(f"on_expected: {self.on_expected!r} is not one of {', '.join(ON_EXPECTED)}")
        if CHANGED in self.expect and self.on_expected == "switch":
            raise ValueError(
                "expect: 'changed' is for values that a person has looked at; list the columns, or use on_expected = "
                "'ask'"
            )
        for name in ("savepoint_directory", "plan_dir"):
            if not isinstance(getattr(self, name), str | None):
                raise ValueError(f"{name}: a text is needed")

        if self.until_rows is not None and (type(self.until_rows) is not int or self.until_rows < 1):
            raise ValueError(f"until_rows: {self.until_rows!r} is not a number of rows; write 1 or more")
        if not isinstance(self.from_earliest, bool):
            raise ValueError("from_earliest: true or false is needed")

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """Read the choices from a table, which may contain other keys. Raises ValueError."""
        return cls(**{each.name: table[each.name] for each in fields(cls) if each.name in table})

    @property
    def seconds(self) -> float:
        """Seconds between both savepoints of the live job."""
        return parse_duration(self.duration).total_seconds()

    @property
    def run_seconds(self) -> float:
        """Seconds in which each script must read the rows."""
        return parse_duration(self.timeout).total_seconds()

    def why_not(self, outcome: str | None, branch: str) -> str:
        """Reason why no shadow run follows a check; "" if one follows.

        Args:
            outcome: The outcome of the check; None if nothing is deployed.
            branch: The branch that the check chose.

        Returns:
            The reason, without a final period.
        """
        if branch not in _FROM_STATE:
            return f"the branch {branch} does not start the new script from the live job's state"
        if outcome not in tuple(map(str, self.when)):
            return f"the change is {outcome}, and shadow runs are for {', '.join(self.when) or 'no'} changes"
        return ""

    def branch_after(self, finding: str, branch: str) -> str:
        """The branch after a shadow run.

        Args:
            finding: The finding of the shadow run.
            branch: The branch that the check chose.

        Returns:
            The same branch if the rows agree, else ``approve``.
        """
        agreeing = ("equal", "differs as expected") if self.on_expected == "switch" else ("equal",)
        return branch if finding in agreeing else "approve"


def shadow_policy(table: Mapping[str, Any]) -> ShadowPolicy | None:
    """Read the shadow runs of a deployment from its table.

    Args:
        table: The table of the deployment, with the keys ``start_mode`` and ``shadow``.

    Returns:
        The choices; None if the deployment makes no shadow runs.

    Raises:
        ValueError: A value is wrong, or the deployment cannot make shadow runs. The message begins with the key.
    """
    mode, choices = table.get("start_mode", RESUME_MODES[0]), table.get("shadow", {})
    if mode not in RESUME_MODES:
        raise ValueError(f"start_mode: {mode!r} is not one of {', '.join(RESUME_MODES)}")
    if not isinstance(choices, Mapping):
        raise ValueError("shadow: a table is needed")
    known = [each.name for each in fields(ShadowPolicy)]
    for key in choices:  # other keys are arguments that only the Airflow task knows
        if words := _OF_COMMAND.get(key) or misspelling(key, known):
            raise ValueError(f"shadow.{key}: {words}")
    try:
        policy = ShadowPolicy.of(choices)
    except ValueError as error:
        raise ValueError(f"shadow.{error}") from None
    if mode != "shadow":
        return None
    if str(table.get("script", "")).endswith(PROGRAM_SUFFIXES):
        raise ValueError("start_mode: shadow runs are for SQL scripts, not for programs; omit start_mode")
    if table.get("plan_only"):
        raise ValueError("start_mode: plan_only starts no job next to the live one; omit plan_only or start_mode")
    return policy
