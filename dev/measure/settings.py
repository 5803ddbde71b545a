"""Options of each Flink line and its connectors with their types, from the classes.

``--check`` asks Flink about drawn values of every option instead, and compares its answers with the package's.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from airflow_flinkcompat.connectors.flink_options import DATA, declared_option
from airflow_flinkcompat.local_flink.jars import fetch
from airflow_flinkcompat.local_flink.processes import find_java
from airflow_flinkcompat.planner.daemon import strictest
from dev.measure.pairs import RELEASES, VERSIONS, home

_SOURCE = Path(__file__).parent / "FlinkOptions.java"
_ANSWER = "answer\t"
_PLANNER = "flink-table-planner.jar"
_LOADER = "planner-loader"
_FAST = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "time")]
LINES = sorted(RELEASES, key=lambda line: [*map(int, line.split("."))])
EXTERNAL = {
    ("flink-sql-connector-kafka",): "2.3",
    ("flink-sql-connector-kafka-1.19",): "1.19",
    ("flink-connector-jdbc-core", "flink-connector-jdbc-postgres"): "2.3",
    ("flink-connector-jdbc-1.20",): "1.20",
    ("flink-sql-avro", "flink-sql-parquet", "flink-sql-orc", "flink-sql-protobuf"): "2.3",
    ("flink-sql-avro-confluent-registry",): "2.3",
    ("flink-sql-connector-elasticsearch7",): "1.19",
    ("flink-sql-connector-mysql-cdc",): "1.20",
    ("flink-sql-connector-postgres-cdc",): "1.20",
    ("flink-sql-connector-mongodb-cdc",): "1.20",
}
"""Jars beside Flink's own, and the line whose jars they are loaded with."""
_TYPES = {
    "Boolean": "bool", "Integer": "int", "Long": "long", "Float": "float", "Double": "float", "Duration": "duration",
    "MemorySize": "memory", "Map": "map", "String": "string",
}  # fmt: skip
_DEMANDING = re.compile(
    r"parallelism\.default|pipeline\.max-parallelism|restart-strategy\..*|state\.backend\.type"
    r"|execution\.checkpointing\.(interval|timeout|min-pause|max-concurrent.*|tolerable.*|num-retained|storage)"
    r"|table\.exec\.mini-batch\..*"
)
"""Settings that Flink reads when it plans or submits a job, and may check for more than their type."""
Demand = dict[str, Any]
_NUMBERS = {"int": (-1, 0, 1, 2, 10), "long": (-1, 0, 1, 2, 10), "duration": (0, 1, 10, 100), "memory": (0, 1, 1024)}
_WHEN = {
    "table.exec.mini-batch.": ("table.exec.mini-batch.enabled", "true"),
    "execution.checkpointing.": ("execution.checkpointing.interval", "1 h"),
    **{
        f"restart-strategy.{name}.": ("restart-strategy.type", name)
        for name in ("fixed-delay", "failure-rate", "exponential-delay")
    },
}
"""By the beginning of keys, the setting under which Flink reads them."""
_BATCHED = {"table.exec.mini-batch.allow-latency": "1 s", "table.exec.mini-batch.size": "10"}
_TABLES: Mapping[str, Mapping[str, str]] = {
    "source:datagen": {},
    "source:filesystem": {"path": "/tmp/none", "format": "csv"},
    "sink:filesystem": {"path": "/tmp/none", "format": "csv"},
    "sink:print": {},
    "source:kafka": {"topic": "t", "properties.bootstrap.servers": "h:1", "properties.group.id": "g", "format": "json"},
    "sink:kafka": {"topic": "t", "properties.bootstrap.servers": "h:1", "format": "json"},
    "source:jdbc": {"url": "jdbc:postgresql://h:1/d", "table-name": "t"},
    "sink:jdbc": {"url": "jdbc:postgresql://h:1/d", "table-name": "t"},
}
_NOT_NAMES = frozenset({"format", "path", "url", "driver", "value.format", "key.format", "table-name", "topic"})
_METADATA: Mapping[str, Mapping[str, str]] = {
    "filesystem": {"path": "/tmp/none", "format": "csv"},
    "kafka": {"topic": "t", "properties.bootstrap.servers": "h:1", "format": "json"},
    "upsert-kafka": {
        "topic": "t", "properties.bootstrap.servers": "h:1", "key.format": "json", "value.format": "json",
        "PRIMARY KEY": "a",
    },
    "postgres-cdc": {
        "hostname": "h", "username": "u", "password": "p", "database-name": "d", "schema-name": "s", "table-name": "t",
        "slot.name": "s", "PRIMARY KEY": "a",
    },
    "mongodb-cdc": {"hosts": "h", "database": "d", "collection": "c", "PRIMARY KEY": "_id"},
}  # fmt: skip
_CDC_FORMATS = ("debezium-json", "canal-json", "maxwell-json", "ogg-json", "debezium-avro-confluent")


