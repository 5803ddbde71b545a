"""Obstacles that prevent the deployment of a proposed side, even if a person approves the change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.connectors.flink_options import current_name, setting_fault
from airflow_flinkcompat.model.engine import ENGINE_FACTS, ENGINES
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.detect import Secret, are_of_namespace, variables_alone
from airflow_flinkcompat.secrets.placeholders import (
    AnyPlaceholder,
    EnvPlaceholder,
    env_in_deployment,
    placeholder_faults,
    placeholders_in_script,
)
from airflow_flinkcompat.secrets.redact import mask_option
from airflow_flinkcompat.sql import Statement
from airflow_flinkcompat.sql.nodes import HiveTable, SetOption
from airflow_flinkcompat.sql.refused import refused
from airflow_flinkcompat.sql.script import span_of

UNENDED = "a ; is missing before this statement, so Flink can parse neither this nor the previous statement"
_DIALECT = "table.sql-dialect"
_REMEDIES = {
    "sql": "store it in an Airflow connection and replace it with ${conn.<connection id>.password}",
    "python": "read it from the environment with os.environ['NAME']",
    "table": "take it from the environment",
}


class ObstacleKind(StrEnum):
    """Kind of an obstacle. ``VARIABLE`` is a placeholder of a different tool instead of a secret."""

    SYNTAX = "syntax"
    SETTING = "setting"
    SECRET = "secret"
    VARIABLE = "variable"
    PLACEHOLDER = "placeholder"


UNREADABLE = (ObstacleKind.SYNTAX, ObstacleKind.SETTING)
"""Kinds of obstacles for which Flink refuses the script text."""


@dataclass(frozen=True)
class Obstacle:
    """A reason why a side cannot be deployed. ``message`` names the place and the remedy, never a secret."""

    kind: ObstacleKind
    message: str

    def __str__(self) -> str:
        return self.message


def obstacles(side: Side) -> tuple[Obstacle, ...]:
    """Find the obstacles to the deployment of a side.

    Obstacles are syntax errors, settings with values that Flink refuses, literal secrets, and placeholders that a
    deployment cannot fill in. A statement that only this package's grammar cannot parse is no obstacle, because Flink
    may accept it. A statement in a SQL dialect other than Flink's default is no obstacle either.
    """
    return (*_errors_of_syntax(side), *_settings(side), *_secrets(side), *_placeholders(side))


def bad_input(side: Side, engine: str | None, *, deployed: bool = False) -> list[str]:
    """The obstacles that prevent a verdict on a side: on ``engine``, or on any engine if it is None."""
    sides = (side.on(name) for name in ([engine] if engine else ENGINES))
    kinds = (ObstacleKind.SYNTAX,) if deployed else UNREADABLE
    return list(dict.fromkeys(str(each) for judged in sides for each in obstacles(judged) if each.kind in kinds))


def _errors_of_syntax(side: Side) -> Iterator[Obstacle]:
    statements = side.parsed.statements
    # A program may never run the SQL that it contains.
    if side.language != "sql" or side.settings.get(_DIALECT, "default").lower() != "default":
        return
    line = ENGINE_FACTS[side.engine].flink_line(side.version)
    for statement in statements:
        if _other_dialect(statement):
            return
        if isinstance(statement.tree, HiveTable):
            remedy = f"put SET '{_DIALECT}' = 'hive' before it, or declare the table in Flink's default dialect"
            yield Obstacle(
                ObstacleKind.SYNTAX, f"{statement.span}: only Hive's dialect accepts this statement; {remedy}"
            )
        for span, fault in refused(statement, line) if line is not None else ():
            yield Obstacle(ObstacleKind.SYNTAX, f"{span}: {fault}")
        if statement.malformed:
            yield Obstacle(ObstacleKind.SYNTAX, statement.error or "")
        if statement.unended is not None:
            yield Obstacle(ObstacleKind.SYNTAX, f"{statement.unended}: {UNENDED}; end the previous statement with a ;")


def _settings(side: Side) -> Iterator[Obstacle]:
    """Settings that Flink refuses, unless no statement uses them or the deployed side already has them."""
    places = dict.fromkeys(side.settings.items(), f"{side.source}: the setting")
    for statement in side.parsed.statements:
        tree = statement.tree
        if isinstance(tree, SetOption) and tree.this is not None:
            places[str(tree.this.name), str(tree.expression.name)] = f"{span_of(tree.expression, statement)}:"
    faults = _refused_settings(side, places)
    running = _refused_settings(side.beside, faults) if faults and side.beside is not None else {}
    for each, fault in faults.items():
        if each not in running:
            yield Obstacle(ObstacleKind.SETTING, f"{places[each]} {fault}")


def _refused_settings(side: Side, asked: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The reason for each of these settings that the side uses and Flink refuses."""
    line, asked, own = side.flink_line, tuple(asked), ENGINE_FACTS[side.engine].flink_lines is None
    if line is None or not any(setting_fault(*each, line, own=own) for each in asked):
        return {}
    program = side.program
    used = {each for pipeline in program.pipelines for each in pipeline.settings} | set(program.settings)
    others = {current_name(key): text for key, text in program.settings}
    found = {each: setting_fault(*each, line, others, own=own) for each in asked if each in used}
    return {each: fault for each, fault in found.items() if fault}


