"""The file of waivers beside a script: what is read, what is refused, and that writing keeps what stands there."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.model import InputError, Waiver
from airflow_flinkcompat.project.waivers import read_waivers, with_waiver, without_waivers

NAME = "jobs/orders.sql.waivers.toml"
WAIVER = Waiver(
    "window-changed", "totals > 1", "flink", "incompatible", "the window definition changed", "counted by hand", "ann",
    date(2026, 12, 31), "a" * 64, "b" * 64, "orders", True,
)  # fmt: skip
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
waivers = st.builds(
    Waiver, texts, texts, texts, texts, texts, texts, texts, st.dates(date(1000, 1, 1)), texts, texts, texts,
    st.booleans(),
)  # fmt: skip


def test_the_first_one_begins_a_file() -> None:
    text = with_waiver("", WAIVER, NAME)
    assert text.splitlines()[0] == (
        "# Findings on orders.sql waived by flinkcompat accept. Each waiver covers one change, until its expiry date."
    )
    assert "until = 2026-12-31\n" in text
    assert read_waivers(text, NAME) == (WAIVER,)


@given(found=st.lists(waivers, max_size=3))
def test_what_is_written_is_read_again(found: list[Waiver]) -> None:
    text = ""
    for each in found:
        text = with_waiver(text, each, NAME)
    assert read_waivers(text, NAME)[-1:] == tuple(found[-1:])
    assert set(read_waivers(text, NAME)) <= set(found)
    left, gone = without_waivers(text, lambda each: True, NAME)
    assert (read_waivers(left, NAME), len(gone)) == ((), len(read_waivers(text, NAME)))


@given(waiver=waivers)
def test_one_comes_back_from_json(waiver: Waiver) -> None:
    assert Waiver.from_dict(waiver.to_dict()) == waiver


def test_renewing_one_leaves_the_others_and_the_comments() -> None:
    other = replace(WAIVER, finding_sha256="c" * 64, reason="for good")
    text = with_waiver(with_waiver("# ours\n", other, NAME), WAIVER, NAME) + "# behind\n"
    renewed = with_waiver(
        text.replace("[[waiver]]", "[[waiver]] # seen"), replace(WAIVER, until=date(2027, 1, 1)), NAME
    )
    assert renewed.startswith("# ours\n")
    assert [each.until.year for each in read_waivers(renewed, NAME)] == [2026, 2027]
    assert renewed.count("# seen") == 1


def test_a_file_in_another_layout_is_changed_by_hand() -> None:
    table = ", ".join(line for line in with_waiver("", WAIVER, NAME).splitlines() if " = " in line)
    text = f"waiver = [{{ {table} }}]\n"
    assert read_waivers(text, NAME) == (WAIVER,)
    with pytest.raises(InputError, match="does not have the layout of flinkcompat accept: edit it manually"):
        without_waivers(text, lambda each: True, NAME)


@pytest.mark.parametrize(
    "key", [each.name for each in fields(Waiver) if each.name not in ("deployment", "even_silently_wrong")]
)
def test_what_is_missing_is_named(key: str) -> None:
    lines = with_waiver("", WAIVER, NAME).splitlines()
    text = "\n".join(line for line in lines if not line.startswith(f"{key} "))
    with pytest.raises(InputError, match=rf"^{NAME}:3:3: waiver 1: {key}: is missing"):
        read_waivers(text, NAME)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("until = 2026-12-31", 'until = "soon"', "until: a day is needed"),
        ("until = 2026-12-31", "until = 2026-12-31T10:00:00", "until: a day is needed"),
        ('reason = "counted by hand"', 'reason = " "', "reason: is empty"),
        ("even_silently_wrong = true", 'even_silently_wrong = "yes"', "even_silently_wrong: true or false is needed"),
        ('by = "ann"', "by = 7", "by: a text is needed"),
        ('by = "ann"', 'by = "ann"\nuntill = 1', "untill: is unknown; did you mean until"),
        ("[[waiver]]", "[[waivers]]", "waivers: is unknown"),
        ("[[waiver]]", "[waiver]", "a list of tables is needed"),
        ("[[waiver]]", "[[waiver", "is not valid TOML"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_place(old: str, new: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"^{NAME}:\d+:\d+: .*{words}"):
        read_waivers(with_waiver("", WAIVER, NAME).replace(old, new), NAME)