class Flink:
    """The classes of one line, and their answers."""

    def __init__(self, classes: str, planner: str) -> None:
        self._classes = classes
        self._planner = planner
        self._running: dict[str, subprocess.Popen[str]] = {}

    def rows(self, command: str, *arguments: str) -> list[str]:
        """All rows of a listing."""
        done = subprocess.run([*self._command(command), *arguments], stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.splitlines()

    def ask(self, command: str, *fields: str) -> str:
        """The answer to one row of questions."""
        if command not in self._running:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._running[command] = subprocess.Popen(self._command(command), text=True, **pipes)
        process = self._running[command]
        print("\t".join(fields), file=process.stdin, flush=True)
        assert process.stdout is not None
        for row in process.stdout:
            if row.startswith(_ANSWER):
                return row.removeprefix(_ANSWER).removesuffix("\n")
        raise RuntimeError(f"{command} ended before it answered {fields}")

    def run(self, given: Mapping[str, str]) -> str:
        """Flink's reason to refuse a job with these settings; ``taken`` if Flink accepts them."""
        return self.ask("run", *(text for pair in given.items() for text in pair))

    def close(self) -> None:
        """End the programs that answered."""
        for process in self._running.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    def _command(self, command: str) -> list[str]:
        """Flink plans by the loader's jar alone, which hides the planner's options."""
        if command == "run":
            return [str(find_java()), *_OPENED, "-cp", self._classes, str(_SOURCE), command]
        classes = f"{self._classes}:{self._planner}"
        if command != "parts":
            return [str(find_java()), *_OPENED, "-cp", classes, str(_SOURCE), command]
        # Connectors may open connections during planning. Without the loader, planning takes half the time.
        classes = ":".join(path for path in classes.split(":") if _LOADER not in path)
        arguments = [*_OPENED, *_FAST, "-cp", classes, str(_SOURCE), command]
        folder = str(Path(self._planner).parent)
        return strictest(network=False).around(str(find_java()), arguments, folder)


@contextmanager
def flink(line: str, jars: Sequence[Path] = ()) -> Iterator[Flink]:
    """Load the classes of a line and of more jars, without the logger, which would write into answers."""
    library = [path for path in sorted((home(line) / "lib").glob("*.jar")) if not path.name.startswith("log4j")]
    with tempfile.TemporaryDirectory() as folder:
        with ZipFile(next(path for path in library if _LOADER in path.name)) as loader:
            planner = loader.extract(_PLANNER, folder)
        asked = Flink(":".join(map(str, [*jars, *library])), planner)
        try:
            yield asked
        finally:
            asked.close()


@dataclass(frozen=True)
class Listed:
    """An option as its class declares it; ``where`` is empty for a setting, else a kind and a name."""

    where: tuple[str, ...]
    key: str
    type: str
    default: str
    older: tuple[str, ...]
    required: bool
    uses: tuple[str, ...]
    description: str


def listed(asked: Flink, what: str = "list", *classes: str) -> tuple[list[Listed], list[str]]:
    """All options of the classes, or those of tables alone, and the zones that Java knows."""
    options, zones = [], []
    for row in asked.rows(what, *classes):
        kind, *fields = row.split("\t")
        if kind == "zone":
            zones.append(fields[0])
            continue
        factory, key, sort, name, is_list, default, older, required, uses, description = fields
        type = name if sort == "enum" else _TYPES.get(name, "string")
        type = "zone" if key.endswith("time-zone") else type
        where = () if kind == "setting" else (kind, factory)
        type = f"list:{type}" if is_list == "true" else type
        former, used = tuple(older.split()), tuple(uses.split())
        options.append(Listed(where, key, type, default, former, required == "true", used, description))
    return options, zones


def demand(asked: Flink, option: Listed, given: Mapping[str, str], prefix: str = "") -> Demand:
    """Flink's restriction of an option in addition to its type: a minimum, or a list of values."""

    def answer(value: object) -> str:
        return asked.run({**given, prefix + option.key: str(value)})

    if option.type == "string":
        why = answer("nowhere")
        if why == "taken":
            return {}
        # Another complaint than that of a word nobody knows: the word is known, and asks for something else.
        words = {word.lower(): word for word in re.findall(r"[A-Za-z0-9][\w.-]*", f"{why} {option.description}")}
        unknown = why.lower().replace("nowhere", "")
        names = [
            word for low, word in words.items() if answer(word).lower().replace(low, "") != unknown.replace(low, "")
        ]
        names = sorted(name for name in names if name.lower() != "nowhere")
        if names and all(len(name) == 1 for name in names):
            return {"type": "char"}
        return {"classes" if "ClassNotFound" in why else "names": names} if names else {}
    tried = _NUMBERS.get(option.type, ())
    if not tried or answer(tried[0]) == "taken":
        return {}
    low = tried[0]
    high = next((value for value in tried[1:] if answer(value) == "taken"), None)
    if high is None:
        return {}
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if answer(middle) == "taken" else (middle, high)
    return {"least": high}


def demands(asked: Flink, options: Iterable[Listed]) -> Iterator[tuple[Listed, Demand]]:
    """Flink's restrictions of job settings, alone or together with the setting that enables them."""
    for option in options:
        if option.where or not _DEMANDING.fullmatch(option.key):
            continue
        found = demand(asked, option, {})
        when = next((pair for begin, pair in _WHEN.items() if option.key.startswith(begin)), None)
        if not found and when is not None and when[0] != option.key:
            batched = _BATCHED if option.key.startswith("table.exec.mini-batch.") else {}
            if found := demand(asked, option, {**batched, when[0]: when[1]}):
                found["when"] = list(when)
        if found:
            print(option.key, found, file=sys.stderr, flush=True)
            yield option, found


def demands_of_tables(asked: Flink, options: Sequence[Listed]) -> Iterator[tuple[Listed, Demand]]:
    """Flink's restrictions of connector and format options when it plans a table, by the table's use."""
    found: dict[Listed, dict[str, Demand]] = {}
    uses: dict[Listed, set[str]] = {}
    for place, given in _TABLES.items():
        side, _, connector = place.partition(":")
        base = {f"{side}:{key}": value for key, value in {"connector": connector, **given}.items()}
        if asked.run(base) != "taken":
            continue
        sets: dict[tuple[str, ...], tuple[str, dict[str, str]]] = {("table", connector): (f"{side}:", base)}
        if connector in ("filesystem", "kafka"):
            formats = {option.where for option in options if option.where[:1] == ("format",)}
            sets |= {each: (f"{side}:{each[1]}.", {**base, f"{side}:format": each[1]}) for each in sorted(formats)}
        for where, (prefix, table) in sets.items():
            of = [
                each for each in options if each.where == where and each.key not in _NOT_NAMES and "#" not in each.key
            ]
            for option in of if asked.run(table) == "taken" else ():
                uses.setdefault(option, set()).add(side)
                if demanded := demand(asked, option, table, prefix):
                    found.setdefault(option, {})[side] = demanded
    for option, by_use in found.items():
        everywhere = by_use.keys() == uses[option]
        yield option, next(iter(by_use.values())) | ({} if everywhere else {"use": next(iter(by_use))})


def main() -> int:
    """Write what all lines and connectors declare; with ``--check``, compare it with Flink's own answers."""
    parser = argparse.ArgumentParser(prog="python -m dev.measure settings", description=__doc__)
    parser.add_argument("--check", action="store_true", help="ask Flink about drawn values, and write nothing")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--demands", type=Path, help="a file that keeps what Flink demanded beyond types, for another run"
    )
    options = parser.parse_args()
    if options.check:
        return check(options.seed)
    DATA.write_text(_written(measured(options.demands)), encoding="utf-8")
    return 0


