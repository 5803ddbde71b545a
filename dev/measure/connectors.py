"""Options of connectors by reflection from their jars, and their effect on a plan.

For each artifact of ``connectors.toml`` Flink's own classes list the options of its tables. For each option a table is
planned with several values: what differs between the plans, and what a savepoint would hold of the table, is written
to ``connectors/connector_options.json.gz``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from airflow_flinkcompat.connectors.artifacts import DATA
from airflow_flinkcompat.local_flink import jars
from airflow_flinkcompat.planner.daemon import Daemon, PlannerFailure, strictest
from airflow_flinkcompat.planner.installation import install
from dev.measure.settings import Flink, Listed, flink, listed

FILE = Path(__file__).with_suffix(".toml")
_REPOSITORY = "https://repo.maven.apache.org/maven2/"
_BY_TYPE: Mapping[str, Sequence[str]] = {
    "bool": ("true", "false"),
    "int": ("2", "3"),
    "long": ("2", "3"),
    "float": ("0.25", "0.5"),
    "duration": ("7 s", "11 s"),
    "memory": ("7 mb", "11 mb"),
    "map": ("a:b", "c:d"),
    "zone": ("Europe/Berlin", "UTC"),
    "string": ("x", "y"),
}
_MOST_VALUES = 6
_LONGEST_REASON = 160
_NUMBERED = re.compile(r"(file:)?/\S*/plan-\d+/?|\$+[\w/$]*(Lambda|\$\d)\S*|0x[0-9a-f]+|@[0-9a-f]{5,}")
USES = ("source", "sink", "lookup")
Kept = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Table:
    """A connector's table for the planner, without the option that is measured.

    Attributes:
        given: Its options for every use, without ``connector``.
        prefix: What its options begin with in Flink's configuration alone.
        source: More of them where it is read.
        sink: More of them where it is written.
        keyed: True if it declares a primary key.
        key: The name of its key column.
        value: The declaration of its other column.
        read: The expression that reads a number from it.
        write: The expression that makes its value from a number.
    """

    given: Mapping[str, str]
    keyed: bool = False
    key: str = "k"
    value: str = "n BIGINT"
    read: str = "n"
    write: str = "{}"
    prefix: str = ""
    source: Mapping[str, str] = field(default_factory=dict)
    sink: Mapping[str, str] = field(default_factory=dict)

    def of(self, use: str) -> dict[str, str]:
        """Its options without ``connector`` for one use."""
        return {**self.given, **(self.sink if use == "sink" else self.source)}

    def script(self, connector: str, use: str, options: Mapping[str, str]) -> list[str]:
        """The statements of a job that reads the table, writes it, or looks it up."""
        constraint = f", PRIMARY KEY ({self.key}) NOT ENFORCED" if self.keyed else ""
        given = {"connector": connector, **options}
        pairs = ", ".join(f"'{key}' = '{text.replace(chr(39), chr(39) * 2)}'" for key, text in given.items())
        table = f"CREATE TABLE t ({self.key} STRING, {self.value}{constraint}) WITH ({pairs})"
        # Nothing that yields is chained to a legacy source, such as datagen: the chain would hide a sink's parallelism.
        files = "'connector' = 'filesystem', 'path' = 'file:///none', 'format' = 'csv'"
        rows = f"CREATE TABLE o (k STRING, n BIGINT, p AS PROCTIME()) WITH ({files})"
        made = "CREATE TABLE r (n BIGINT, m BIGINT) WITH ('connector' = 'blackhole')"
        if use == "source":
            return [table, made, f"INSERT INTO r SELECT {self.read}, COUNT(*) FROM t GROUP BY {self.read}"]
        if use == "lookup":
            join = f"o JOIN t FOR SYSTEM_TIME AS OF o.p ON o.k = t.{self.key}"
            return [table, rows, made, f"INSERT INTO r SELECT o.n, t.{self.read} FROM {join}"]
        grouped = " GROUP BY k" if self.keyed else ""
        number = self.write.format("MAX(n)" if self.keyed else "n")
        return [table, rows, f"INSERT INTO t SELECT k, {number} FROM o WHERE n > 0{grouped}"]


@dataclass(frozen=True)
class Artifact:
    """An artifact of ``connectors.toml``.

    Attributes:
        jar: Its coordinates; ``flink:VERSION`` for Flink itself.
        line: The line of Flink whose classes it is loaded with.
        tables: The connectors whose tables are planned.
        beside: Coordinates of other jars that the artifact needs.
        options: By connector, classes that declare options that its factory does not name.
    """

    jar: str
    line: str
    tables: Sequence[str]
    beside: Sequence[str] = ()
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``artifact:version``."""
        return self.jar.partition(":")[2] if self.jar.count(":") > 1 else self.jar

    def files(self) -> list[Path]:
        """The jars, fetched on first use."""
        own = () if self.jar.count(":") < 2 else (self.jar,)
        return [jar_file(each) for each in (*own, *self.beside)]


