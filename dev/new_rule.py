"""Write a rule with its test and its page: ``python -m dev.new_rule CODE``.

The rule works at once: it claims changes of the made-up setting ``CODE``. Replace its body, verdicts and example.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULE = '''"""{title}."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, windowed
from airflow_flinkcompat.compat.verdict import inferred
from airflow_flinkcompat.model import Outcome


@Rule(
    code="{code}",
    title="{title}",
    vvr=inferred(Outcome.INCOMPATIBLE, "name the row of the vendor's document"),
    flink=inferred(Outcome.INCOMPATIBLE, "name the ids of restores"),
    rationale="State why, in one or two sentences.",
    example=Example(windowed("customer, SUM(amount)"), "SET '{code}' = 'true';\\n" + windowed("customer, SUM(amount)")),
)
def {name}(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("setting"):
        if difference.key == "setting/{code}":
            yield RuleMatch("the setting changed", (difference.key,), str(difference.before), str(difference.after))
'''
CASES = """-- row: {number}. {title}
--- given
CREATE TABLE orders (customer STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = 'orders',
  'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
{cases}"""
CASE = """--- case: the setting {case}
-- outcome: incompatible
-- flink: incompatible
-- fires: {code}
--- old
{old}INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;
--- new
{new}INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;
"""


def write_rule(code: str, root: Path = ROOT) -> tuple[Path, Path]:
    """Write the module and the cases of a rule."""
    if not re.fullmatch(r"[a-z]+(-[a-z]+)+", code):
        raise ValueError(f"{code} is not a valid rule code: write words with hyphens, as in window-changed")
    name = code.replace("-", "_")
    module = root / "airflow_flinkcompat" / "compat" / "rules" / f"{name}.py"
    if module.exists():
        raise ValueError(f"{code} exists: choose another code, or edit {module.name}")
    folder = root / "tests" / "fixtures" / "vvr" / "settings"
    number = 1 + len(list(folder.glob("*.sql")))
    cases = folder / f"{number:02}-{code}.sql"
    values = {"code": code, "title": code.replace("-", " ").capitalize(), "name": name, "number": number}
    module.write_text(RULE.format(**values), encoding="utf-8")
    one, other = f"SET '{code}' = 'true';\n", f"SET '{code}' = 'false';\n"
    written = (("is added", "", one), ("is removed", one, ""), ("has another value", one, other))
    texts = (CASE.format(case=case, old=old, new=new, **values) for case, old, new in written)
    cases.write_text(CASES.format(cases="".join(texts), **values), encoding="utf-8")
    return module, cases


def main() -> int:
    """Write a rule, its cases and its page, and name the next steps."""
    parser = argparse.ArgumentParser(prog="python -m dev.new_rule", description=__doc__)
    parser.add_argument("code", help="words with hyphens, stable for ever")
    try:
        module, cases = write_rule(parser.parse_args().code)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    command = [sys.executable, "-m", "airflow_flinkcompat.cli", "rules", "--write", "docs/rules"]
    subprocess.run(command, check=True, cwd=ROOT)
    print(f"1. edit {module.relative_to(ROOT)}: body, verdicts, rationale, example")
    print(f"2. edit {cases.relative_to(ROOT)}: at least three cases")
    print("3. make docs; pytest tests/unit/compat/rules; add a line to CHANGELOG.md")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
