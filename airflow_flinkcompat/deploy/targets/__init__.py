"""The places that run Flink jobs, a module each, found by name.

A name is an entry point of the group ``flinkcompat.targets``, in this package's metadata or in that of another one. It
points to a class with the class method ``connect``, which receives an ``Access``.
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
    """Address of a target and access to it.

    ``address`` returns the URL of a part (``gateway``, ``jobmanager``), or raises. ``settings``: credentials,
    certificates, proxy and other settings of the target, secrets included; None: the environment's. ``place``
    (``connection 'flink_default'``) is for messages. ``lookup`` returns the value of a placeholder; None: no
    connections are known. ``on_secret`` receives every secret of the settings before it is used. ``hook`` returns
    Airflow's hook of another connection by its id, for platforms with a provider of their own (``kubernetes``,
    ``aws``); None: outside of Airflow.
    """

    address: Callable[[str], str]
    settings: Mapping[str, Any] | None = None
    place: str = "the environment"
    lookup: Lookup | None = None
    on_secret: Callable[[str], None] = lambda _: None
    hook: Callable[[str], Any] | None = None


@dataclass(frozen=True)
class TargetLocation:
    """Everything that a process needs to open a target, as JSON values.

    ``target``: its name. ``addresses``: the URLs of its parts (``gateway``, ``jobmanager``). ``settings`` as in
    ``Access``, secrets included.
    """

    target: str = DEFAULT
    addresses: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] | None = field(default=None, repr=False)

    def open(self, lookup: Lookup | None = None) -> OpenTarget:
        """Open the target.

        Args:
            lookup: Returns the value of a placeholder; None: no connections are known.

        Returns:
            The target, to be used in a ``with``.

        Raises:
            DeployError: No target has this name, an address is missing, or a setting is wrong.
        """
        place = "the environment" if self.settings is None else "the connection"
        return target_class(self.target).connect(Access(self._address, self.settings, place, lookup))

    def _address(self, which: str) -> str:
        if which not in self.addresses:
            known = which in ("gateway", "jobmanager")
            raise DeployError(
                f"the target {self.target!r} is reached by its {which}, whose address is missing: "
                + (f"add --{which} URL" if known else "no command has an option for it")
            )
        return self.addresses[which]


class OpenTarget(Protocol):
    """A target that is closed at the end of a ``with``."""

    def __enter__(self) -> Target: ...
    def __exit__(self, *error: object) -> None: ...


class TargetClass(Protocol):
    """Class to which an entry point of the group refers."""

    def connect(self, access: Access) -> OpenTarget:
        """Open the target.

        Args:
            access: Address of the target and access to it.

        Returns:
            The target, to be used in a ``with``.

        Raises:
            DeployError: An address is missing, or a setting is wrong.
        """


@cache
def _found() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> tuple[str, ...]:
    """The targets that are installed.

    Returns:
        Their names, sorted.
    """
    return tuple(sorted(_found()))


def target_class(name: str) -> TargetClass:
    """The target of this name.

    Args:
        name: An entry point of the group ``flinkcompat.targets``.

    Returns:
        The class.

    Raises:
        DeployError: No target has this name (the message lists the installed ones), or it cannot be imported.
    """
    point = _found().get(name)
    if point is None:
        there = ", ".join(names()) or "none; install this package instead of only putting it on the path"
        raise DeployError(f"there is no target {name!r}; installed targets: {there}")
    try:
        found: TargetClass = point.load()
    except ImportError as error:
        raise DeployError(f"the target {name!r} ({point.value}) cannot be imported: {error}") from None
    return found
