"""The sample of public scripts, and the table of the results of their audit."""

from __future__ import annotations

from collections import Counter

from airflow_flinkcompat.fleet.audit.values import AuditResult
from dev.measure.upgrade_audits import drawn, row_of


def test_a_sample_is_the_same_for_a_seed_and_holds_each_script_once() -> None:
    scripts = [f"SELECT {number};\n" for number in range(50)] * 2
    sample = drawn(scripts, 20, 1)
    assert sample == drawn(reversed(scripts), 20, 1)
    assert len(set(sample)) == 20
    rest = drawn(scripts, 40, 2, sample)
    assert len(rest) == 30
    assert not {*rest} & {*sample}


def test_unreadable_scripts_and_scripts_without_a_job_do_not_count() -> None:
    counts = {"compatible": 5, "conditional": 2, "incompatible": 2, "unknown": 1, "unreadable": 7, "no job": 3}
    row = row_of("1.20:2.3", Counter({AuditResult(name): count for name, count in counts.items()}))
    assert row == ("1.20 to 2.3", 10, 5, 2, 2, 1, 7, 3, "90.0%")
