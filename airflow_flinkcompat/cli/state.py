"""``flinkcompat state``, which shows and queries the state in a savepoint."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airflow_flinkcompat.cli.arguments import (
    Decorated,
    command_errors,
    format_option,
    job_options,
    master_option,
    print_json,
    print_progress,
    require_spark,
)
from airflow_flinkcompat.cli.project import Given, judging_flink
from airflow_flinkcompat.cli.savepoints import require_sql, state_errors
from airflow_flinkcompat.cli.scripts import path_of, read_named, required_side
from airflow_flinkcompat.cli.targets import Planner, compiled_plans, planner_options
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.planner.savepoints import state_specs
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow_flinkcompat.exec_graph.model import StateSpec
    from airflow_flinkcompat.state import OpenSavepoint, TableDifference

_FILES = ("parquet", "arrow")
_MAX_ROWS = 10_000
_MAX_PARTITIONS = 20


@click.group("state")
def state_command() -> None:
    """Show and query the state in a canonical savepoint, which is only read.

    Every named state of an operator is a table. With --script, tables are named after the sinks of the script, and
    columns after its columns. Without --script, names come from the savepoint.
    """


Opener = Callable[[str, str | None], "OpenSavepoint"]


def _opening(command: Decorated) -> Decorated:
    """Add options for the names of tables; the command receives a function that opens savepoints."""

    @wraps(command)
    def called(*, given: Given, planner: Planner, **others: Any) -> Any:
        with command_errors("state", "state"):
            from airflow_flinkcompat.savepoint.compiled import interpreted_hint
            from airflow_flinkcompat.state import open_savepoint

        def opened(savepoint: str, script: str | None) -> OpenSavepoint:
            specs = [] if script is None else _specs(script, savepoint, given, planner)
            with state_errors():
                found = open_savepoint(savepoint, specs)
            if hint := interpreted_hint(found.size):
                print_progress(hint)
            for operator in found.unnamed:
                print_progress(f"{operator}: the script predicts another layout, so names are general")
            return found

        return command(opened=opened, **others)

    made: Decorated = planner_options(called)
    names = ("engine_version", "settings", "functions", "catalog", "planner", "jars", "config", "deployment")
    made = job_options(*names)(made)
    return click.option("--script", metavar="JOB.sql", help="Script of the job that took the savepoint.")(made)


def _specs(script: str, savepoint: str, given: Given, planner: Planner) -> list[StateSpec]:
    """The states of the operators in the plan of the script."""
    require_sql("state", script)
    by = judging_flink("state", path_of(script), given)
    side = required_side(read_named(script), by)
    return state_specs(side, compiled_plans("state", side, side, planner.compiling(by), savepoint))


@state_command.command("show", short_help="List the state in a savepoint.")
@click.argument("path", metavar="SAVEPOINT")
@_opening
@format_option("text", "json")
def show_command(path: str, script: str | None, opened: Opener, style: str) -> None:
    """List the tables of a savepoint with their operators, rows, columns and windows.

    Exit code 0: shown; 2: bad input.
    """
    savepoint = opened(path, script)
    from airflow_flinkcompat.state import OPERATORS, SOURCES, operator_state, summarize

    with state_errors():
        summaries = summarize(savepoint)
        sources, lists = SOURCES.read(savepoint).to_pylist(), list(operator_state(savepoint))
    numbers = {each.table: each.to_dict() for each in summaries if each.table}
    found = [{**table.describe(), **numbers[table.name]} for table in savepoint.tables]
    others = [
        {"operator_id": each.operator_id, "state": each.state, **each.to_dict()} for each in summaries if not each.table
    ]
    if style == "json":
        print_json(
            {
                "savepoint": savepoint.path,
                "operators": OPERATORS.read(savepoint).to_pylist(),
                "tables": found,
                "states_without_table": others,
                "sources": sources,
                "operator_state": lists,
                "unreadable": dict(savepoint.unreadable),
            }
        )
        return
    click.echo(f"{savepoint.path}: {len(savepoint.operators)} operators, {savepoint.size:,} bytes of keyed state")
    for each in filter(lambda table: table["entries"], found):
        click.echo(f"\n{each['name']}: {each['kind']} {each['state']} in {each['operator']}, {_numbers(each)}")
        click.echo(f"  {', '.join(f'{name} {type}' for name, type in each['columns'].items())}")
    if empty := [each["name"] for each in found if not each["entries"]]:
        click.echo(f"\nwithout entries: {', '.join(empty)}")
    for operator, reason in savepoint.unreadable.items():
        click.echo(f"\nwithout a table: {operator}, because {reason}")
        for each in others:
            if each["operator_id"] == operator:
                click.echo(f"  {each['state']}: {each['entries']:,} entries, {each['bytes']:,} bytes")
    for title, lines in (("sources", _source_lines(sources)), ("operator state", map(_list_line, lists))):
        if indented := [f"  {line}" for line in lines]:
            click.echo("\n".join(["", f"{title}:", *indented]))


def _source_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The positions of each source in one line."""
    for operator, found in groupby(rows, lambda row: (row["operator_id"], row["operator"], row["connector"])):
        parts, connector = list(found), operator[2]
        if connector == "kafka":
            shown = [f"{row['split']} {row['partition']}: {row['position']:,}" for row in parts[:_MAX_PARTITIONS]]
            more = len(parts) - len(shown)
            yield f"{operator[1]}: {', '.join([*shown, *([f'{more} further partitions'] if more else [])])}"
        elif connector:
            counts = Counter(row["status"] for row in parts)
            yield f"{operator[1]}: files {', '.join(f'{status}: {count:,}' for status, count in counts.items())}"
        else:
            yield f"{operator[1]}: {parts[0]['status']}"


