"""The report on a corpus: what it counts, what it lists, and what it asks for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dev.measure.corpus import CHANGES, PROGRAMS, main

TABLES = "CREATE TABLE t (a STRING, b BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');\n"
SUMS = TABLES + "SELECT a, SUM(b) FROM t GROUP BY a"
OWN = TABLES + "CREATE TABLE s (a STRING) WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'json');\n"
OWN += "INSERT INTO s SELECT {}(a) FROM t"
CHANGED = [
    {"id": "comment", "cosmetic": True, "judgement": "right", "old": SUMS, "new": f"-- sums\n{SUMS}"},
    {"id": "key", "cosmetic": False, "judgement": "right", "old": SUMS, "new": SUMS.replace("BY a", "BY a, b")},
    {"id": "unread", "cosmetic": False, "judgement": "", "old": SUMS, "new": SUMS + ";\nANALYSE THAT"},
    {"id": "before", "cosmetic": False, "judgement": "", "old": SUMS + ";\nANALYSE THAT", "new": SUMS},
    {"id": "mould", "cosmetic": False, "judgement": "", "old": SUMS, "new": SUMS.replace("FROM t", "FROM {{ t }}")},
    {"id": "notes", "cosmetic": False, "judgement": "", "old": "SELECT * FROM here", "new": "SELECT a FROM here"},
    {"id": "own", "cosmetic": False, "judgement": "", "old": OWN.format("g"), "new": OWN.format("h")},
    {"id": "empty", "cosmetic": False, "judgement": "", "old": "", "new": SUMS},
]
READ = """
from pyflink.table import EnvironmentSettings, TableEnvironment
environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
environment.execute_sql("CREATE TABLE t (a STRING) WITH ('connector' = 'datagen')")
environment.execute_sql("CREATE TABLE s (a STRING) WITH ('connector' = 'print')")
environment.execute_sql("INSERT INTO s SELECT a FROM t")
"""
WRITTEN = [
    {"id": "read", "path": "read.py", "text": READ},
    {"id": "not read", "path": "other.py", "text": READ.replace('"INSERT', 'open(f()).read() or "INSERT')},
    {"id": "old", "path": "old.py", "text": READ + "environment.scan('t').insert_into('s')\n"},
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows: Mapping[str, Sequence[Mapping[str, object]]] = {CHANGES: CHANGED, PROGRAMS: WRITTEN}
    for name, each in rows.items():
        (tmp_path / name).write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in each).encode()))
    return tmp_path


def test_shares_of_outcomes_and_of_programs(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On both engines, each change once; what holds no statement is counted aside."""
    written = corpus / "report.md"
    assert main([str(corpus), "--write", str(written)]) == 0
    report = capsys.readouterr().out
    assert written.read_text(encoding="utf-8") == report
    of_flink = report.partition("engine flink")[2]
    for answer, stateless, cosmetic in (
        ("compatible", 0, 1), ("unknown", 1, 0), ("incompatible", 0, 0), ("refused new", 0, 0), ("refused old", 0, 0),
        ("template", 0, 0), ("bare SELECTs", 0, 0),
    ):  # fmt: skip
        assert f"| {answer} | 1 | 14% | {stateless} | {cosmetic} |" in of_flink
    assert "Judged 7; 1 hold no query." in of_flink
    assert "| output-changed | 1 | 1 |" in of_flink
    assert "| group-key-changed | 1 | 1 |" in of_flink
    assert "### Reasons of unknown" in of_flink
    assert "Read whole: 2 of 3." in report
    assert "since 1.14 and declare their tables: 1 of 2." in report


def test_what_decides_over_each_change_of_an_outcome(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(corpus), "--list", "unknown", "--engine", "flink"]) == 0
    listed = capsys.readouterr().out
    assert "own stateless []" in listed
    assert "    output-changed: " in listed
    assert "key " not in listed


def test_a_folder_without_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert f"{tmp_path} contains no {CHANGES} and no {PROGRAMS}" in capsys.readouterr().err
