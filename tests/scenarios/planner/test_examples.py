"""The example scripts of this repository: Flink 2.3 plans each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.local_flink import jars
from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import Installation, find, install
from airflow_flinkcompat.planner.questions import plan

pytestmark = pytest.mark.slow

JARS = ("flink-sql-connector-kafka", "flink-connector-jdbc-core", "flink-connector-jdbc-postgres")
ROOT = Path(__file__).parents[3]
FILES = [*sorted(ROOT.glob("dags/scripts/*.sql")), *sorted(ROOT.glob("dev/demo/scripts/*.sql"))]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}:{place}")
    for page in PAGES
    for place, block in enumerate(re.findall(r"```sql\n(.*?)```", page.read_text("utf-8"), re.DOTALL), start=1)
    if "CREATE TABLE" in block and "INSERT INTO" in block
]


@pytest.fixture(scope="module")
def flink() -> Iterator[Installation]:
    install("2.3")
    yield find("2.3", tuple(map(jars.fetch, JARS)))
    close_all()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_script_is_planned(flink: Installation, path: Path) -> None:
    assert plan(Side(path.read_text("utf-8"), engine="flink"), flink).refusal is None


@pytest.mark.parametrize("script", BLOCKS)
def test_a_script_of_a_page_is_planned(flink: Installation, script: str) -> None:
    assert plan(Side(script, engine="flink"), flink).refusal is None


def test_a_script_that_flink_refuses_is_seen(flink: Installation) -> None:
    script = FILES[0].read_text("utf-8")
    refusal = plan(Side(re.sub(r"\bFROM\b", "FROM no_such_table, ", script), engine="flink"), flink).refusal
    assert refusal is not None


def test_what_a_stand_in_takes_refuses_nothing_for_certain(flink: Installation) -> None:
    """A sink over JDBC takes changes by key; its stand-in may not."""
    (page,) = (each.values[0] for each in BLOCKS if str(each.id).startswith("upgrading.md"))
    refusal = plan(Side(str(page), engine="flink"), find("2.3")).refusal
    assert refusal is None or not refusal.conclusive