def _list_line(row: dict[str, Any]) -> str:
    waits = f" ({row['waits']})" if row["waits"] else ""
    return f"{row['operator']}: {row['list']}{waits}, elements: {row['elements']:,}, bytes: {row['bytes']:,}"


def _numbers(table: dict[str, Any]) -> str:
    """The numbers of a table in words."""
    parts = [f"{table['entries']:,} entries of {table['keys']:,} keys", f"{table['bytes']:,} bytes"]
    if table["first_window"]:
        words = "window ends" if table["columns"].get("window_start", "computed") == "computed" else "windows"
        parts.append(f"{words} {table['first_window']} to {table['last_window']}")
    if table["time_to_live"]:
        parts.append(f"with a state TTL, last accesses {table['first_access']} to {table['last_access']}")
    return ", ".join(parts)


@state_command.command("sql", short_help="Query the state in a savepoint.")
@click.argument("path", metavar="SAVEPOINT")
@click.argument("sql", metavar="QUERY")
@_opening
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "csv", "json", *_FILES]),
    default="table",
    show_default=True,
    help="The format of the rows; json is one object per line.",
)
@click.option("--output", metavar="FILE", help="File to write, or folder with --spark; required for parquet and arrow.")
@click.option("--spark", "on_spark", is_flag=True, help="Run QUERY, in Spark's SQL, on Spark, for state of many GB.")
@master_option
def sql_command(
    path: str,
    sql: str,
    script: str | None,
    opened: Opener,
    style: str,
    output: str | None,
    on_spark: bool,
    master: str | None,
) -> None:
    """Run QUERY, in DuckDB's SQL, over the tables of a savepoint; state show lists them.

    A query reads only the columns that it uses. If it compares all columns of a key with values, it reads only the key
    groups of these values.

    Exit code 0: the rows were written; 2: bad input.
    """
    if style in _FILES and output is None:
        raise InputError(f"--format {style} writes a file: add --output FILE")
    if style == "table" and output is not None:
        raise InputError("--output needs another format than table: add --format csv, json, parquet or arrow")
    if on_spark and (style == "arrow" or (style != "table" and output is None)):
        raise InputError("--spark writes a folder of csv, json or parquet files: add --format and --output")
    if output is not None and "://" not in output and Path(path).resolve() in Path(output).resolve().parents:
        raise InputError(f"--output {output} is in the folder of the savepoint: choose another folder")
    if on_spark:
        require_spark("state sql --spark", "state")
    with command_errors("state", "state"):
        from airflow_flinkcompat.state import QueryFailed, query
        from airflow_flinkcompat.state.output import write_rows
    try:
        with state_errors():
            if on_spark:
                _query_on_spark(opened(path, script), sql, style, output, master)
                return
            with query(opened(path, script), sql) as result:
                if style == "table":
                    _print_rows(*result.text(_MAX_ROWS))
                else:
                    write_rows(result.reader(), style, None if output is None else Path(output))
    except QueryFailed as error:
        raise InputError(mask_secrets(f"{error}")) from None


