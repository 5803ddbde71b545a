"""The template of a state migration: taken of the new script once, and kept for the next time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from airflow_flinkcompat.cli.targets import Planner, location
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.restore_test import Cluster
    from airflow_flinkcompat.deploy.targets import TargetLocation

_REMEDY = "or take one by hand and name it: --template"
_MAX_PARALLELISM = "pipeline.max-parallelism"
_TARGET = "sql-gateway"


def place_of(planner: Planner) -> TargetLocation | None:
    """The target that takes templates; None if neither a target nor a gateway is named."""
    if planner.target is None and planner.gateway is None:
        return None
    if planner.target is None and planner.jobmanager is None:
        raise InputError(f"name --jobmanager too, where the template is taken, {_REMEDY}")
    return location(planner.target or _TARGET, planner.gateway, planner.jobmanager)


def template_of(new: Side, savepoint: str | None, place: TargetLocation | None, jars: Sequence[Path] = ()) -> str:
    """A savepoint that the new script took before it had read anything, from the cache if it is there."""
    from airflow_flinkcompat.deploy import DeployError
    from airflow_flinkcompat.deploy.restore_test import kept_template, options_of

    side = replace(
        new, script=f"{new.catalog.strip().rstrip(';')};\n{new.script}" if new.catalog.strip() else new.script
    )
    if place is None and savepoint is not None:
        side = replace(side, settings={**_limit(savepoint), **side.settings})
    try:
        with ExitStack() as stack:
            cluster = None if place is None else stack.enter_context(_opened(place, ()))
            folder = kept_template(
                side,
                place,
                {f"jar {jar.name}": str(jar.stat().st_size) for jar in jars}
                if cluster is None
                else options_of(cluster),
                lambda: cluster or stack.enter_context(_opened(None, jars)),
                lambda line: click.echo(mask_secrets(line), err=True),
            )
            return str(folder)
    except DeployError as error:
        raise InputError(f"no template could be taken: {error}; {_REMEDY}") from None


@contextmanager
def _opened(place: TargetLocation | None, jars: Sequence[Path]) -> Iterator[Cluster]:
    from airflow_flinkcompat.deploy.restore_test import Cluster
    from airflow_flinkcompat.local_flink import local_cluster

    if place is None:
        with local_cluster(extra_jars=jars) as started:
            yield started
    else:
        with place.open() as opened:
            yield Cluster(opened, place)


def _limit(savepoint: str) -> Mapping[str, str]:
    """The setting for the maximum parallelism of a savepoint, which Flink keeps unless it is set."""
    from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
    from airflow_flinkcompat.savepoint.store import read_metadata

    try:
        found = {each.max_parallelism for each in read_metadata(savepoint).operators if each.has_state}
    except SavepointUnreadable as error:
        raise InputError(str(error)) from None
    return {_MAX_PARALLELISM: str(*found)} if len(found) == 1 else {}