def measured(kept: Path | None) -> dict[str, Any]:
    """Everything that the data file holds."""
    by_line: dict[tuple[tuple[str, ...], str], dict[str, dict[str, Any]]] = {}
    found: dict[str, Any] = {"zones": [], "renamed": {}}
    demanded = json.loads(kept.read_text()) if kept and kept.exists() else _demanded()
    if kept:
        kept.write_text(json.dumps(demanded))
    names: dict[str, dict[str, list[str]]] = {}
    for line in LINES:
        with flink(line) as asked:
            options, found["zones"] = listed(asked)
        for each in options:
            more = demanded.get(_place(each), {}).get(line, {})
            by_line.setdefault((each.where, each.key), {})[line] = _row(each) | more
            for older in each.older if not each.where else ():
                names.setdefault(older, {}).setdefault(line, []).append(each.key)
    current = {key for (where, key), lines in by_line.items() if not where and LINES[-1] in lines}
    found["renamed"] = {old: _ranges(of) for old, of in sorted(names.items()) if old not in current}
    rows: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {each: _ranges(lines) for each, lines in by_line.items()}
    found["metadata"] = _of_external(rows, by_line.keys(), demanded)
    for (where, key), lines in sorted(rows.items()):
        part = (
            found.setdefault(f"{where[0]}s", {}).setdefault(where[1], {}) if where else found.setdefault("settings", {})
        )
        part[key] = lines
    return found


