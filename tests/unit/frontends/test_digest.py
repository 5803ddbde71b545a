"""FLIP-11 row by row, G1 to N2: each in its own notation, and in PyFlink where it exists there.

``tests/fixtures/table_api/digest`` holds the programs and, in ``expected.toml``, what is to come of each: the operators
of its plan, what only other versions take of its notation, or what Flink refuses of it, and where.
"""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan
from airflow_flinkcompat.compat import Side, check
from airflow_flinkcompat.compat.boundary import hand_over
from airflow_flinkcompat.compat.changes.format import format_window
from airflow_flinkcompat.compat.hand_over import BoundaryError
from airflow_flinkcompat.compat.rules.ordered_rows import format_frame
from airflow_flinkcompat.model import JobSpec, language_of
from airflow_flinkcompat.plan.nodes import Over
from airflow_flinkcompat.plan.operators import AggregateOperator, OtherOperator, OverOperator, operators
from airflow_flinkcompat.plan.origins import describe
from tests.support.nightly import mostly_slow

FOLDER = Path(__file__).parents[2] / "fixtures" / "table_api" / "digest"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
FILES = sorted(path.name for path in FOLDER.iterdir() if path.suffix != ".toml")
ROWS = ["G1", "G2", "G3", "G4", "R0", "R1", "R2", "R3", "T1", "T2", "V1", "V2", "V3", "B1", "N1", "N2"]


def side(name: str, engine: str = "vvr", version: str | None = None) -> Side:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return Side(text, engine=engine, engine_version=version, source=name, language=language_of(name))


def expected(name: str) -> dict[str, Any]:
    """What is to come of a file; what one of the two notations says otherwise stands under its ending."""
    case = EXPECTED[Path(name).stem]
    return {**case, **case.get(Path(name).suffix[1:], {})}


def said(of: Side) -> list[str]:
    """What every operator computes, by which keys, on which clock."""
    return [_said(operator) for output in of.outputs[0].values() for operator in operators(output)]


def _said(operator: Any) -> str:
    match operator:
        case AggregateOperator():
            clock = operator.window and operator.window.time_attribute
            return f"{format_window(operator.window)} by {_all(operator.keys)}: {_all(operator.aggregates)} ({clock})"
        case OverOperator():
            ((time, *_),) = operator.order
            order = f"{_all(operator.partition_by)} in order of {describe(time)}"
            return f"{format_frame(operator.frame)} by {order}: {_all(operator.aggregates)} ({operator.clock})"
        case OtherOperator(kind=kind):
            return kind
    raise AssertionError(operator)


def _all(values: Any) -> str:
    return ", ".join(map(describe, values)) or "-"


def test_every_row_of_the_digest_has_programs_and_every_program_is_expected() -> None:
    assert {name.partition("-")[0] for name in FILES} == set(ROWS)
    assert {Path(name).stem for name in FILES} == EXPECTED.keys()
    assert {Path(name).suffix for name in FILES} == {".table", ".py"}


@pytest.mark.parametrize("name", FILES)
def test_what_comes_of_a_program(name: str) -> None:
    case, program = expected(name), side(name)
    problems = [(str(problem.span).partition(":")[2], problem.message) for problem in program.program.problems]
    if "unread" in case:
        assert problems[0][0] == case["at"]
        assert case["unread"] in problems[0][1]
        return
    assert said(program) == case.get("operators", [])
    assert [note.text.partition(" (")[0] for note in program.parsed.notes if note.last is not None] == case.get(
        "notation", []
    )


@pytest.mark.parametrize("name", mostly_slow(FILES, 6))
def test_how_a_program_is_judged_that_stays_as_it_is(name: str) -> None:
    """Refused or not to be read: never compatible. In a notation of the past: by the engine's version."""
    case = expected(name)
    outcomes = {}
    for engine in ("vvr", "flink"):
        report = check(side(name, engine), side(name, engine))
        outcomes[engine] = report.outcome.value
        assert "warned" not in case or any(case["warned"] in line for line in report.warnings)
        if "refused" in case:
            (finding,) = (each for each in report.findings if each.rule == "program-refused" and each.after_span)
            assert case["refused"] in finding.message
            assert str(finding.after_span) == f"{name}:{case['at']}"
    if "refused" in case:
        assert outcomes == {"vvr": "unknown", "flink": "incompatible"}
    elif "unread" in case:
        assert set(outcomes.values()) == {"unknown"}
    else:
        assert outcomes == {"vvr": "compatible", "flink": "unknown" if "notation" in case else "compatible"}


