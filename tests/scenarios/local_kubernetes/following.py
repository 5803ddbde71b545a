"""Every state that a custom resource goes through while an operator works on it, as the API server tells them.

A record of a step holds what came of it. Who asks while the operator is at work reads what lies between: a status that
still is of the spec before, a stop whose savepoint is not there yet.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kubernetes import client, watch

from dev.local_kubernetes.cluster import GROUP, GROUP_VERSION, NAMESPACE, LocalKube

# Of what changes without anything having happened: each look of the operator writes its time, and counts checkpoints.
_PASSING = frozenset({"resourceVersion", "updateTime", "reconciliationTimestamp", "checkpointInfo", "managedFields"})
_WATCH_SECONDS = 1


@contextmanager
def followed(kube: LocalKube, plural: str) -> Iterator[list[dict[str, Any]]]:
    """Follow the resources of a kind, ``flinksessionjobs`` say, for as long as the ``with`` block lasts.

    Args:
        kube: The Kubernetes.
        plural: The kind.

    Yields:
        The list to which each state is added in its order, :func:`new_states` of them alone.
    """
    found: list[dict[str, Any]] = []
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(kube, plural, found, over), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _follow(kube: LocalKube, plural: str, found: list[dict[str, Any]], over: threading.Event) -> None:
    listing = client.CustomObjectsApi(kube.api).list_namespaced_custom_object
    version = "0"
    while not over.is_set():
        given = {"resource_version": version, "timeout_seconds": _WATCH_SECONDS}
        for event in watch.Watch().stream(listing, GROUP, GROUP_VERSION, NAMESPACE, plural, **given):
            seen: dict[str, Any] = event["object"]
            version = seen["metadata"]["resourceVersion"]
            found[:] = new_states([*found, seen])


def new_states(states: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of states in their order those that a resource was not in before: each try of the operator ends as the first."""
    found: dict[str, dict[str, Any]] = {}
    for state in states:
        found.setdefault(json.dumps(without(state, _PASSING), sort_keys=True), state)
    return list(found.values())


def without(value: Any, keys: Collection[str]) -> Any:
    """A JSON value without what stands under these keys, wherever that is."""
    if isinstance(value, Mapping):
        return {key: without(part, keys) for key, part in value.items() if key not in keys}
    return [without(part, keys) for part in value] if isinstance(value, list) else value
