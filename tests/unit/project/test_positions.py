"""The lines and columns of the keys of a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_flinkcompat.project.positions import TomlPositions

TEXT = """# a = 1
a = 1 # x = 2
b."c d".e = "x = [1]"
inline = { p = 1, q.r = [1, { s = "}" }], "t" = '''a'''' } # z
[  tool . "x.y" ]
k = \"\"\"
[no]
z = 1 \"\" q\"\"\"
"a\\u0062" = 1979-05-27 07:32:00
l = [ # c
  "a", # b ]
  'b', [1, 2],
  { m = 1 },
]
[[list]]
x = 1
[[list]]
x = 2
[list.sub]
y = true
[[list.deep]]
z = -1.5e3
[[list.deep]]
w = inf"""


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value, 1) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, str(key)), each
        yield from walk(each, (*path, str(key)))


def test_every_key_that_python_reads_is_found_where_it_is_written() -> None:
    found, lines = TomlPositions("it", TEXT), TEXT.splitlines()
    keys = dict(walk(tomllib.loads(TEXT)))
    assert len(keys) == 36
    for path, value in keys.items():
        line, column = found.find(".".join(path)) or (0, 0)
        written = lines[line - 1][column - 1 :]
        if path[-1].isdigit():  # an element of a list, or the header of a table in one
            scalar = (str(value), f"'{value}", f'"{value}')
            starts = {"list": "[", "dict": ("{", path[-2])}.get(type(value).__name__, scalar)
            assert written.startswith(starts), path
        else:
            assert written.startswith((path[-1], f'"{path[-1]}"', '"a\\u0062"')), path


@pytest.mark.parametrize(
    ("key", "deployment", "place"),
    [
        ("owner", "a", "it:5:1"),
        ("settings.x", "a", "it:6:10"),
        ("tags", "a", "it:3:1"),
        ("check.engine", "a", "it:1:1"),
        ("check.policy", "b", "it:8:7"),
        ("script", "b", "it:7:14"),
        ("engine", None, "it:1:1"),
        ("ledger", None, "it"),
    ],
)
def test_a_key_is_that_of_the_deployment_or_an_inherited_one(key: str, deployment: str | None, place: str) -> None:
    text = "engine = 1\n[defaults]\ntags = 1\n[deployments.a]\nowner = 1\nsettings.x = 1\n[deployments.b]\n"
    text += "check.policy = 1\n"
    assert TomlPositions("it", text).place(key, deployment) == place
    nested = text.replace("[de", "[tool.flinkcompat.de").replace("engine", "[tool.flinkcompat]\nengine", 1)
    shifted = TomlPositions("it", nested, "tool.flinkcompat").place(key, deployment)
    line = int(place.split(":")[1]) + 1 if ":" in place else 1
    assert shifted.split(":")[1] == str(line)
