"""``flinkcompat batch``: one answer a line, in order, and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.cli.command import (
    BROKEN,
    COMPATIBLE,
    ENVIRONMENT,
    INCOMPATIBLE,
    OF_OUTCOME,
    PARTIAL,
    SCHEMA,
    SECRETIVE,
    TABLES,
    V1,
    Run,
    answers,
    lines,
    save,
)
from tests.support.nightly import mostly_slow


def test_batch_names_secrets_and_judges_all_the_same(run: Run) -> None:
    """An audit of a fleet loses no verdict; an error of syntax leaves none to give."""
    judged, broken = answers(
        run(
            "batch",
            "-",
            "--fail-on",
            "never",
            stdin=lines({"id": 1, "old": V1, "new": SECRETIVE}, {"id": 2, "old": BROKEN, "new": V1}),
        )
    )
    assert judged["outcome"] in OF_OUTCOME
    (warning,) = judged["warnings"]
    assert warning.startswith("new:3:")
    assert "properties.sasl.password is a secret in plain text" in warning
    assert "hunter2" not in json.dumps(judged)
    assert broken == {"id": 2, "line": 2, "error": "old:5:1: Expected something after SELECT"}


def test_batch_keeps_the_order_and_goes_on_after_bad_lines(run: Run) -> None:
    found = answers(
        run(
            "batch",
            "-",
            "--engine",
            "vvr",
            stdin=lines(
                {"id": 1, "old": V1, "new": COMPATIBLE},
                b"\n",
                b"not json\n",
                {"id": "two", "old": V1, "new": INCOMPATIBLE},
                b"[1, 2]\n",
                {"id": 3, "old": V1},
                {"id": 4, "old": "", "new": V1},
                {"id": 5, "old": TABLES, "new": V1},
                b"\xff\xfe\n",
                {"id": 6, "old": V1, "new": V1, "engine": "spark"},
                {"id": 7, "old": V1, "new": V1, "settings_old": "x"},
                {"id": 8, "old": V1, "new": V1, "functions": ["f"]},
                {"id": 9, "old": V1, "new": "TRUNCATE TABLE t;" + V1},
                {"old": V1, "new": V1},
            ),
        )
    )
    assert [a.get("id") for a in found] == [1, None, "two", None, 3, 4, 5, None, 6, 7, 8, 9, None]
    assert [a.get("outcome") for a in found] == [
        "compatible", None, "incompatible", *[None] * 8, "unknown", "compatible",
    ]  # fmt: skip
    failed = [a for a in found if "error" in a]
    assert [a["line"] for a in failed] == [3, 5, 6, 7, 8, 9, 10, 11, 12]
    assert all(set(a) == {"id", "line", "error"} and a["error"] for a in failed)
    assert all(set(a) == {"id", "outcome", "findings"} for a in found if "error" not in a)


ODD_LINES = {
    "engine list": (b'"engine": ["flink"]', 1, "engine ['flink'] is not one of"),
    "engine object": (b'"engine": {"a": 1}', 1, "is not one of"),
    "engine null": (b'"engine": null', 1, "is not one of"),
    "functions number": (b'"functions": 5', 1, '"functions" must be a list'),
    "functions true": (b'"functions": true', 1, '"functions" must be a list'),
    "functions text": (b'"functions": "f=scalar"', 1, '"functions" must be a list'),
    "functions of numbers": (b'"functions": [1]', 1, '"functions" must be a list'),
    "functions of lists": (b'"functions": {"f": ["scalar"]}', 1, "is not of the form NAME=KIND"),
    "settings list": (b'"settings_old": []', 1, '"settings_old" must be an object'),
    "settings of null": (b'"settings_new": {"a.b": null}', 1, "the value of 'a.b' must be"),
    "settings of objects": (b'"settings_new": {"a.b": {"c": "d"}}', 1, "the value of 'a.b' must be"),
    "surrogate setting": (b'"settings_new": {"a.b": "\\udfff"}', 1, "half of a surrogate pair"),
    "surrogate id": (b'"id": "\\ud800"', None, "half of a surrogate pair"),
    "NaN": (b'"id": NaN', None, "NaN is not a number in JSON"),
    "infinite": (b'"id": -Infinity', None, "-Infinity is not a number in JSON"),
    "too large": (b'"id": 1e999', None, "1e999 is not a number in JSON"),
    "too many digits": (b'"id": ' + b"9" * 5000, None, "digits"),
    "too deep": (b'"x": ' + b"[" * 100_000, None, "nested too deeply"),
}


@pytest.mark.parametrize("case", list(ODD_LINES))
def test_batch_answers_an_odd_line_and_goes_on(run: Run, case: str) -> None:
    text, identity, message = ODD_LINES[case]
    pair = json.dumps({"id": 1, "old": V1, "new": V1}).encode()
    result = run(
        "batch",
        "-",
        "--fail-on",
        "never",
        stdin=pair[:-1] + b", " + text + b"}\n" + lines({"id": "next", "old": V1, "new": V1}),
    )
    assert result.code == 0
    first, second = (json.loads(line, parse_constant=pytest.fail) for line in result.out.splitlines())
    assert set(first) == {"id", "line", "error"}
    assert (first["id"], first["line"]) == (identity, 1)
    assert message in first["error"]
    assert (second["id"], second["outcome"]) == ("next", "compatible")


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (7, "7"), (1.5, "1.5")])
def test_batch_settings_are_texts_as_json_writes_them(run: Run, value: Any, text: str) -> None:
    pair = {"id": 1, "old": V1, "new": V1, "settings_old": {"a.b": value}}
    changes = lines(*({**pair, "settings_new": {"a.b": value}} for value in (text, "x")))
    same, other = answers(run("batch", "-", "--fail-on", "never", stdin=changes))
    assert same["outcome"] == "compatible"
    assert other["findings"][0]["before"] == f"a.b = {text}"


def test_batch_reads_settings_functions_and_engine(run: Run) -> None:
    weighed = V1.replace("SUM(amount)", "weigh(amount)")
    changed = weighed.replace("SELECT customer", "SELECT UPPER(customer)")
    pairs = [
        {"id": "settings", "old": V1, "new": V1, "settings_old": {"a.b": 1}, "settings_new": {"a.b": "2"}},
        {"id": "same", "old": V1, "new": V1, "settings_old": {"a.b": 1}, "settings_new": {"a.b": "1"}},
        {"id": "list", "old": weighed, "new": changed, "functions": ["weigh=aggregate:python"]},
        {"id": "mapping", "old": weighed, "new": changed, "functions": {"weigh": "aggregate:java"}},
        {"id": "engine", "old": V1, "new": PARTIAL, "engine": "flink"},
        {"id": "other", "old": V1, "new": PARTIAL, "engine": "vvr"},
    ]
    Path("pairs.jsonl").write_bytes(lines(*pairs))
    found = {a["id"]: a for a in answers(run("batch", "pairs.jsonl", "--engine", "vvr"))}
    assert [found[i]["outcome"] for i in ("settings", "same", "list", "mapping", "engine", "other")] == [
        "unknown", "compatible", "unknown", "compatible", "incompatible", "partial",
    ]  # fmt: skip
    assert "python-aggregate" in {f["rule"] for f in found["list"]["findings"]}
    assert "user-aggregate" in {f["rule"] for f in found["mapping"]["findings"]}
    on_flink = answers(run("batch", "pairs.jsonl", "--engine", "flink", "--engine-version", "2.0"))
    assert [a["outcome"] for a in on_flink[:2]] == ["unknown", "compatible"]


def test_batch_judges_both_engines_where_none_is_named(run: Run) -> None:
    pairs = [{"id": name, "old": V1, "new": text} for name, text in OF_OUTCOME.items()]
    named = [
        {**pair, "id": f"{engine} {pair['id']}", "engine": engine} for engine in ("vvr", "flink") for pair in pairs
    ]
    result = run("batch", "-", "--fail-on", "never", stdin=lines(*pairs, *named))
    found = {answer["id"]: answer for answer in answers(result)}
    order = ["compatible", "partial", "unknown", "incompatible"]
    for name in OF_OUTCOME:
        each = {engine: found[f"{engine} {name}"] for engine in ("vvr", "flink")}
        assert all(set(answer) == {"id", "outcome", "findings"} for answer in each.values())
        own = {engine: {key: answer[key] for key in ("outcome", "findings")} for engine, answer in each.items()}
        assert found[name]["engines"] == own
        assert found[name]["outcome"] == max((answer["outcome"] for answer in own.values()), key=order.index)
        assert {key: found[name][key] for key in ("outcome", "findings")} in own.values()
    assert found["partial"]["outcome"] == "incompatible"


@pytest.mark.parametrize("outcome", mostly_slow(tuple(OF_OUTCOME), 4))
def test_batch_exits_by_the_worse_verdict_where_no_engine_is_named(run: Run, outcome: str) -> None:
    pairs = [{"id": name, "old": V1, "new": OF_OUTCOME[name]} for name in ("compatible", outcome)]
    save(old=V1, new=OF_OUTCOME[outcome])
    both = run("batch", "-", stdin=lines(*pairs))
    worse = json.loads(both.out.splitlines()[-1])["outcome"]
    assert both.code == (worse in ("unknown", "incompatible")) == run("check", "old.sql", "new.sql").code
    for code, gate in ((0, "never"), (int(worse == "incompatible"), "incompatible")):
        assert run("batch", "-", "--fail-on", gate, stdin=lines(*pairs)).code == code
    for engine in ("vvr", "flink"):
        named = lines(*({**pair, "engine": engine} for pair in pairs))
        assert run("batch", "-", stdin=named).code == 0
        assert run("batch", "-", "--engine", engine, stdin=lines(*pairs)).code == 0
        gated = run("batch", "-", "--engine", engine, "--fail-on", "partial", stdin=lines(*pairs))
        assert gated.code == (json.loads(gated.out.splitlines()[-1])["outcome"] != "compatible")


def test_a_gate_of_batch_is_not_passed_by_what_cannot_be_read(run: Run) -> None:
    pairs = lines({"id": 1, "old": V1, "new": INCOMPATIBLE}, b"no json\n", {"id": 2, "old": V1, "new": BROKEN})
    assert run("batch", "-", stdin=pairs).code == 2
    assert run("batch", "-", "--engine", "flink", "--fail-on", "partial", stdin=pairs).code == 2
    assert run("batch", "-", "--fail-on", "never", stdin=pairs).code == 0
    assert run("batch", "-", "--engine", "flink", stdin=pairs).code == 0


class TestProjectFile:
    FILE = """\
    engine = "flink"
    engine_version = "1.20"
    catalog = "tables.sql"
    fail_on = "partial"

    [deployments.orders]
    script = "orders.sql"
    engine = "vvr"
    settings = { "a.b" = "c" }

    [deployments.broken]
    """

    @pytest.fixture(autouse=True)
    def file(self, run: Run) -> None:
        save(tables=TABLES)
        Path("flinkcompat.toml").write_text(self.FILE, encoding="utf-8")

    def test_a_line_is_judged_by_what_it_says(self, run: Run) -> None:
        old, new = (text.removeprefix(TABLES) for text in (V1, PARTIAL))
        pairs = lines(
            {"id": "common", "old": old, "new": new},
            {"id": "own", "old": old, "new": new, "deployment": "orders", "settings_new": {"a.b": "d"}},
            {"id": "engine", "old": old, "new": new, "engine": "vvr"},
        )
        result = run("batch", "-", stdin=pairs)
        assert result.code == 1, "by the gate of the file"
        assert result.err == (
            "flinkcompat: By flinkcompat.toml: engine flink; version 1.20; catalog tables.sql; fail_on partial.\n"
        )
        common, own, engine = (json.loads(line) for line in result.out.splitlines())
        assert [each["outcome"] for each in (common, own, engine)] == ["incompatible", "unknown", "partial"]
        assert all(set(each) == {"id", "outcome", "findings"} for each in (common, own, engine))
        assert "a.b = c" in [each["before"] for each in own["findings"]]
        assert run("batch", "-", "--fail-on", "never", stdin=pairs).code == 0
        without = run("batch", "-", "--config", "/dev/null", "--engine", "vvr", stdin=lines({"old": old, "new": new}))
        assert json.loads(without.out)["outcome"] == "partial"
        assert without.err == ""

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("order", "deployment 'order' is unknown; did you mean orders?"),
            ("broken", "deployment 'broken': script: is missing"),
            (7, '"deployment" must be the name of a deployment in the project file'),
        ],
    )
    def test_a_deployment_that_is_not_there_is_an_answer(self, run: Run, name: Any, words: str) -> None:
        pairs = lines({"id": 1, "old": V1, "new": V1, "deployment": name}, {"id": 2, "old": V1, "new": V1})
        result = run("batch", "-", stdin=pairs)
        wrong, right = (json.loads(line) for line in result.out.splitlines())
        assert (result.code, right["outcome"]) == (2, "compatible")
        assert words in wrong["error"]

    def test_there_is_no_file(self, run: Run) -> None:
        pair = lines({"id": 1, "old": V1, "new": V1, "deployment": "orders"})
        result = run("batch", "-", "--config", "/dev/null", "--engine", "flink", "--fail-on", "unknown", stdin=pair)
        assert result.code == 2
        assert '"deployment" needs a flinkcompat.toml, but none was found' in json.loads(result.out)["error"]


class TestWaivers:
    SAID = ("window-changed", "--reason", "ok", "--until", "2999-12-31", "--by", "ann", "--even-silently-wrong")

    def test_a_line_holds_those_of_its_script(self, run: Run) -> None:
        save(old=V1, new=INCOMPATIBLE)
        assert run("accept", "old.sql", "new.sql", *self.SAID).code == 0
        text = Path("new.sql.waivers.toml").read_text("utf-8")
        pair = {"id": 1, "old": V1, "new": INCOMPATIBLE}
        assert run("batch", "-", stdin=lines(pair)).code == 1
        for engine in ((), ("--engine", "flink", "--fail-on", "unknown")):
            result = run("batch", "-", *engine, stdin=lines({**pair, "waivers": text}))
            answer = json.loads(result.out)
            assert (result.code, answer["outcome"], answer["gate_outcome"]) == (0, "incompatible", "compatible")
            (waived,) = [each["waiver"] for each in answer["findings"] if each["rule"] == "window-changed"]
            assert (waived["by"], waived["state"]) == ("ann", "holds")
        other = {**pair, "new": V1.replace("'1' MINUTE", "'5' MINUTE"), "waivers": text}
        result = run("batch", "-", stdin=lines(other))
        assert (result.code, json.loads(result.out)["gate_outcome"]) == (1, "incompatible")
        assert "by ann does not apply: it is for a different change" in json.loads(result.out)["warnings"][0]
        expired = {**pair, "waivers": text.replace("2999", "2025")}
        assert run("batch", "-", stdin=lines(expired)).code == 1
        wrong = run("batch", "-", stdin=lines({**pair, "waivers": "[[waiver]]"}))
        assert "waivers:1:3: waiver 1: rule: is missing" in json.loads(wrong.out)["error"]

    def test_those_beside_the_script_of_its_deployment(self, run: Run) -> None:
        save(old=V1, new=INCOMPATIBLE)
        Path("flinkcompat.toml").write_text('engine = "flink"\n[deployments.orders]\nscript = "new.sql"\n', "utf-8")
        assert run("accept", "old.sql", "new.sql", *self.SAID).code == 0
        pair = {"id": 1, "old": V1, "new": INCOMPATIBLE}
        gated = ("batch", "-", "--fail-on", "unknown")
        assert run(*gated, stdin=lines({**pair, "deployment": "orders"})).code == 0
        assert run(*gated, stdin=lines(pair)).code == 1


@pytest.mark.slow
def test_batch_streams(tmp_path: Path) -> None:
    """Each answer comes before the next line is asked for."""
    args = [sys.executable, "-m", "airflow_flinkcompat.cli", "batch", "-"]
    with subprocess.Popen(
        args, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(lines({"id": number, "old": V1, "new": V1}))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_batch_findings_hold_the_schema(run: Run) -> None:
    validator = Draft202012Validator({**SCHEMA["$defs"]["finding"], "$defs": SCHEMA["$defs"]})
    pairs = [{"id": name, "old": V1, "new": text} for name, text in OF_OUTCOME.items()]
    for answer in answers(run("batch", "-", "--engine", "vvr", stdin=lines(*pairs))):
        assert answer["outcome"] == answer["id"]
        for finding in answer["findings"]:
            validator.validate(finding)


def test_batch_bad_usage(run: Run) -> None:
    assert run("batch", "missing.jsonl").code == 2
    assert run("batch").code == 2
    assert run("batch", "-", "--engine", "x").code == 2
