"""An interval of more digits than its unit takes is refused by Flink wherever it stands, and the finding says so."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check

TABLE = "CREATE TABLE t (a INT, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts{}) WITH ('connector' = 'x');\n"
QUERY = "SELECT a, b FROM t;"
PLACES = {
    "window": "SELECT SUM(b) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), {})) GROUP BY window_start, window_end;",
    "group window": "SELECT a, TUMBLE_START(ts, {}) FROM t GROUP BY a, TUMBLE(ts, {});",
    "interval join": "SELECT x.a FROM t x JOIN t y ON x.a = y.a AND x.ts BETWEEN y.ts - {} AND y.ts;",
    "frame": "SELECT SUM(b) OVER (PARTITION BY a ORDER BY ts RANGE BETWEEN {} PRECEDING AND CURRENT ROW) FROM t;",
    "pattern": "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES x.b AS q\n"
    "PATTERN (x y) WITHIN {} DEFINE x AS x.b > 1);",
    "expression": "SELECT ts + {} FROM t;",
    "subquery": "SELECT a FROM t WHERE a IN (SELECT a FROM t WHERE ts > CURRENT_TIMESTAMP - {});",
    "unused view": "CREATE VIEW v AS SELECT ts - {} AS x FROM t;\n" + QUERY,
    "alteration": "ALTER TABLE t MODIFY WATERMARK FOR ts AS ts - {};\n" + QUERY,
    "statement set": "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT ts - {} FROM t; END;",
}


def refusals(script: str, engine: str = "flink") -> list[str]:
    side = Side(script, engine=engine)
    report = check(side, side)
    found = [f.message for f in report.findings if f.rule == "program-refused" and f.after_span is not None]
    if found:
        assert report.outcome is (Outcome.INCOMPATIBLE if engine == "flink" else Outcome.UNKNOWN)
    return found


@pytest.mark.parametrize("place", PLACES)
def test_it_is_refused_wherever_it_stands(place: str) -> None:
    script = TABLE.format("") + PLACES[place]
    (said, *others) = refusals(script.replace("{}", "INTERVAL '150' SECOND"))
    assert said.startswith("Flink refuses the proposed script: Interval field value 150 exceeds precision of SECOND(2)")
    assert said.endswith("write SECOND(3), or use a larger unit")
    assert set(others) <= {said}
    assert refusals(script.replace("{}", "INTERVAL '150' SECOND"), "vvr")
    for taken in ("'150' SECOND(3)", "'50' SECOND", "'150 10' DAY(3) TO HOUR"):
        assert refusals(script.replace("{}", f"INTERVAL {taken}")) == []


def test_a_watermark_is_refused_too() -> None:
    assert refusals(TABLE.format(" - INTERVAL '150' SECOND") + QUERY)
    assert not refusals(TABLE.format(" - INTERVAL '150' SECOND(3)") + QUERY)


# Each seen with Flink 2.3, in its words.
@pytest.mark.parametrize(
    ("literal", "words"),
    [
        *(
            (f"'150' {unit}", f"150 exceeds precision of {unit}(2) field")
            for unit in ("SECOND", "MINUTE", "HOUR", "DAY")
        ),
        *(
            (f"'150' {unit}", f"150 exceeds precision of {unit}(2) field")
            for unit in ("WEEK", "MONTH", "QUARTER", "YEAR")
        ),
        ("-'150' SECOND", "150 exceeds precision of SECOND(2) field"),
        ("'-150' SECOND", "150 exceeds precision of SECOND(2) field"),
        ("'150 10' DAY TO HOUR", "150 exceeds precision of DAY(2) field"),
        ("'5' SECOND(0)", "Interval leading field precision '0' out of range for INTERVAL SECOND(0)"),
        ("'1' DAY(11)", "Interval leading field precision '11' out of range for INTERVAL DAY(11)"),
        ("'1.12' SECOND(2, 1)", "Illegal interval literal format '1.12' for INTERVAL SECOND(2, 1)"),
        ("'1.12' SECOND(2, 10)", "Interval fractional second precision '10' out of range for INTERVAL SECOND(2, 10)"),
        ("'1.1234567' SECOND", "Illegal interval literal format '1.1234567' for INTERVAL SECOND"),
    ],
)
def test_every_unit_says_it_in_flinks_words(literal: str, words: str) -> None:
    (said,) = refusals(TABLE.format("") + f"SELECT ts + INTERVAL {literal} FROM t;")
    assert words in said
    assert "; " in said


def test_giving_the_precision_changes_nothing_else() -> None:
    """What was refused did not run, so nobody knows what runs instead; nothing else is found."""
    old, new = (
        Side(TABLE.format("") + PLACES["window"].replace("{}", f"INTERVAL {length}"), engine="flink")
        for length in ("'150' SECOND", "'150' SECOND(3)")
    )
    report = check(old, new)
    assert report.outcome is Outcome.UNKNOWN
    assert {finding.rule for finding in report.findings} == {"program-refused"}
