"""Reserved words by line, and Flink's own parser that they come from."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.sql.base_parser import reserved_words
from dev.measure.pairs import RELEASES
from dev.measure.reserved_words import reserved_words as words_of_parser


@pytest.mark.parametrize("line", RELEASES)
def test_every_measured_line_reserves_words(line: str) -> None:
    assert {"USER", "VALUE", "ORDER", "METHOD"} <= reserved_words(line)
    assert not {"NAME", "TYPE", "DATA"} & reserved_words(line)


def test_a_line_whose_parser_was_not_asked_reserves_none() -> None:
    assert reserved_words("1.17") == frozenset()


@pytest.mark.slow
def test_the_installed_flinks_parser_reserves_the_same_words() -> None:
    assert set(words_of_parser("2.3")) == reserved_words("2.3")