def _read() -> Mapping[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def jar_file(coordinates: str) -> Path:
    """A pinned jar by its coordinates, fetched on first use."""
    for jar in jars.pinned().values():
        if jar.coordinates == coordinates:
            return jars.fetch_jar(jar)
    group, name, version = coordinates.split(":")
    path = f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}.jar"
    return jars.fetch_jar(jars.Jar(name, coordinates, _REPOSITORY + path, _read()["pins"][coordinates]))


@dataclass
class Planned:
    """A plan's stateful ids, their state, serializers of sources and sinks; or why there is no plan."""

    ids: Kept = ()
    state: Kept = ()
    serializers: tuple[str, ...] | None = ()
    asynchronous: bool = False
    refused: str = ""

    def moved(self, other: Planned) -> tuple[str, ...]:
        """Differences between two plans in facts that were requested of both."""
        compared = ["ids", "state"]
        if self.serializers is not None and other.serializers is not None:
            compared.append("serializers")
        return tuple(name for name in compared if getattr(self, name) != getattr(other, name))


@dataclass
class Bench:
    """The planner and the reflection over one artifact."""

    artifact: Artifact
    daemon: Daemon
    asked: Flink | None
    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    def plan(
        self, table: Table, connector: str, use: str, options: Mapping[str, str], *, stored: bool = True
    ) -> Planned:
        """Plan one job over the table; ``stored``: ask for serializers too."""
        folder = self.folder / f"plan-{next(self.numbers)}"
        placed = {key: text.replace("FOLDER", str(folder)) for key, text in options.items()}
        script = table.script(connector, use, placed)
        try:
            answer = self.daemon.ask({"statements": script, "settings": {"parallelism.default": "1"}, "jars": []})
        except PlannerFailure as failure:
            return Planned(refused=_reason(str(failure)))
        if why := answer.get("refusal"):
            return Planned(refused=_reason(f"{why[-1]['class'].rpartition('.')[2]}: {why[-1]['message']}"))
        if answer["stand_ins"]:
            return Planned(refused="its factory cannot be loaded")
        kept = [each for each in answer["jobs"][0]["operators"] if each["keeps"] != "no"]
        parts = self.asked.ask("parts", *script) if self.asked and stored and use != "lookup" else ""
        return Planned(
            tuple(sorted((each["id"], each["max_parallelism"]) for each in kept)),
            tuple(sorted(map(_state, kept))),
            tuple(each for each in _anonymous(parts).split("\t") if each.startswith(f"{use}|")) if stored else None,
            any("AsyncWait" in each["kind"] for each in answer["jobs"][0]["operators"]),
        )

    def plan_with(self, table: Table, connector: str, use: str, key: str, text: str, stored: bool) -> Planned:
        """Plan one job over the table with a changed value of an option."""
        return self.plan(table, connector, use, {**table.of(use), key: text}, stored=stored)


def _state(operator: Mapping[str, Any]) -> tuple[str, ...]:
    """The state of one operator."""
    states = [f"{each['name']} {each['kind']} {sorted(each['options'].items())}" for each in operator.get("states", ())]
    kind = _anonymous(operator["kind"]).rpartition(".")[2]
    return (kind, _anonymous(operator["component"]), operator["keeps"], *map(_anonymous, sorted(states)))


def _anonymous(text: str) -> str:
    """A value without parts that differ between processes."""
    return _NUMBERED.sub("…", text)


def _reason(text: str) -> str:
    return " ".join(_anonymous(text).split())[:_LONGEST_REASON]


def values(option: Listed, given: str | None) -> list[str]:
    """Values of an option that are planned in addition to its default: all of an enum, else one."""
    type = option.type.removeprefix("list:")
    if given is not None:
        return [f"{given}2"]
    if "|" in type:
        return [each for each in type.split("|") if each != option.default][:_MOST_VALUES]
    return [each for each in _BY_TYPE.get(type, _BY_TYPE["string"]) if each != option.default][:1]


