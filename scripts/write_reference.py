"""Write the generated parts of docs/reference, between two markers on each page, from the package.

``python -m scripts.write_reference`` writes the pages. A marker ``<!-- NAME -->`` names a function, class or module,
a group of commands (``flinkcompat``), the keys of the project file (``keys``), the table of jars (``jars``), the
table of connector options (``connectors``) or the tables of upgrades (``upgrades``). With ``<!-- NAME members -->``,
the members are included.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import griffe

from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.compat.evidence import RIGHT
from airflow_flinkcompat.connectors.artifacts import ARTIFACTS, LINES, artifacts, counts, stored
from airflow_flinkcompat.project.job_options import KEYS, JobOption

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"
UPGRADED_PARTS = PAGES.parents[1] / "dev" / "measure" / "results" / "upgrades" / "stored-parts-2026-11-29.json"
"""The stored parts of each job that was restored on a different version of Flink."""
PUBLIC_JOBS = PAGES.parents[1] / "dev" / "benchmarks" / "results" / "upgrade-restores-2026-11-30.md"
"""The stateful operators of each public job that was restored on a different version of Flink."""
_PACKAGE = "airflow_flinkcompat"
_MARKED = re.compile(r"(<!-- ([\w.]+)( members)? -->\n).*?(<!-- end -->)", re.DOTALL)
_LITERAL = re.compile(r"``([^`]+)``|:\w+:`~?(?:[\w.]+\.)?(\w+)`")


def written(page: str) -> str:
    """A page with newly generated text between its markers."""
    return _MARKED.sub(lambda found: f"{found[1]}\n{_content(found[2], bool(found[3]))}\n{found[4]}", page)


def main() -> None:
    """Write all pages."""
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")


def _content(name: str, members: bool) -> str:
    if name == "flinkcompat":
        lines = _commands(cli, click.Context(cli, info_name=name, **cli.context_settings), 2)
    elif name == "keys":
        lines = _keys()
    elif name == "jars":
        lines = _jars()
    elif name == "connectors":
        lines = _declared_options()
    elif name == "upgrades":
        lines = _upgrades()
    else:
        found = _package()[name.removeprefix(f"{_PACKAGE}.")]
        lines = _members(found, 3) if found.is_module else _object(found, 3, members)
    return "\n".join(lines).rstrip() + "\n"


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """A table; nothing without rows."""
    cells = [[re.sub(r"\s+", " ", cell).strip().replace("|", "\\|") for cell in row] for row in rows]
    if cells:
        yield f"| {' | '.join(heads)} |"
        yield "|" + "---|" * len(heads)
        yield from (f"| {' | '.join(row)} |" for row in cells)
        yield ""


# --- commands ---------------------------------------------------------------------------------------------------------


def _commands(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield f"{'#' * level} {context.command_path}\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        kept = paragraph.removeprefix("\b\n")
        yield f"{_prose(paragraph)}\n" if kept == paragraph else f"```text\n{kept}\n```\n"
    yield f"```text\n{' '.join((context.command_path, *command.collect_usage_pieces(context)))}\n```\n"
    options = (each for each in command.params if isinstance(each, click.Option))
    records = (each.get_help_record(context) for each in options)
    yield from _table(("option", "meaning"), ((f"`{names}`", words) for names, words in filter(None, records)))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _commands(child, click.Context(child, parent=context, info_name=name), min(level + 1, 4))


def _keys() -> Iterator[str]:
    def words(each: JobOption) -> str:
        return " or ".join(f"`{choice}`" for choice in each.choices) or each.form

    rows = (
        (f"`{key}`", words(each), f"`{each.flag}`" if each.flag else "", f"`{each.variable}`" if each.variable else "",
         each.help.format(where="before the script's own"))
        for key, each in KEYS.items()
    )  # fmt: skip
    yield from _table(("key", "value", "option", "variable", "meaning"), rows)


def _jars() -> Iterator[str]:
    def coordinates(name: str, line: str) -> str:
        return ", ".join(f"`{each.removeprefix('org.apache.flink:')}`" for each in artifacts(name, line))

    rows = ((f"`{name}`", *(coordinates(name, line) for line in LINES)) for name in ARTIFACTS)
    yield from _table(("connector or format", *(f"Flink {line}" for line in LINES)), rows)


def _declared_options() -> Iterator[str]:
    rows = (
        (f"`{artifact}`", f"`{connector}`", str(found.declared), str(found.planned), str(found.moving))
        for artifact, connectors in sorted(counts().items())
        for connector, found in connectors.items()
    )
    yield from _table(("artifact", "connector", "options", "planned", "moving ids or state"), rows)
    yield "Not served, or without a table:\n"
    yield from (f"* {each}" for each in stored()["not served"])


# --- Python -----------------------------------------------------------------------------------------------------------


_KINDS = {
    "Operators": "",
    "Aggregate functions": "accumulator: ",
    "Stored types": "serializer: ",
    "Settings": "setting ",
    "Sources and sinks": "source: |sink: ",
}
"""Headings of the tables of upgrades, and the prefixes of their rows; operators have no prefix."""
_EFFECTS = {
    "refused_at_submit": "refused at submit",
    "not_planned": "refused at submit",
    "refused_at_restore": "refused at restore",
    "restored_WRONG": "wrong rows",
}
_OUTCOMES = {
    "right": RIGHT,
    "refused at submit": "refused_at_submit",
    "refused at restore": "refused_at_restore",
    "wrong": "restored_WRONG",
}
"""Results of public jobs; a script that only the new version refuses has none."""


def _upgrades() -> Iterator[str]:
    """One table for each group of stored parts, with a column for each pair of versions that was measured."""
    runs: Mapping[str, Mapping[str, Any]] = json.loads(UPGRADED_PARTS.read_text(encoding="utf-8"))
    types = {row for run in runs.values() for row in _right(run) if row.startswith("serializer: ")}
    every = {row for run in runs.values() for each in run.values() for row in each["stored"]}
    rows = sorted(row for row in every if not row.startswith("not known: "))
    others = tuple(prefix for prefixes in _KINDS.values() for prefix in prefixes.split("|") if prefix)
    for heading, prefixes in _KINDS.items():
        starts = tuple(prefixes.split("|")) if prefixes else ()
        chosen = [row for row in rows if row.startswith(starts) or (not starts and not row.startswith(others))]
        cells = [(row.removeprefix(prefixes), *(_restored(row, run, types) for run in runs.values())) for row in chosen]
        yield f"## {heading}"
        yield ""
        yield from _table((heading.lower(), *runs), (row for row in cells if any(row[1:])))
        yield ""
    jobs = _public_jobs()
    rows = sorted(
        {row for run in jobs.values() for each in run.values() for row in each["stored"]} - {"unresolved query"}
    )
    yield "## Operators of public jobs"
    yield ""
    yield from _table(
        ("operators", *jobs), ((row, *(_restored(row, run, set()) for run in jobs.values())) for row in rows)
    )


def _public_jobs() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """The restores of public jobs, in the form of the stored parts, without failures of several operators."""
    text = re.sub(r"(\d+\.\d+)\.\d+", r"\1", PUBLIC_JOBS.read_text(encoding="utf-8"))
    runs = {}
    for pair, section in re.findall(r"^## From ([\d.]+ to [\d.]+)$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        cells = [line.split(" | ") for line in section.splitlines() if re.match(r"\| [0-9a-f]{12} ", line)]
        runs[pair] = {
            f"{number}": {"outcome": _OUTCOMES.get(row[6], ""), "stored": row[2].split(", ")}
            for number, row in enumerate(cells)
            if row[6] == "right" or ", " not in row[2]
        }
    return runs


def _right(run: Mapping[str, Any]) -> Set[str]:
    return {row for each in run.values() if each["outcome"] == RIGHT for row in each["stored"]}


def _restored(row: str, run: Mapping[str, Any], types: Set[str]) -> str:
    """Count the right restores with a part, or else the failures that only this part explains."""
    if right := sum(row in each["stored"] for each in run.values() if each["outcome"] == RIGHT):
        return f"right ({right})"
    explained = _right(run) | types
    failed = [each for each in run.values() if each["outcome"] in _EFFECTS and {*each["stored"]} - explained == {row}]
    return f"**{_EFFECTS[failed[0]['outcome']]}** ({len(failed)})" if failed else ""


@cache
def _package() -> griffe.Module:
    found = griffe.load(_PACKAGE, search_paths=[PAGES.parents[1]], docstring_parser="google", resolve_aliases=True)
    assert isinstance(found, griffe.Module)
    return found


def _members(owner: Any, level: int) -> Iterator[str]:
    """Public functions, classes and documented values of a module or class, in source order."""
    own = (each for each in owner.members.values() if not each.is_alias and not each.name.startswith("_"))
    for each in sorted(own, key=lambda each: each.lineno or 0):
        if each.is_class or each.is_function or (each.is_attribute and "property" in each.labels):
            yield from _object(each, level, members=owner.is_module)


def _object(found: Any, level: int, members: bool) -> Iterator[str]:
    yield f"{'#' * level} {found.name}\n"
    yield f"```python\n{_signature(found)}\n```\n"
    arguments = {each.name: each for each in getattr(found, "parameters", ())}
    options = {"warn_unknown_params": False, "warn_missing_types": False, "warnings": False}
    doc = found.docstring
    if doc and found.is_class:  # decorators of operators add arguments to it
        described = getattr(import_module(found.module.path), found.name).__doc__
        doc = griffe.Docstring(inspect.cleandoc(described), parent=found)
    for section in doc.parse("google", **options) if doc else ():
        yield from _SECTIONS[section.kind.value](section, arguments)
    if members and found.is_class:
        yield from _members(found, min(level + 1, 4))


def _signature(found: Any) -> str:
    if found.is_attribute:
        return f"{found.name}: {found.annotation}" if found.annotation else str(found.name)
    shown, kinds = [], griffe.ParameterKind
    given = [each for each in found.parameters if each.name not in ("self", "cls")]
    for number, each in enumerate(given):
        star = {kinds.var_positional: "*", kinds.var_keyword: "**"}.get(each.kind, "")
        if each.kind is kinds.keyword_only and not any(
            before.kind in (kinds.keyword_only, kinds.var_positional) for before in given[:number]
        ):
            shown.append("*")
        annotated = f"{star}{each.name}" + (f": {each.annotation}" if each.annotation else "")
        default = "" if star or each.default is None else f"{' = ' if each.annotation else '='}{each.default}"
        shown.append(annotated + default)
    line = f"{found.name}({', '.join(shown)})"
    if len(line) > 100:
        line = f"{found.name}(\n" + "".join(f"    {each},\n" for each in shown) + ")"
    returns = getattr(found, "returns", None)
    return f"{line} -> {returns}" if returns and not found.is_class else line


def _prose(text: str) -> str:
    return _LITERAL.sub(lambda found: f"`{found[1] or found[2]}`", text).strip()


def _text(section: Any, _: dict[str, Any]) -> Iterator[str]:
    yield f"{_prose(section.value)}\n"


def _arguments(section: Any, arguments: dict[str, Any]) -> Iterator[str]:
    def row(each: Any) -> tuple[str, str, str, str]:
        declared = arguments.get(each.name.lstrip("*"))
        kind = each.annotation or (declared.annotation if declared else "") or ""
        default = declared.default if declared and not each.name.startswith("*") else None
        return (
            f"`{each.name}`",
            f"`{kind}`" if kind else "",
            "" if default is None else f"`{default}`",
            _prose(each.description),
        )

    yield from _table(("argument", "type", "default", "meaning"), map(row, section.value))


def _attributes(section: Any, _: dict[str, Any]) -> Iterator[str]:
    rows = ((f"`{each.name}`", _prose(each.description)) for each in section.value)
    yield from _table(("attribute", "meaning"), rows)


def _outcome(words: str) -> Callable[[Any, dict[str, Any]], Iterator[str]]:
    def shown(section: Any, _: dict[str, Any]) -> Iterator[str]:
        for each in section.value:
            kind = f" `{each.annotation}`:" if words == "Raises" and each.annotation else ""
            yield f"**{words}**{kind} {_prose(re.sub(chr(92) + 's+', ' ', each.description))}\n"

    return shown


def _others(section: Any, _: dict[str, Any]) -> Iterator[str]:
    yield f"**{section.title or section.kind.value.capitalize()}** {_prose(str(section.value.contents))}\n"


_SECTIONS: dict[str, Callable[[Any, dict[str, Any]], Iterator[str]]] = {
    "text": _text,
    "parameters": _arguments,
    "other parameters": _arguments,
    "attributes": _attributes,
    "returns": _outcome("Returns"),
    "yields": _outcome("Yields"),
    "raises": _outcome("Raises"),
    "admonition": _others,
}


if __name__ == "__main__":
    main()
