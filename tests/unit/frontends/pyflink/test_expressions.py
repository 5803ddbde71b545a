"""Values of a program: constants, texts, lists, functions, files and modules; and the end of the subset."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from airflow_flinkcompat.frontends.pyflink.inputs import FILE_LIMIT, FILES_LIMIT
from airflow_flinkcompat.frontends.pyflink.reader import parse_program
from airflow_flinkcompat.sql import ScriptError

PUBLIC = Path(__file__).parents[3] / "fixtures" / "table_api" / "public"
HEAD = """\
import os, sys
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import *
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t = t_env.from_path("t")
def say(value): t_env.execute_sql(f"SELECT '{value}'")
"""


def said(body: str, files: dict[str, str] | None = None) -> str | None:
    """The one value a program says; None where it says none, and why is reported."""
    script = parse_program(HEAD + body, "job.py", {}, files)
    texts = [statement.text.removeprefix("SELECT '").removesuffix("'") for statement in script.statements]
    assert bool(texts) is not bool(script.unread)
    assert len(texts) < 2
    return texts[0] if texts else None


KNOWN = [
    ("say([x * 2 for x in range(5) if x % 2 == 1][-1])", "6"),
    ("say(','.join(f'{k}={v}' for k, v in {'a': 1}.items()))", "a=1"),
    ("a, b = (1, 2)\na, b = b, a\nsay('%s%s' % (a, b))", "21"),
    ("say('%(k)s=%(v)d' % {'k': 'n', 'v': 3})", "n=3"),
    ("say('{:>5}|{n:03d}'.format('x', n=7))", "    x|007"),
    ("say('a-b-c'.split('-')[1].upper())", "B"),
    ("for n in (1, 2, 3): pass\nelse: n = 9\nsay(n)", "9"),
    ("def f(*a, k=1, **o): return f'{len(a)}{k}' + str(o['z'])\nsay(f(1, 2, k=3, z=4))", "234"),
    ("f = lambda x, y=2: x + y\nsay(f(1))", "3"),
    ("def of(n):\n    def f(): return n\n    return f\nof(1)()\nsay(of(2)())", "2"),
    ("x = None\nsay(x is None)", "True"),
    ("say({'a': 1}.get('b', 2))", "2"),
    ("say(open('a.txt').read().strip())", "text"),
    ("from pathlib import Path\nsay((Path(__file__).parent / 'a.txt').read_text().strip())", "text"),
    ("import lib.deep as d\nsay(d.VALUE + d.here())", "deeplib.deep"),
    ("from lib import *\nsay(TOP)", "top"),
    ("os.environ['A'] = '1'\nsay(os.environ['A'])", "1"),
    ("def main():\n    say('ran')\n    return 0\nsys.exit(main())", "ran"),
    ("def main(): say('ran')\nraise SystemExit(main())", "ran"),
]
BEYOND = [
    ("n = 0\nwhile n < 5:\n    n += 1", "a while loop"),
    ("n = 0\nn += 1", "an assignment in place"),
    ("for n in (1, 2): break", "a break"),
    ("d = {}\nd['b'] = 2", "setting an element"),
    ("L = []\nL.append('b')", "append of a list or dictionary"),
    ("class A:\n    def f(self): return 'A'\nA()", "an object of the class A"),
    ("class A: X = 1\nsay(A.X)", "give --var A.X="),
    ("class A:\n    X = 1\n    def f(self): pass\nsay(A.X)", "X of the class A"),
    ("class A: n = say(1)", "the body of the class A"),
    ("import atexit\n@atexit.register\ndef f(): say(1)", "has a decorator"),
    ("def deco(f): return f\n@deco\nclass A: pass", "the body of the class A"),
    ("class A:\n    def __init_subclass__(cls): say(1)\nclass B(A): pass", "the body of the class A"),
    ("class A: exec('say(1)')", "the body of the class A"),
    ("def deco(f): return f\n@deco\ndef f(): return 1", "has a decorator"),
    ("from functools import cache\n@cache\ndef f(): say(1)\nf()", "has a decorator"),
    ("from functools import partial\npartial(say, 1)()", "functools.partial that touches a table"),
    ("x = 1\ndef f():\n    global x\n    x = 2\nf()", "a global statement"),
    ("def f():\n    yield 1\nfor x in f(): pass", "f is a generator"),
    ("[x := i for i in (1, 2)]", "an assignment inside an expression"),
    ("say({'b', 'a'})", "a set"),
    ("say(1 < 2 < 3)", "a chained comparison"),
    ("from contextlib import suppress\nwith suppress(ValueError): say(1)", "contextlib"),
    ("say.x = 1", "setting an attribute"),
    ("import lib\nlib.TOP = 'new'", "setting an attribute"),
    ("say(sorted([1])[0])", "the result of sorted is unknown"),
    ("say(open('a.txt', 'rb').read())", "a file is opened in an unsupported way"),
    ("f = open('a.txt')\nf.read()\nsay(f.read())", "a file is read in an unsupported way"),
    ("for line in open('a.txt'): say(line)", "how often this loop runs"),
    ("from job_settings import *", "the names that `from job_settings import *` binds"),
    ("False or sys.exit()", "it is unknown if the program ends"),
    ("async def f(): say(1)\nf()", "an async function"),
    ("match 1:\n    case 1: say(1)", "a match statement"),
    ("assert True", "an assert statement"),
]
"""Constructs of Python outside of the subset: reading stops there."""
UNKNOWN = [
    "L = ['a']\ndef f(): L.append('b')\nif os.sep: f()\nsay(L[0])",
    "say(len(__file__))",
    "say('prod' in __file__)",
    "x = [1]\nimport random\nrandom.shuffle(x)\nsay(x[0])",
    "x = [[1]]\nimport random\nrandom.shuffle(x)\nsay(x[0][0])",
    "try: x = int(os.environ['X'])\nexcept KeyError: x = 1\nsay(x)",
    "x = 1\ndef f():\n    global x\n    x = 2\nsorted([1], key=lambda _: f())\nsay(x)",
    "say(1 is 1.0)",
    "x = 1\nif os.sep: x = 2\nsay(x)",
    "import random\nsay(1 if random.random() else 2)",
    "import subprocess\nsubprocess.run(['fetch', str(object())])\nsay(open('a.txt').read())",
]
NAMED = [
    ("say(open('../a.txt').read())", "text of ../a.txt"),
    ("say(open('/etc/hostname').read())", "text of /etc/hostname"),
    ("say(open('a/../../a.txt').read())", "text of a/../../a.txt"),
    ("say(os.environ['TOPIC'])", "TOPIC"),
    ("import json\nsay(json.load(open('/etc/flink/p.json'))[0]['PropertyMap']['topic'])",
     "/etc/flink/p.json[0][PropertyMap][topic]"),
]  # fmt: skip
FILES = {
    "a.txt": "text\n",
    "../a.txt": "outside",
    "lib/__init__.py": "TOP = 'top'\n_HIDDEN = 1\ndef get(): return TOP\n",
    "lib/deep.py": "VALUE = 'deep'\nfrom . import deep\ndef here(): return __name__\n",
}


@pytest.mark.parametrize(("body", "value"), KNOWN)
def test_what_is_known(body: str, value: str) -> None:
    assert said(body, FILES) == value


@pytest.mark.parametrize(("body", "reason"), BEYOND)
def test_reading_stops_at_the_first_construct_beyond_the_subset(body: str, reason: str) -> None:
    script = parse_program(f"{HEAD}{body}\nsay('behind')", "job.py", {}, FILES)
    (unread,) = script.unread
    assert reason in unread.reason
    assert script.statements == ()


@pytest.mark.parametrize("body", UNKNOWN)
def test_what_is_not_known_is_reported_and_never_guessed(body: str) -> None:
    assert parse_program(HEAD + body, "job.py", {}, FILES).unread


@pytest.mark.parametrize(("body", "name"), NAMED)
def test_what_only_the_environment_knows_goes_by_its_name(body: str, name: str) -> None:
    """A file that is not next to the program is never opened: what it holds is not known, but which file it is."""
    assert said(body, FILES) == f"${{{name}}}"
    script = parse_program(HEAD + body, "job.py", {}, FILES)
    assert (script.unread, script.inputs) == ((), (name,))


@pytest.mark.parametrize(
    "files",
    [
        lambda path: f"import m{random.Random(path).random()}".replace("0.", "") if path.endswith(".py") else None,
        lambda path: "x = 1\n" * FILE_LIMIT if path == "m.py" else None,
        lambda path: "import m\nfrom n import *\n" if path in ("m.py", "n.py") else None,
        lambda path: "x = (" if path == "m.py" else None,
        lambda path: f"import {'.'.join(['m'] * (path.count('/') + 2))}" if path.endswith("__init__.py") else None,
    ],
    ids=["endless", "long", "circular", "broken", "deep"],
)
def test_modules_are_bounded_too(files: object) -> None:
    before = time.process_time()
    script = parse_program(HEAD + "import m\nm.run(t_env)\n", "job.py", {}, files)  # type: ignore[arg-type]
    assert script.unread
    assert len({unread.span.source for unread in script.unread}) <= FILES_LIMIT
    assert time.process_time() - before < 5


def test_the_programs_cut_and_mixed_never_fail_and_take_no_long() -> None:
    """Lines of all the public programs, left out, doubled and swapped: an answer or a clear error each time."""
    texts = [path.read_text(encoding="utf-8").split("\n") for path in sorted(PUBLIC.rglob("*.py"))]
    chance = random.Random(7)
    before = time.process_time()
    for number in range(60):
        lines = list(texts[number % len(texts)])
        for _ in range(chance.randrange(1, 6)):
            at, other = chance.randrange(len(lines)), chance.choice(texts)
            match chance.randrange(4):
                case 0:
                    del lines[at : at + chance.randrange(1, 4)]
                case 1:
                    lines[at:at] = lines[at : at + 3]
                case 2:
                    lines[at:at] = [chance.choice(other)]
                case _:
                    lines[at] = lines[at].replace("(", "(*", 1) if chance.random() < 0.5 else lines[at].strip()
            lines = lines or [""]
        try:
            script = parse_program("\n".join(lines), "job.py")
        except ScriptError as error:
            assert str(error).startswith("job.py")  # noqa: PT017
            continue
        assert all(unread.reason for unread in script.unread)
    assert time.process_time() - before < 30


def test_a_variable_that_the_program_sets_is_part_of_a_python_function() -> None:
    body = "os.environ['K'] = '{}'\n@udf()\ndef f(x): return x + int(os.environ['K'])\n"
    head = HEAD + "from pyflink.table.udf import udf\n"
    tail = "t_env.create_temporary_function('f', f)\n"
    old, new = (parse_program(head + body.format(value) + tail, "job.py") for value in (1, 2))
    assert not old.unread
    assert [each.text for each in old.statements] != [each.text for each in new.statements]
