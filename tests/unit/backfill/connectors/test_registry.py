"""A connector is two modules: one that is added is found, planned with and run, and nothing else knows of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, connectors, explain, plan, run_backfill
from airflow_flinkcompat.backfill.connectors.registry import known_connectors, merged
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULES = {
    "numbers_and_texts.py": """
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from airflow_flinkcompat.backfill.connectors.registry import Connector
from airflow_flinkcompat.backfill.protocols import Needs


@dataclass(frozen=True)
class NumberSource:
    table: str
    count: int
    needs: ClassVar[Needs] = Needs()
    ordered: ClassVar[bool] = False

    @property
    def place(self):
        return f"numbers:{self.count}"

    def decode(self, column, field, table):
        return f"CAST({field} AS INT)"


@dataclass(frozen=True)
class TextSink:
    place: str
    needs: ClassVar[Needs] = Needs()
    exclusive: ClassVar[bool] = True
    replaces: ClassVar[bool] = True
    write_mode: ClassVar[str] = "replaces the file"

    def check(self, rows, bounds):
        pass


CONNECTOR = Connector(
    sources={"numbers": lambda table: NumberSource(table.name, int(table.option("count")))},
    sinks={"numbers": lambda table: TextSink(table.option("path"))},
    named_sources={"numbers": lambda table, place, what: NumberSource(table.name, int(place))},
    named_sinks={"numbers": lambda table, place, what: TextSink(place)},
)
""",
    "numbers_and_texts_spark.py": """
from pathlib import Path


class NumberReader:
    def __init__(self, session, source):
        self.session, self.source = session, source

    def check(self):
        pass

    def rows(self):
        return self.session.range(self.source.count).selectExpr("id AS f0")


class TextPublication:
    def __init__(self, session, sink, rows, bounds):
        self.path, self.lines = Path(sink.place), None

    def check(self):
        pass

    def stage(self, rows):
        self.lines = sorted(str(row[0]) for row in rows.collect())

    def publish(self):
        self.path.write_text(" ".join(self.lines))
        return (self.path.name,)

    def discard(self):
        pass


reader, publication = NumberReader, TextPublication
""",
}
QUERY = "INSERT INTO o SELECT a * a FROM t WHERE a > 1"


def declared(place: Path, connector: str = "numbers") -> str:
    return script(
        f"CREATE TABLE t (a INT) WITH ('connector' = '{connector}', 'count' = '4')",
        f"CREATE TABLE o (b INT) WITH ('connector' = '{connector}', 'path' = '{place}')",
        QUERY,
    )


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The connector ``numbers``, whose modules appear while the program runs."""
    folder = tmp_path / "more"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(connectors, "__path__", [*connectors.__path__, str(folder)])
    yield
    for name in [name for name in sys.modules if name.startswith(f"{connectors.__name__}.numbers_and_texts")]:
        del sys.modules[name]


@pytest.mark.usefixtures("numbers")
def test_two_modules_are_a_connector(tmp_path: Path) -> None:
    request = BackfillRequest(JobSpec(declared(tmp_path / "out"), source="job.sql"))
    planned = plan(request)
    assert [source.place for source in planned.work.sources] == ["numbers:4"]
    assert "replaces the file" in explain(planned, request)
    assert f"{connectors.__name__}.numbers_and_texts_spark" not in sys.modules
    elsewhere = BackfillRequest(JobSpec(request.job.script), tables={"t": "numbers:7"}, sinks={"o": "numbers:/there"})
    work = plan(elsewhere).work
    assert ([source.place for source in work.sources], work.writes[0].target.place) == (["numbers:7"], "/there")
    other = BackfillRequest(JobSpec(declared(tmp_path / "out", "letters")))
    names = [*merged(lambda each: each.sources)]
    assert names.index("filesystem") < names.index("numbers")
    with pytest.raises(BackfillError, match=f"supports only {', '.join(names)}"):
        plan(other)


def test_without_its_modules_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(BackfillError, match="has connector numbers, but a backfill supports only filesystem, delta"):
        plan(BackfillRequest(JobSpec(declared(tmp_path / "out"))))


@pytest.mark.slow
@pytest.mark.usefixtures("numbers")
def test_it_is_read_and_written(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.getActiveSession() is spark
    result = run_backfill(BackfillRequest(JobSpec(declared(tmp_path / "out"), source="job.sql")))
    assert (tmp_path / "out").read_text(encoding="utf-8") == "4 9"
    assert (result.rows_read, result.sinks[0].files) == (4, ("out",))


STEMS = {path.stem for path in Path(connectors.__path__[0]).glob("*.py")}
NAMES = sorted(name for name in STEMS if f"{name}_spark" in STEMS)


def test_each_connector_has_the_same_names_on_both_sides() -> None:
    """One that is not read, or not written, raises an error that says so."""
    assert len(known_connectors()) == len(NAMES) >= 5
    for connector in known_connectors():
        assert {*connector.sources, *connector.sinks}
        assert {*connector.sources} == {*connector.sinks}


@pytest.mark.parametrize("name", NAMES)
def test_no_connector_knows_another(name: str) -> None:
    folder = Path(connectors.__path__[0])
    text = "".join((folder / f"{name}{ending}.py").read_text(encoding="utf-8") for ending in ("", "_spark"))
    assert {other for other in NAMES if re.search(rf"{connectors.__name__}\.{other}\b", text)} <= {name}
