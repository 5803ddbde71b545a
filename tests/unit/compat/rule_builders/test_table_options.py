"""Where sources begin by themselves, as a report says it."""

from __future__ import annotations

import pytest

from airflow_flinkcompat import compat

SCRIPT = """CREATE TABLE o (a INT) WITH ('connector' = 'kafka', 'topic' = 't', 'properties.group.id' = 'g'{more});
CREATE TABLE f (a INT) WITH ('connector' = 'filesystem', 'path' = '/f');
CREATE TABLE k (a INT, n BIGINT) WITH ('connector' = 'print');
CREATE VIEW v AS SELECT a FROM o{hint};
INSERT INTO k SELECT v.a, {aggregate}(v.a) FROM v JOIN f ON v.a = f.a GROUP BY v.a;
INSERT INTO k SELECT a, COUNT(*) FROM f GROUP BY a;
"""
FILES = ("f", "starts with all files, including files that were read before")


@pytest.mark.parametrize(
    ("more", "hint", "words"),
    [
        ("", "", "by its connector's default, scan.startup.mode = group-offsets (properties.group.id = g)"),
        (
            ", 'scan.startup.mode' = 'earliest-offset'",
            "",
            "by its own options: scan.startup.mode = earliest-offset, properties.group.id = g",
        ),
        (
            ", 'scan.startup.mode' = 'earliest-offset'",
            " /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */",
            "by its own options: scan.startup.mode = latest-offset, properties.group.id = g",
        ),
    ],
)
def test_a_report_says_where_sources_begin(more: str, hint: str, words: str) -> None:
    old, new = (SCRIPT.format(more=more, hint=hint, aggregate=name) for name in ("MIN", "MAX"))
    report = compat.check(old, new, "flink")
    assert report.sources == (("o", f"starts {words}"), FILES)
    assert compat.Report.from_dict(report.to_dict()) == report
    text = compat.render_text(report, 10_000)
    assert (
        f"A start without state ignores the source positions in the savepoint: o starts {words}; f {FILES[1]}." in text
    )