def _other_dialect(statement: Statement) -> bool:
    tree = statement.tree
    if not isinstance(tree, SetOption) or tree.this is None:
        return False
    key, value = str(tree.this.name), str(tree.expression.name)
    return key == _DIALECT and value.lower() != "default"


def _placeholders(side: Side) -> Iterator[Obstacle]:
    if side.language == "sql":
        for place, why in placeholder_faults(side.script, side.source):
            yield Obstacle(ObstacleKind.PLACEHOLDER, f"{place}: {why}")
        yield from _of_environment(placeholders_in_script(side.script), side.source)
    for key, value in side.settings.items():
        yield from _of_environment(placeholders(value), f"{side.source}: the setting {key!r}")


def _of_environment(asked: Iterable[AnyPlaceholder], where: str) -> Iterator[Obstacle]:
    for each in asked:
        if isinstance(each, EnvPlaceholder):
            yield Obstacle(ObstacleKind.PLACEHOLDER, f"{where}: {env_in_deployment(each)}")


def _secrets(side: Side) -> Iterator[Obstacle]:
    for secret in exposed_secrets(side):
        fault = unfilled_message(secret.variables) or "is a secret in plain text"
        kind = ObstacleKind.VARIABLE if secret.variables else ObstacleKind.SECRET
        yield Obstacle(kind, f"{secret.span}: {secret.key} {fault}; {_REMEDIES[side.language]}")
    for key, value in side.settings.items():
        variables = variables_alone(key, value)
        if mask_option(key, value) != value and not _is_filled(variables, side):
            fault = unfilled_message(variables) or "contains a secret in plain text"
            kind = ObstacleKind.VARIABLE if variables else ObstacleKind.SECRET
            yield Obstacle(kind, f"{side.source}: the setting {key!r} {fault}; {_REMEDIES['sql']}")


def exposed_secrets(side: Side) -> Iterator[Secret]:
    """The literal secrets of a script or program, and its placeholders that no tool fills in."""
    yield from (secret for secret in side.secrets if not _is_filled(secret.variables, side))


def _is_filled(variables: tuple[str, ...], side: Side) -> bool:
    """True if the deploying tool or the engine fills in these variables."""
    if variables and side.filled_elsewhere:
        return True
    return ENGINE_FACTS[side.engine].fills_variables and are_of_namespace(variables)


def unfilled_message(variables: tuple[str, ...]) -> str:
    """Message about a value with placeholders that no tool fills in; "" if there are none."""
    if len(variables) == 1:
        return f"needs {variables[0]}, a placeholder that no tool fills in"
    return f"needs {' and '.join(variables)}, placeholders that no tool fills in" if variables else ""