def _of_external(
    rows: dict[tuple[tuple[str, ...], str], dict[str, Any]], own: Collection[object], demanded: Mapping[str, Any]
) -> dict[str, Any]:
    """Add the options of external connectors and formats; returns the metadata of all that were queried."""
    read: dict[str, dict[str, str]] = {}
    written: dict[str, dict[str, str]] = {}
    of_formats: dict[str, dict[str, str]] = {}
    for jars, line in EXTERNAL.items():
        with flink(line, [*map(fetch, jars)]) as asked:
            options, _ = listed(asked, "tables")
            known = {option.where for option in options}
            for each in options:
                if each.where and (each.where, each.key) not in own:
                    row = _row(each) | demanded.get(_place(each), {}).get(line, {})
                    rows[each.where, each.key] = {"": _wider(rows.get((each.where, each.key), {}).get("", row), row)}
            for connector, given in _METADATA.items():
                handed_out, taken = _metadata(asked, {"connector": connector, **given})
                if handed_out:
                    read[connector], written[connector] = handed_out, taken
            for name in _CDC_FORMATS if ("table", "kafka") in known and line == "2.3" else ():
                more = {f"{name}.url": "http://h:1"} if name == "debezium-avro-confluent" else {}
                of_table, _ = _metadata(asked, {"connector": "kafka", **_METADATA["kafka"], "format": name, **more})
                of_format = {
                    key.removeprefix("value."): type for key, type in of_table.items() if key.startswith("value.")
                }
                if of_table:
                    of_formats[name] = of_format
    return {"read": read, "write": written, "formats": of_formats}


def _place(option: Listed) -> str:
    return "/".join((*option.where, option.key))


def _demanded() -> dict[str, dict[str, Demand]]:
    """By option and line, what Flink demands beyond types; on lines between two that agree, what both do."""
    found: dict[str, dict[str, Demand]] = {}
    for line in VERSIONS:
        with flink(line) as asked:
            options, _ = listed(asked)
            for option, more in [*demands(asked, options), *demands_of_tables(asked, options)]:
                found.setdefault(_place(option), {})[line] = more
    for lines in found.values():
        if set(lines) == set(VERSIONS) and len({json.dumps(each) for each in lines.values()}) == 1:
            lines |= dict.fromkeys(LINES, next(iter(lines.values())))
    for jars, line in EXTERNAL.items():
        with flink(line, [*map(fetch, jars)]) as asked:
            options, _ = listed(asked, "tables")
            for option, more in demands_of_tables(asked, options):
                found.setdefault(_place(option), {}).setdefault(line, more)
    return found


def _row(option: Listed) -> dict[str, Any]:
    """The type, and for settings of jobs the default, which the package compares settings with."""
    compared = not option.where and option.key.startswith(("execution.", "pipeline.", "table."))
    return {"type": option.type} | ({"default": option.default} if compared and option.default else {})


def _ranges(lines: Mapping[str, Any]) -> dict[str, Any]:
    """Rows by ranges of lines, a range for as long as the row stays the same."""
    groups: list[tuple[list[str], Any]] = []
    for line in LINES:
        if line not in lines:
            continue
        follows = groups and LINES.index(line) == LINES.index(groups[-1][0][-1]) + 1
        if follows and groups[-1][1] == lines[line]:
            groups[-1][0].append(line)
        else:
            groups.append(([line], lines[line]))
    return {"-".join(dict.fromkeys((each[0], each[-1]))): row for each, row in groups}