def measured(
    bench: Bench, connector: str, table: Table, options: Sequence[Listed]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Facts about a connector's tables, by use."""
    for use in USES:
        given = table.of(use)
        bases = [bench.plan(table, connector, use, given) for _ in range(2)]
        if bases[0].refused:
            yield use, {"not planned": bases[0].refused}
            continue
        if moved := bases[0].moved(bases[1]):
            yield use, {"not planned": f"{' and '.join(moved)} differ between two plans of one table"}
            continue
        found: dict[str, Any] = {
            "parts": [each.removeprefix(f"{use}|") for each in bases[0].serializers or ()],
            "keeps": [" ".join(each[:3]) for each in bases[0].state],
        }
        moves = {}
        for option in options:
            if _is_of(option, use):
                moves[option.key] = moves_of(
                    option, bases[0], partial(bench.plan_with, table, connector, use, option.key), given.get(option.key)
                )
        if use == "lookup":
            found = {"asynchronous": bases[0].asynchronous}
        yield use, {**found, "moves": moves}


def _is_of(option: Listed, use: str) -> bool:
    """True if an option is planned for a use of the table; ``#`` stands for the name of a column."""
    if use == "lookup":
        return option.key.startswith("lookup.") and "source" in option.uses
    return "#" not in option.key and use in option.uses


def moves_of(option: Listed, base: Planned, plan: Callable[[str, bool], Planned], given: str | None) -> Any:
    """Effect of an option on the plan.

    ``=`` if all values have the same plan. Otherwise the groups of values with equal plans and their differences,
    or the reason why no value could be planned.
    """
    groups: list[tuple[Planned, list[str]]] = [(base, [""])]
    refused = ""
    tried = values(option, given)
    for text in tried:
        planned = plan(text, len(groups) == len(groups[0][1]) == 1)  # serializers once for an option
        if planned.refused:
            if not refused and option.type == "string":  # one of certain words
                tried += re.findall(r"[A-Za-z][\w-]*", option.description)[:_MOST_VALUES]
            refused = refused or planned.refused
            continue
        same = next((each for of, each in groups if not of.moved(planned)), None)
        if same is None:
            groups.append((planned, [text]))
        else:
            same.append(text)
    if len(groups) > 1:
        moved = dict.fromkeys(name for of, _ in groups[1:] for name in base.moved(of))
        return {"moves": list(moved), "groups": [each for _, each in groups]}
    return "=" if len(groups[0][1]) > 1 else {"not planned": refused}


def artifact_data(artifact: Artifact, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Connectors of one artifact, their options, and the state in their plans."""
    installed = install(artifact.line)
    files = artifact.files()
    at_hand = replace(installed, classpath=(*installed.classpath, *files))
    with tempfile.TemporaryDirectory() as folder, flink(artifact.line, files) as asked:
        daemon = Daemon(at_hand)
        bench = Bench(artifact, daemon, asked, _writable(folder))
        found: dict[str, Any] = {}
        try:
            more = [f"{name}={each}" for name, classes in artifact.options.items() for each in classes]
            options, _ = listed(asked, "tables", *more)
            for connector in artifact.tables:
                table = Table(**tables[connector])
                own = [
                    replace(each, key=each.key.removeprefix(table.prefix))
                    for each in options
                    if each.where == ("table", connector)
                ]
                data: dict[str, Any] = {"options": {each.key: _option(each) for each in own}}
                for use, row in measured(bench, connector, table, own):
                    data[use] = row
                found[connector] = data
        finally:
            daemon.close()
    return {"line": artifact.line, "connectors": found}


def _writable(folder: str) -> Path:
    """The folder for tables that are made as they are planned, where the planner's process may write."""
    return Path("/dev/shm") if strictest(network=False).own_files else Path(folder)


def loading(artifact: Artifact, tables: Mapping[str, Any], line: str) -> dict[str, dict[str, str]]:
    """By connector and use of a table, why a line of Flink does not plan with the artifact; "" if it does."""
    installed = install(line)
    daemon = Daemon(replace(installed, classpath=(*installed.classpath, *artifact.files())))
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(artifact, daemon, None, _writable(folder))
        try:
            for connector in artifact.tables:
                table = Table(**tables[connector])
                found[connector] = {
                    use: bench.plan(table, connector, use, table.of(use), stored=False).refused for use in USES
                }
        finally:
            daemon.close()
    return found


def _option(option: Listed) -> dict[str, Any]:
    row: dict[str, Any] = {"type": option.type}
    if option.default:
        row["default"] = option.default
    if option.older:
        row["older"] = list(option.older)
    if option.required:
        row["required"] = True
    return row


def written(data: Mapping[str, Any]) -> bytes:
    """The data file's bytes, the same for the same data."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def main(arguments: Collection[str] | None = None) -> int:
    """Measure every artifact, or those that match, and write the results after each."""
    parser = argparse.ArgumentParser(prog="python -m dev.measure connectors", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="only artifacts whose coordinates match")
    parser.add_argument("--load", metavar="LINE", help="only print whether a line of Flink plans with the artifacts")
    options = parser.parse_args(None if arguments is None else list(arguments))
    read = _read()
    if options.load:
        artifacts = (Artifact(**each) for each in read["artifacts"])
        asked = [each for each in artifacts if re.search(options.only, each.jar) and each.jar.count(":") > 1]
        rows = {each.name: loading(each, read["tables"], options.load) for each in asked}
        print(json.dumps({"flink": options.load, "artifacts": rows}, indent=1, sort_keys=True))
        return 0
    for artifact in (Artifact(**each) for each in read["artifacts"]):
        if not re.search(options.only, artifact.jar):
            continue
        found = artifact_data(artifact, read["tables"])
        data = json.loads(gzip.decompress(DATA.read_bytes())) if DATA.exists() else {"artifacts": {}}
        data["artifacts"][artifact.name] = found
        data["not served"] = read["not_served"]
        DATA.write_bytes(written(data))
        for connector, row in found["connectors"].items():
            print(artifact.name, connector, len(row["options"]), "options", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
