"""The pages of the targets of a Flink of one's own: their DAGs are some, and short."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[4] / "docs" / "targets"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sql-gateway", "jobmanager"])
def test_the_pages_dag_is_one_and_is_short(target: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / f"{target}.md").read_text("utf-8"), re.DOTALL)
    assert len(code.splitlines()) < 40
    names: dict[str, Any] = {}
    exec(code, names)
    assert {task.target for task in names["dag"].tasks} == {target}