def _wider(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Common restriction of two releases of a connector: a value is refused if both releases refuse it."""
    if one["type"] == other["type"]:
        return one if one == other else {"type": one["type"]}
    if "|" in one["type"] and "|" in other["type"]:
        return {"type": "|".join(dict.fromkeys([*one["type"].split("|"), *other["type"].split("|")]))}
    return {"type": "string"}


def _metadata(asked: Flink, options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The type of each key that a table hands out, and that it takes."""
    fields = asked.ask("metadata", *(text for pair in options.items() for text in pair)).split("\t")
    rows = list(zip(*[iter(fields)] * 3, strict=False))
    of = {use: {key: type for each, key, type in rows if each == use} for use in ("read", "write")}
    return of["read"], of["write"]


def _written(found: Mapping[str, Any]) -> str:
    """The data as JSON, an option of a connector or a setting in each line."""
    return re.sub(r"\n {3,}|\n {2}(?=[\]}],?\n {2,})", "", json.dumps(found, indent=1, sort_keys=True)) + "\n"


def check(seed: int) -> int:
    """Compare the package's parsing of random values with Flink's parsers, for every option and line."""
    draw = random.Random(seed)
    differing = asked_for = 0
    for line in LINES:
        with flink(line) as asked:
            options, zones = listed(asked)
            for option in options:
                declared = declared_option(option.where, option.key, line)
                if declared is not None and declared.type == "char":
                    continue  # Flink parses any text, and refuses it when it plans the table
                for text in drawn(draw, option.type, zones):
                    taken = asked.ask("parse", option.where[-1] if option.where else "", option.key, text) == "taken"
                    asked_for += 1
                    if declared is None or declared.parses(text, line) != taken:
                        differing += 1
                        says = "takes" if taken else "refuses"
                        print(f"{line} {'/'.join((*option.where, option.key))} = {text!r}: Flink {says} it")
        print(f"{line}: {len(options)} options", flush=True)
    print(f"{asked_for} values, {differing} differ")
    return int(differing > 0)


_SAMPLES = {
    "bool": ("true", "TRUE", "False", "yes", "1", " true", ""),
    "int": ("1", "-1", "+7", "1.0", " 1", "2147483647", "2147483648", "0x10", "1_000", ""),
    "long": ("1", "-9223372036854775808", "9223372036854775808", "1L", "1e3"),
    "float": (
        "1", "1.5", ".5", "1.", " 1 ", "1e39", "1e-60", "NaN", "-Infinity", "1f", "1,5", "0x1p3", "0x10", "x", "",
    ),
    "duration": (
        "1 s", "1s", "10", "1 min", "-1 s", "1.5 s", "1 us", "1 \u00b5s", "PT10S", "P1D", "-PT1S", "PT", "s",
        "1 h 5 min", "99999999999999999999", "106751991167301 d", "1 fortnight", "1 week", "",
    ),
    "memory": ("1", "64 mb", "64MB", "1 kib", "1 gib", "-1", "1.5 g", "9999999 tb", "mb", ""),
    "map": ("a:b", "a:b,c:d", "a", "a:b:c", "{a: b}", "'a:b':c", "a:b,", ""),
    "zone": (
        "UTC", "utc", "Z", "GMT+8", "GMT+08:00", "GMT+8:00", "GMT+0800", "GMT+18:30", "UTC+8", "EST", "default",
        "Nowhere/City", "",
    ),
    "string": ("x", ""),
}  # fmt: skip


def drawn(draw: random.Random, type: str, zones: Sequence[str]) -> Iterator[str]:
    """Draw values of a type, right ones and wrong ones."""
    if type.startswith("list:"):
        parts = list(drawn(draw, type.removeprefix("list:"), zones))
        yield from (f"{draw.choice(parts)};{draw.choice(parts)}", f"[{draw.choice(parts)}]", draw.choice(parts), "'x")
        return
    if type == "zone":
        yield draw.choice(zones)
    samples = _SAMPLES.get(type)
    if samples is None:
        constants = type.split("|")
        wrong = draw.choice(constants).lower(), draw.choice(constants) + "x", constants[0].replace("_", "-"), ""
        samples = (*constants, *wrong)
    yield from draw.sample(samples, min(5, len(samples)))
    alphabet = "".join(samples) + " 0123456789"
    yield "".join(draw.choice(alphabet) for _ in range(draw.randint(1, 6)))


if __name__ == "__main__":
    sys.exit(main())
