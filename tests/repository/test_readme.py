"""What the README and the pages show: reports, links, commands that are there."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from airflow_flinkcompat.airflow.cli import get_flinkcompat_cli_commands
from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.exec_graph import nodes
from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import install
from dev import benchmarks, measure
from tests.unit.frontends.table_api import test_validation

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
RECIPES = ROOT / "docs" / "how-to.md"
FAMILY_PAGES = sorted(set((ROOT / "docs" / "design").glob("*.md")) - {ROOT / "docs" / "design" / "README.md"})
# The list of changes mentions removed commands, so it is not one of these pages.
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "readme"


@pytest.mark.slow
def test_the_sample_report_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[str] = re.findall(r"```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (command, shown), *others = [block.split("\n", 1) for block in blocks if block.startswith("$ flinkcompat check ")]
    assert not others
    monkeypatch.chdir(FIXTURES)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("FLINKCOMPAT_PLANNER", "auto")
    install("2.3")
    result = CliRunner().invoke(cli, shlex.split(command)[2:])
    assert result.exit_code == 1
    assert result.output == shown
    close_all()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda path: path.stem)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_linked_to_from_the_readme() -> None:
    text = README.read_text(encoding="utf-8")
    assert [page.name for page in (README.parent / "docs").glob("*.md") if f"(docs/{page.name}" not in text] == []


@pytest.mark.parametrize("page", FAMILY_PAGES, ids=lambda page: page.stem)
def test_a_page_of_an_operator_family_has_every_section(page: Path) -> None:
    headings = ["State", "Meaning of the state", "Changes", "Migration and history", "Code"]
    assert re.findall(r"^## (.*)", page.read_text(encoding="utf-8"), re.MULTILINE) == headings
    assert f"]({page.name})" in (page.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", nodes._MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_exec_kind_of_a_family_has_a_page(module: ModuleType) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in FAMILY_PAGES)
    kinds = [kind for family in module.FAMILIES for kind in family.kinds]
    assert [kind for kind in kinds if f"`{kind}`" not in text] == []


def shown_lines(page: Path) -> Iterator[str]:
    """The lines of a page's shell blocks, continued ones put together, without comments."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            yield from filter(None, (part.strip() for part in re.sub(r"(^|\s)#.*", "", line).split("&&")))


def parse(arguments: list[str], group: click.Group = cli, parent: click.Context | None = None) -> list[str]:
    """Has the command read its arguments, and nothing else. Raises UsageError: it does not take them."""
    # A command keeps the help option of its first context: it has to be that of the command line.
    context = click.Context(group, parent, **group.context_settings)
    name, command, rest = group.resolve_command(context, arguments)
    assert name is not None
    assert command is not None
    if isinstance(command, click.Group):
        return [name, *parse(rest, command, context)]
    command.make_context(name, rest, context)
    return [name]


def mentioned(page: Path) -> list[str]:
    """The commands that stand within sentences of a page; the recipes' are whole."""
    return re.findall(r"`(flinkcompat [a-z][^`]*)`", page.read_text(encoding="utf-8"))