def _query_on_spark(savepoint: OpenSavepoint, sql: str, style: str, output: str | None, master: str | None) -> None:
    from airflow_flinkcompat.spark_state import query_on_spark
    from airflow_flinkcompat.state.output import text_table

    with query_on_spark(savepoint, sql, master, print_progress) as rows:
        if output is None:
            found = rows.limit(_MAX_ROWS + 1).toArrow()
            _print_rows(text_table(found.slice(0, _MAX_ROWS)), found.num_rows > _MAX_ROWS)
        else:
            rows.write.format(style).options(header=True, ignoreNullFields=False).save(output)


def _print_rows(text: str, more: bool) -> None:
    click.echo(text)
    if more:
        click.echo(f"only the first {_MAX_ROWS:,} rows are shown: use --format csv or json", err=True)


@state_command.command("diff", short_help="Compare the state in two savepoints.")
@click.argument("first", metavar="SAVEPOINT")
@click.argument("second", metavar="OTHER")
@_opening
@click.option(
    "--other-script", metavar="JOB.sql", help="Script of the job that took OTHER (default: that of --script)."
)
@click.option(
    "--rows", type=click.IntRange(min=0), default=10, show_default=True, metavar="N", help="Rows to show of each table."
)
@format_option("text", "json")
def diff_command(
    first: str, second: str, script: str | None, other_script: str | None, opened: Opener, rows: int, style: str
) -> None:
    """Compare the tables of SAVEPOINT with those of OTHER.

    The output shows keys, windows and source positions that were added, removed or changed. The last access time of
    values with a state TTL and operator state are not compared. For a migrated savepoint, add --other-script.

    Exit code 0: equal; 1: different; 2: bad input.
    """
    if other_script and not script:
        raise InputError("--other-script needs --script, the script of SAVEPOINT")
    with command_errors("state", "state"):
        from airflow_flinkcompat.state import QueryFailed, compare
    one, other = opened(first, script), opened(second, other_script or script)
    try:
        with state_errors():
            found = compare(one, other, rows)
    except QueryFailed as error:
        raise InputError(f"the tables cannot be compared: {error}") from None
    uncompared = {**one.unreadable, **other.unreadable}
    if style == "json":
        tables = [_difference_json(each) for each in found]
        print_json({"first": first, "second": second, "tables": tables, "unreadable": uncompared})
    else:
        parts = ["\n".join(_difference_lines(each)) for each in found if each]
        equal = [each.table for each in found if not each]
        parts += [f"operator {operator} is not compared: {reason}" for operator, reason in uncompared.items()]
        click.echo("\n\n".join([*parts, *([f"equal: {', '.join(equal)}"] if equal else [])]))
    if any(found):
        sys.exit(1)


def _difference_json(difference: TableDifference) -> dict[str, Any]:
    from airflow_flinkcompat.state.output import json_rows

    return {
        "table": difference.table,
        "only_in": difference.only_in,
        "added": difference.added,
        "removed": difference.removed,
        "changed": difference.changed,
        "columns": dict(difference.columns),
        "new_columns": list(difference.new_columns),
        "old_columns": list(difference.old_columns),
        "retyped": {name: list(types) for name, types in difference.retyped.items()},
        "rows": [] if difference.rows is None else list(map(json.loads, json_rows(difference.rows))),
    }


def _difference_lines(difference: TableDifference) -> Iterator[str]:
    """Lines about one table."""
    if difference.only_in:
        yield f"{difference.table}: only in the {difference.only_in} savepoint, with this key"
        return
    counts = [
        f"{count:,} {words}"
        for words, count in (
            ("added", difference.added), ("removed", difference.removed), ("changed", difference.changed),
        )
        if count
    ]  # fmt: skip
    yield f"{difference.table}: {', '.join(counts) or 'rows equal'}"
    for name, (old, new) in difference.retyped.items():
        yield f"  column {name}: {old} became {new}, so its values are not compared"
    if difference.columns:
        yield f"  changed columns: {', '.join(f'{name} ({count:,})' for name, count in difference.columns.items())}"
    for words, names in (("new", difference.new_columns), ("removed", difference.old_columns)):
        if names:
            yield f"  {words} columns: {', '.join(names)}"
    if difference.rows is not None and difference.rows.num_rows:
        from airflow_flinkcompat.state.output import text_table

        yield from (f"  {line}" for line in text_table(difference.rows).splitlines())