@pytest.mark.parametrize("name", ["G1-keyed", "G2-rows", "R1-event-time"])
def test_a_version_of_vvr_takes_what_its_flink_takes(name: str) -> None:
    old = side(f"{name}.table", version="8")
    assert check(old, old).outcome.value == "unknown"


SHARED = [stem for stem, case in EXPECTED.items() if "operators" in case and "refused" not in case]


@pytest.mark.parametrize("stem", [stem for stem in SHARED if {f"{stem}.py", f"{stem}.table"} <= set(FILES)])
def test_both_notations_mean_one_plan(stem: str) -> None:
    """Processing time is a column to one and none to the other: these windows are compared above."""
    report = check(side(f"{stem}.py"), side(f"{stem}.table"))
    assert [finding.rule for finding in report.findings] == ["unchanged"]


@pytest.mark.parametrize("kind", ["tumble", "slide", "session", "rows"])
def test_b1_a_batch_table_is_computed_like_a_stream(kind: str) -> None:
    stream, batch = (side(f"B1-{kind}-{mode}.table") for mode in ("stream", "batch"))
    assert [text.rpartition(" (")[0] for text in said(stream)] == [text.rpartition(" (")[0] for text in said(batch)]


def test_r0_several_row_windows_keep_each_its_own_frame() -> None:
    (pipeline,) = side("R0-two-windows.table").program.pipelines
    (over,) = (node for node in _below(pipeline.sink.input) if isinstance(node, Over))
    assert [format_frame(call.frame) for call in over.calls] == [
        "ROWS UNBOUNDED PRECEDING within TUMBLE('10' MINUTE)",
        "ROWS 5 PRECEDING",
    ]


def _below(node: Any) -> list[Any]:
    return [node, *(inner for each in node.inputs for inner in _below(each))]


@pytest.mark.parametrize(
    "stem",
    [
        "G2-rows", "G3-rows", "R0-keyed", "R0-global", "R1-event-time", "R1-rows", "R2-event-time", "R2-rows",
        "R2-unbounded", "R2-unbounded-following", "R3-event-time", "B1-session-stream", "B1-rows-stream",
    ],
)  # fmt: skip
def test_what_no_flink_runs_can_be_computed_from_history(stem: str) -> None:
    with_files = "WITH ('connector' = 'filesystem', 'path' = 'file:///history/{}', 'format' = 'csv');"
    text = (FOLDER / f"{stem}.table").read_text(encoding="utf-8").replace("val res = ", "").strip()
    text = re.sub(r"WITH \('connector'.*", with_files.format("tab"), text)
    sink = f"CREATE TABLE totals (a STRING, total BIGINT) {with_files.format('totals')}\n"
    request = BackfillRequest(JobSpec(f'{sink}{text}.insertInto("totals")', source="job.table", language="table"))
    assert [write.rows.name for write in plan(request).work.writes] == ["totals"]


@pytest.mark.parametrize("suffix", ["table", "py"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("N2-event-time", ""),
        ("N2-processing-time", "its windows do not use event time"),
        ("N2-rows", "a window over rows ends after enough rows of its key"),
    ],
)
def test_n2_only_event_time_can_be_computed_again(name: str, why: str, suffix: str) -> None:
    program, midnight = side(f"{name}.{suffix}").program, datetime(2026, 1, 1)
    if why:
        with pytest.raises(BoundaryError, match=why):
            hand_over(program, midnight, {}, datetime.now(UTC))
    else:
        record = hand_over(program, midnight, {}, datetime.now(UTC))
        assert [sink.windows for sink in record.sinks] == [("TUMBLE(ts, '10' MINUTE)",)]
