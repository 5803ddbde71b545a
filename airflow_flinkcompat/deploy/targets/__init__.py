"""The targets that run Flink jobs, found by name.

A name is an entry point of the group ``flinkcompat.targets``, in the metadata of any installed package. The entry point
refers to a class with the class method ``connect``, which receives an ``Access``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol

from airflow_flinkcompat.deploy.errors import DeployError

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.target import Target
    from airflow_flinkcompat.secrets.placeholders import Lookup

__all__ = ["DEFAULT", "GROUP", "Access", "OpenTarget", "TargetLocation", "TargetClass", "names", "target_class"]

GROUP = "flinkcompat.targets"
DEFAULT = "sql-gateway"


@dataclass(frozen=True)
class Access:
    """Addresses and access settings of a target.

    ``address`` returns the URL of a part (``gateway``, ``jobmanager``), or raises an error. ``settings`` contains
    credentials, certificates, proxy and other settings of the target, including secrets. If ``settings`` is None,
    environment variables contain the settings. ``place`` names the source of the settings in messages, such as
    ``connection 'flink_default'``. ``lookup`` returns the value of a placeholder. If ``lookup`` is None, no
    connections are known. ``on_secret`` receives each secret in the settings before its use. ``hook`` returns
    Airflow's hook of a connection id, for platforms with a separate provider (``kubernetes``, ``aws``). ``hook`` is
    None outside Airflow.
    """

    address: Callable[[str], str]
    settings: Mapping[str, Any] | None = None
    place: str = "the environment"
    lookup: Lookup | None = None
    on_secret: Callable[[str], None] = lambda _: None
    hook: Callable[[str], Any] | None = None


@dataclass(frozen=True)
class TargetLocation:
    """Everything that a process requires to open a target, as JSON values.

    ``target`` is the target's name. ``addresses`` contains the URLs of the target's parts (``gateway``,
    ``jobmanager``). ``settings`` has the same content as in ``Access``, including secrets. ``former`` is the location
    of the cluster from which jobs move, as JSON values, or None if no jobs move (``two_lines.open_target`` opens both).
    """

    target: str = DEFAULT
    addresses: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] | None = field(default=None, repr=False)
    former: Mapping[str, Any] | None = field(default=None, repr=False)

    def open(self, lookup: Lookup | None = None) -> OpenTarget:
        """Open the target.

        Args:
            lookup: Returns the value of a placeholder. If None, no connections are known.

        Returns:
            The target, for use in a ``with`` statement.

        Raises:
            DeployError: No target has this name, an address is missing, or a setting is wrong.
        """
        place = "the environment" if self.settings is None else "the connection"
        return target_class(self.target).connect(Access(self._address, self.settings, place, lookup))

    def _address(self, which: str) -> str:
        if which not in self.addresses:
            known = which in ("gateway", "jobmanager")
            raise DeployError(
                f"the target {self.target!r} requires the address of its {which}: "
                + (f"add --{which} URL" if known else "no command has an option for this address")
            )
        return self.addresses[which]


class OpenTarget(Protocol):
    """A target that the end of a ``with`` statement closes."""

    def __enter__(self) -> Target: ...
    def __exit__(self, *error: object) -> None: ...


class TargetClass(Protocol):
    """Class to which an entry point of the group ``flinkcompat.targets`` refers."""

    def connect(self, access: Access) -> OpenTarget:
        """Open the target.

        Args:
            access: Addresses and access settings of the target.

        Returns:
            The target, for use in a ``with`` statement.

        Raises:
            DeployError: An address is missing, or a setting is wrong.
        """


@cache
def _found() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> tuple[str, ...]:
    """The installed targets.

    Returns:
        The sorted names of the targets.
    """
    return tuple(sorted(_found()))


def target_class(name: str) -> TargetClass:
    """The class of the target with this name.

    Args:
        name: An entry point of the group ``flinkcompat.targets``.

    Returns:
        The class.

    Raises:
        DeployError: No target has this name, or the target cannot be imported. The error message lists the installed
            targets.
    """
    point = _found().get(name)
    if point is None:
        there = (
            ", ".join(names()) or "none. Install this package with pip; it is not enough to add it to the Python path"
        )
        raise DeployError(f"there is no target {name!r}. Installed targets: {there}")
    try:
        found: TargetClass = point.load()
    except ImportError as error:
        raise DeployError(f"the target {name!r} ({point.value}) cannot be imported: {error}") from None
    return found
