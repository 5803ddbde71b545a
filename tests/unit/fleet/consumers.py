"""What takes the formats says what it takes: GitLab's code quality and test cases as its documentation has them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from jsonschema import Draft202012Validator

CODE_QUALITY: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string", "pattern": "^(?!/|\\.\\.?/)."},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "additionalProperties": False,
                        "properties": {name: {"type": "integer", "minimum": 1} for name in ("begin", "end")},
                    },
                },
            },
        },
    },
}
"""GitLab's code quality: every key it asks for, paths from the root of the repository without ``./``."""
_JUNIT = {
    "testsuites": ({"name", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped"}, {"testcase"}),
    "testcase": ({"name", "classname", "file"}, {"failure", "error", "system-out"}),
    "failure": ({"type", "message"}, set[str]()),
    "error": ({"type", "message"}, set[str]()),
    "system-out": (set[str](), set[str]()),
}
"""By element its attributes and its children. ``file`` of a test case is what GitLab links to."""
_COMMAND = re.compile(
    r"::(?P<level>error|warning|notice) file=(?P<file>[^,\n]+),line=[1-9]\d*,endLine=[1-9]\d*,col=[1-9]\d*"
    r"(,endColumn=[1-9]\d*)?,title=[^,:\n]+::(?P<message>.+)"
)
_NOTE = re.compile(r"::notice title=flinkcompat (diff|plan|lint)::.+")


def code_quality(rows: Any) -> list[dict[str, Any]]:
    """The entries of a report of GitLab's code quality; each has a fingerprint of its own, or GitLab drops it."""
    Draft202012Validator(CODE_QUALITY).validate(rows)
    assert len({row["fingerprint"] for row in rows}) == len(rows)
    return list(rows)


def test_cases(text: str) -> dict[str, str]:
    """The cases of a JUnit file by name, each ``failure``, ``error`` or "" where it passes."""
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = _JUNIT[element.tag]
        assert set(element.keys()) == attributes, element.tag
        assert {each.tag for each in element} <= children, element.tag
    cases = list(root.iter("testcase"))
    found = {case.get("name", ""): next((each.tag for each in case if each.tag != "system-out"), "") for case in cases}
    assert len(found) == len(cases)
    for each in (root, root[0]):
        kinds = {"tests": len(cases), **{f"{kind}s": list(found.values()).count(kind) for kind in ("failure", "error")}}
        assert {key: int(each.get(key, "")) for key in kinds} == kinds
    return found


test_cases.__test__ = False  # type: ignore[attr-defined]


def commands(text: str) -> list[tuple[str, str]]:
    """Level and file of each finding's command of GitHub; every line but the last one is a command, errors come first.

    Notes are notices of no file, behind them.
    """
    *lines, summary = text.splitlines()
    assert summary.startswith("flinkcompat: ")
    notes = [line for line in lines if _NOTE.fullmatch(line)]
    assert lines[len(lines) - len(notes) :] == notes
    lines = lines[: len(lines) - len(notes)]
    found = [_COMMAND.fullmatch(line) for line in lines]
    assert all(found), lines
    levels = [each["level"] for each in found if each]
    assert levels == sorted(levels, key=["error", "warning", "notice"].index)
    return [(each["level"], each["file"]) for each in found if each]
