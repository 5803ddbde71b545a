"""No module imports one that leads back to it, lazily or for its types alone; no package one beside it that does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import grimp
import pytest

PACKAGE = "airflow_flinkcompat"
Graph = Mapping[str, frozenset[str]]


@pytest.fixture(scope="module")
def imports() -> Graph:
    """The modules by name, with those of the package that they import."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=False, cache_dir=None)
    return {name: frozenset(graph.find_modules_directly_imported_by(name)) for name in graph.modules}


def circles(graph: Graph) -> Iterator[frozenset[str]]:
    """The largest sets of several names each of which leads to all others.

    Args:
        graph: Every name with those that it leads to directly.
    """
    reached = {name: _reached(graph, name) for name in graph}
    found = {frozenset({name, *(other for other in reached[name] if name in reached[other])}) for name in graph}
    yield from (circle for circle in found if len(circle) > 1)


def _reached(graph: Graph, name: str) -> frozenset[str]:
    seen: set[str] = set()
    pending = [*graph[name]]
    while pending:
        one = pending.pop()
        if one not in seen:
            seen.add(one)
            pending += graph[one]
    return frozenset(seen)


def siblings(graph: Graph, package: str) -> Graph:
    """What lies directly in a package, each with those beside it that anything in it imports."""

    def child(name: str) -> str:
        return ".".join(name.split(".")[: package.count(".") + 2]) if name.startswith(f"{package}.") else ""

    found: dict[str, set[str]] = {child(name): set() for name in graph if child(name)}
    for name, imported in graph.items():
        if child(name):
            found[child(name)] |= {child(other) for other in imported} - {"", child(name)}
    return {name: frozenset(others) for name, others in found.items()}


def test_no_modules_import_each_other_in_a_circle(imports: Graph) -> None:
    assert not list(circles(imports))


def test_no_packages_import_each_other_in_a_circle(imports: Graph) -> None:
    packages = sorted({name.rpartition(".")[0] for name in imports} - {""})
    assert len(packages) > 20
    found = {circle for package in packages for circle in circles(siblings(imports, package))}
    assert not found


def test_a_circle_is_seen() -> None:
    graph = {"a": {"b"}, "b": {"c.x"}, "c.x": {"a"}, "c": set(), "c.y": {"d"}, "d": {"c.x"}, "e": {"a"}}
    frozen = {f"p.{name}": frozenset(f"p.{other}" for other in others) for name, others in graph.items()}
    assert set(circles(frozen)) == {frozenset({"p.a", "p.b", "p.c.x"})}
    assert set(circles(siblings({"p": frozenset({"p.a"}), **frozen}, "p"))) == {frozenset({"p.a", "p.b", "p.c", "p.d"})}
