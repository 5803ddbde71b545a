"""The table of what a rewritten savepoint would keep is that of the measured restores."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.measure.migratable_share import shares, table

PAGE = Path(__file__).parents[4] / "docs" / "state-migration-reference.md"


@pytest.mark.nightly
@pytest.mark.slow
def test_the_page_shows_what_is_measured() -> None:
    found = shares()
    assert table(found) in PAGE.read_text("utf-8")
    assert all(counts.total() > 50 for counts in found.values())