COMMANDS = sorted(
    {(page, line) for page in PAGES for line in shown_lines(page) if re.match(r"(\w+=\S+ )*flinkcompat\s", line)}
    | {(RECIPES, line) for line in mentioned(RECIPES)}
)


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=[f"{page.stem}-{line}" for page, line in COMMANDS])
def test_a_command_that_a_page_shows_is_taken(page: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLINKCOMPAT_LEDGER", "s3://bucket/ledger")  # which the pages export once
    parse(shlex.split(line[line.index("flinkcompat ") :])[1:])


def test_the_commands_of_airflow_that_pages_show_are_taken() -> None:
    from airflow.cli.cli_parser import _add_command

    parser = argparse.ArgumentParser(prog="airflow")
    _add_command(parser.add_subparsers(dest="subcommand"), get_flinkcompat_cli_commands()[0])
    shown = {line for page in PAGES for line in shown_lines(page) if line.startswith("airflow flinkcompat ")}
    assert len(shown) > 4
    for line in sorted(shown):
        parser.parse_args(shlex.split(line)[1:])


def test_every_command_is_shown_somewhere() -> None:
    """Also that the pages' commands are found at all."""
    shown = {shlex.split(line[line.index("flinkcompat ") :])[1] for _, line in COMMANDS}
    assert {*cli.list_commands(click.Context(cli))} - shown == set()


def test_what_no_command_takes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLINKCOMPAT_LEDGER", "/ledger")
    assert parse(["ledger", "diff", "orders", "3", "7"]) == ["ledger", "diff"]
    for wrong in (["chekc", "a", "b"], ["check", "a", "b", "--engin", "x"], ["check"], ["ledger", "shows", "x"]):
        with pytest.raises(click.UsageError):
            parse(wrong)


def test_commands_and_options_within_a_sentence_are_there() -> None:
    """Such a mention is no whole command line: what it names has to exist."""
    wrong = []
    for place, text in ((page, text) for page in PAGES for text in mentioned(page)):
        words = text.split()[1:]
        command: click.Command | None = cli
        while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z-]+", words[0]):
            command = command.get_command(click.Context(command), words.pop(0))
        options = {option for each in command.params for option in each.opts} if command else set()
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
        if command is None or named - options - {"--help"}:
            wrong.append((place.name, text))
    assert wrong == []


def test_every_make_target_that_a_page_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    targets |= {f"bench-{name.replace('_', '-')}" for name in benchmarks.PROGRAMS}
    targets |= {f"measure-{name.replace('_', '-')}" for name in measure.PROGRAMS}
    named = {
        (page.name, name)
        for page in PAGES
        for block in (*shown_lines(page), *re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")))
        for name in re.findall(r"^(?:\w+=\S+ )*make ([a-z-]+)", block)
    }
    assert len(named) > 10
    assert [(page, name) for page, name in sorted(named) if name not in targets] == []


def test_addresses_elsewhere_are_whole() -> None:
    """Nothing is fetched here: an address is of https and names a host; those of examples are left out."""
    example = re.compile(r"//(localhost|gateway|jobmanager|sql-gateway|host|[\w.-]*example\.com)\b|[{<…]")
    links = {
        (page.name, link)
        for page in [*PAGES, ROOT / "CHANGELOG.md"]
        for link in re.findall(r"\]\(([a-z]+:[^)\s]+)\)", page.read_text(encoding="utf-8"))
    }
    assert links
    bad = [
        each for each in links if not re.match(r"https://[\w-]+(\.[\w-]+)+(/|$)", each[1]) or example.search(each[1])
    ]
    assert bad == []


def test_the_dag_of_the_first_page_is_one(tmp_path: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag

    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "orders.py").write_text(code, encoding="utf-8")
    bag = DagBag(tmp_path)
    assert bag.import_errors == {}
    assert list(bag.dags) == ["redeploy_orders"]
    assert {"changed", "check", "approve", "resume"} <= set(bag.dags["redeploy_orders"].task_ids)


def test_on_an_index_the_links_of_the_readme_are_addresses() -> None:
    hook = runpy.run_path(str(ROOT / "scripts" / "package_metadata.py"))
    text = hook["with_addresses"](README.read_text(encoding="utf-8"), "https://example.com/it", "v1.2.3")
    assert [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link] == []
    assert "](https://example.com/it/raw/v1.2.3/docs/images/dag-graph.png)" in text
    assert "](https://example.com/it/blob/v1.2.3/docs/airflow.md)" in text
    assert "](https://example.com/it/blob/v1.2.3/docs/airflow.md#waiting-for-a-change)" in text


def test_the_refusal_that_the_page_of_programs_shows_is_the_one_that_is_said() -> None:
    page = (README.parent / "docs" / "table-api.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    message, _, place = " ".join(shown.split()).partition("] program-refused: ")[2].rpartition(" at ")
    case = test_validation.CASES["windows/size-plain-number"]
    (found,) = (f for f in test_validation.unchanged(case["wrong"], "flink").findings if f.after_span is not None)
    assert (found.message, str(found.after_span)) == (message, place.replace(".py", ""))
