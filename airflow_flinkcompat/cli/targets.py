"""Options by which a command reaches a target, and the target they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.targets import TargetLocation


def target_option(default: str | None, *, show_default: bool | str = True) -> Callable[[Callable[..., Any]], Any]:
    """The option ``--target``; what is installed is known only where a command asks."""
    return click.option(
        "--target",
        metavar="NAME",
        default=default,
        show_default=show_default,
        help="Where jobs run: sql-gateway, jobmanager, or one that another package brings.",
    )


def location(target: str, gateway: str | None, jobmanager: str | None) -> TargetLocation:
    """How the target of this name is opened, credentials being the environment's."""
    from airflow_flinkcompat.deploy.targets import TargetLocation

    given = {"gateway": gateway, "jobmanager": jobmanager}
    return TargetLocation(target, {which: url for which, url in given.items() if url})
