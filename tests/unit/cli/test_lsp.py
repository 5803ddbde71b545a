"""``flinkcompat lsp`` as it is started; what it serves is tested in tests/unit/lsp."""

from __future__ import annotations

import sys

import pytest

from airflow_flinkcompat.model import install_command
from tests.support.cli.command import Run


def test_where_pygls_is_missing_the_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("airflow_flinkcompat.lsp.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [each for each in sys.modules if each.split(".")[0] in ("pygls", "lsprotocol")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("pygls", "lsprotocol"):
        monkeypatch.setitem(sys.modules, name, None)
    result = run("lsp")
    assert result.code == 2
    assert install_command("lsp") in result.err


@pytest.mark.parametrize("against", ["bogus", "git:"])
def test_what_it_is_to_compare_with_is_checked_before_it_serves(run: Run, against: str) -> None:
    result = run("lsp", "--against", against)
    assert result.code == 2
    assert f"--against '{against}' must be ledger, ledger:URI or git:REF" in result.err
