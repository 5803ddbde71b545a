"""Who has answered, and who a user is: values."""

from __future__ import annotations

import json

import pytest

from airflow_flinkcompat.airflow.operators.asking import Answer, AskedQuestion, Person, doubt, is_author

ADA, BEN = Person("7", "ada"), Person("9", "ben")
GIT = "Ada <ada@example.com>"


@pytest.mark.parametrize(
    ("person", "author", "known", "told"),
    [
        (ADA, GIT, {}, True),
        (Person("Ada@Example.com", "Ada L."), GIT, {}, True),
        (BEN, GIT, {}, None),
        (BEN, GIT, {"ADA@example.com": ["7"]}, False),
        (ADA, GIT, {"ada@example.com": ["9"]}, False),
        (BEN, GIT, {"Ada": ["9", "ben"]}, True),
        (BEN, GIT, {"carl@example.com": ["9"]}, None),
        (ADA, None, {}, None),
        (ADA, "ada", {}, True),
    ],
)
def test_a_user_is_the_author_by_name_address_or_by_what_was_said(
    person: Person, author: str | None, known: dict[str, list[str]], told: bool | None
) -> None:
    assert is_author(person, author, known) is told
    assert bool(doubt(person, author, told)) == (told is None)


def test_a_question_counts_one_answer_of_each() -> None:
    asked = AskedQuestion(100.0, until=200.0, escalates_at=150.0)
    assert asked.next_time == 150.0
    asked = asked.with_answer(Answer(ADA, "a")).with_answer(Answer(BEN, "b", "why")).with_answer(Answer(ADA, "b"))
    assert [each.by.name for each in asked.agreed("b")] == ["ben", "ada"]
    assert asked.agreed("a") == ()
    assert AskedQuestion.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    assert AskedQuestion(100.0).next_time is None


@pytest.mark.parametrize("given", ["", 7, {"name": "ada"}, {"id": "7", "mail": "x"}])
def test_what_is_no_user_is_named(given: object) -> None:
    with pytest.raises(ValueError, match="is not a user; write an id"):
        Person.of(given)  # type: ignore[arg-type]
