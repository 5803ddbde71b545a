"""What Python makes of a program's values: classes, containers, texts, files and modules; and what stays unknown."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from airflow_flinkcompat.frontends.pyflink.paths import FILE_LIMIT, FILES_LIMIT
from airflow_flinkcompat.frontends.pyflink.reader import parse_program
from airflow_flinkcompat.sql import ScriptError

PUBLIC = Path(__file__).parents[2] / "fixtures" / "table_api" / "public"
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
    ("say(', '.join(sorted({'b', 'a'})))", "a, b"),
    ("say([x * 2 for x in range(5) if x % 2][-1])", "6"),
    ("d = {'a': 1}\nd['b'] = 2\nd.update(c=3)\nsay(sum(d.values()))", "6"),
    ("a, b = (1, 2)\na, b = b, a\nsay('%s%s' % (a, b))", "21"),
    ("say('%(k)s=%(v)d' % {'k': 'n', 'v': 3})", "n=3"),
    ("say('{:>5}|{n:03d}'.format('x', n=7))", "    x|007"),
    ("say('a-b-c'.split('-')[1].upper())", "B"),
    ("n = 0\nwhile True:\n    n += 1\n    if n > 4: break\nsay(n)", "5"),
    ("for n in (1, 2, 3):\n    if n == 2: continue\nelse: n = 9\nsay(n)", "9"),
    ("def f(*a, k=1, **o): return f'{len(a)}{k}{sorted(o)[0]}'\nsay(f(1, 2, k=3, z=4))", "23z"),
    ("def make():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up\n"
     "up = make()\nup()\nsay(up())", "2"),
    ("f = lambda x, y=2: x + y\nsay(f(1))", "3"),
    ("from functools import partial\nf = partial(lambda a, b: a + b, 1)\nsay(f(2))", "3"),
    ("class A:\n    X = 1\n    def __init__(self): self.x = self.X + 1\n"
     "    @classmethod\n    def of(cls): return cls()\n"
     "say(A.of().x)", "2"),
    ("class A:\n    def __enter__(self): return 5\n    def __exit__(self, *e): say('left')\n"
     "with A() as a: b = a", "left"),
    ("class A:\n    def f(self): return 'A'\nclass B(A):\n    def f(self): return super().f() + 'B'\n"
     "say(B().f())", "AB"),
    ("import enum\nclass E(enum.Enum):\n    A = 'x'\nsay(E.A.value)", "x"),
    ("x = None\nsay(x is None)", "True"),
    ("say(open('a.txt').read().strip())", "text"),
    ("from pathlib import Path\nsay((Path(__file__).parent / 'a.txt').read_text().strip())", "text"),
    ("import lib.deep as d\nsay(d.VALUE + d.here())", "deepdeep"),
    ("from lib import *\nsay(TOP)", "top"),
    ("import lib\nlib.TOP = 'new'\nfrom lib import get\nsay(get())", "new"),
]  # fmt: skip
UNKNOWN = [
    "L = ['a']\ndef f(): L.append('b')\nif os.sep: f()\nsay(L[0])",
    "class S: X = 1\ndef f(): S.X = 2\nif os.sep: f()\nsay(S.X)",
    "class S:\n    def __init__(self): self.x = 1\ns = S()\nif os.sep: s.x = 2\nsay(s.x)",
    "d = {'a': 1, 'b': 1}\nfor k, v in d.items():\n    d['b'] = 5\nsay(v)",
    "L = [1]\nfor x in L:\n    if x < 3: L.append(x + 1)\nsay(x)",
    "g = (x for x in [1, 2])\na = list(g)\nb = list(g)\nsay(len(b))",
    "x = {'b', 'a'}\nfor y in x: pass\nsay(y)",
    "say(len(__file__))",
    "say('prod' in __file__)",
    "say(open('a.txt', 'rb').read())",
    "f = open('a.txt')\nf.read()\nsay(f.read())",
    "x = [1]\nimport random\nrandom.shuffle(x)\nsay(x[0])",
    "import copy\nx = [[1]]\ny = copy.deepcopy(x)\nsay(y[0])",
    "def f():\n    yield 1\nfor x in f(): pass\nsay(x)",
    "class A:\n    def __getattr__(self, n): return 1\nsay(A().x)",
    "try: x = int(os.environ['X'])\nexcept KeyError: x = 1\nsay(x)",
    "x = 1\ndef f():\n    global x\n    x = 2\nsorted([1], key=lambda _: f())\nsay(x)",
    "say(1 is 1.0)",
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
    "lib/deep.py": "VALUE = 'deep'\nfrom . import deep\ndef here(): return __name__.rpartition('.')[2]\n",
}


@pytest.mark.parametrize(("body", "value"), KNOWN)
def test_what_is_known(body: str, value: str) -> None:
    assert said(body, FILES) == value


@pytest.mark.parametrize("body", UNKNOWN)
def test_what_is_not_known_is_reported_and_never_guessed(body: str) -> None:
    assert parse_program(HEAD + body, "job.py", {}, FILES).unread


@pytest.mark.parametrize(("body", "name"), NAMED)
def test_what_only_the_environment_knows_goes_by_its_name(body: str, name: str) -> None:
    """A file that does not lie beside the program is never opened: what it holds is not known, but which file it is."""
    assert said(body, FILES) == f"${{{name}}}"
    script = parse_program(HEAD + body, "job.py", {}, FILES)
    assert (script.unread, script.inputs) == ((), (name,))


def test_a_table_that_an_exception_may_have_changed_is_not_forgotten() -> None:
    script = parse_program(HEAD + "try:\n    u = t\nexcept Exception:\n    u = None\nu.execute_insert('s')", "job.py")
    assert 11 in {unread.span.line for unread in script.unread}
    assert script.statements == ()


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


LATE = [
    ("def deco(f):\n    def w(*a): return f(*a)\n    return w\nclass A:\n    @deco\n    def m(self, n=5): return n\n"
     "say(A().m(7))", "7"),
    ("def m(self, n=5): return n\nclass A: pass\nA.m = m\nsay(A().m(7))", "7"),
    ("X = 5\nclass A:\n    X = 1\n    f = lambda: X\nsay(A.f())", "5"),
    ("X = 5\nclass A:\n    X = 1\n    L = [X for _ in range(1)]\nsay(A.L[0])", "5"),
    ("X = 1\nclass A:\n    X = 2\n    class B:\n        Y = X\nsay(A.B.Y)", "1"),
    ("S = 1\ng = (str(S) for _ in range(1))\nS = 2\nsay(','.join(g))", None),
    ("S = 1\ng = (S for _ in range(1))\nS = 2\nsay(sum(g))", None),
    ("S = 1\nm = map(lambda x: str(S), [1])\nS = 2\nsay(','.join(m))", None),
    ("L = ['a']\nm = iter(L)\nL.append('b')\nsay(','.join(m))", None),
    ("L = ['a']\nfor i, x in enumerate(L):\n    if i < 2: L.append('b')\nsay(i)", None),
    ("n = 0\ndef up():\n    global n\n    n += 1\n    return n\ng = (up() for _ in range(3))\nsay(n)", None),
    ("x = 0\n[x := i for i in (1, 2)]\nsay(x)", "2"),
    ("from functools import cache\n@cache\ndef f(*a): return a[0]\nf(1)\nsay(f(2))", None),
    ("from functools import cache\ndef of(n):\n    @cache\n    def f(): return n\n    return f\n"
     "of(1)()\nsay(of(2)())", "2"),
    ("from functools import cached_property\nclass A:\n    n = 1\n    @cached_property\n"
     "    def s(self): return self.n\n"
     "a = A()\na.s\na.n = 2\nsay(a.s)", "1"),
    ("from dataclasses import *\nfrom dataclasses import dataclass, field\n@dataclass\nclass C:\n"
     "    a: int = field(init=False, default=1)\n    b: int = 2\nsay(C(5).b)", None),
    ("from dataclasses import dataclass\n@dataclass\nclass C:\n    a: int = 1\nclass D(C):\n"
     "    a: int = 7\nsay(D().a)", "1"),
    ("from dataclasses import dataclass\n@dataclass\nclass C:\n    a: int = 1\nC.a = 9\nsay(C().a)", "1"),
    ("import random\nos.environ['A'] = '1'\nif random.random() < 1: os.environ['A'] = '2'\n"
     "say(os.environ['A'])", None),
    ("class M:\n    def __enter__(self): return self\n    def __exit__(self, *a): say('left')\n"
     "def f():\n    with M(): return 1\nf()", "left"),
    ("import contextlib\nwith contextlib.suppress(ValueError): raise ValueError\nsay(1)", None),
    ("import enum\nclass E(enum.Enum):\n    A = 1\n    B = 1\nsay(E.B.name)", "A"),
    ("import enum\nclass E(str, enum.Enum): A = 'x'\nsay(E.A)", None),
    ("n = 2\ntry:\n    int('x')\n    n = 1\nexcept ValueError: pass\nsay(n)", None),
    ("n = 2\ntry:\n    assert n == 3\nexcept AssertionError: n = 4\nsay(n)", None),
    ("def f():\n    x = 2\n    def g():\n        global y\n        y = 3\n"
     "        return (lambda: y)()\n    y = 4\n    return g()\n"
     "say(f())", "3"),
    ("class C:\n    __x = 1\n    def get(self): return self.__x\nclass D(C): __x = 2\nsay(D().get())", None),
    ("class C:\n    n = 1\n    @property\n    def s(self): return self.n\n    @s.setter\n"
     "    def s(self, v): self.n = v * 2\n"
     "c = C()\nc.s = 4\nsay(c.s)", None),
    ("all = []\ndef add(c):\n    all.append(c)\n    return c\n@add\nclass J:\n    def run(self): say('ran')\n"
     "for j in all: j().run()", "ran"),
    ("class B:\n    all = []\n    def __init_subclass__(cls): B.all.append(cls)\nclass J(B): n = 1\n"
     "for j in B.all: say(j.n)", None),
    ("all = []\n@all.append\ndef f(): say('ran')\nfor j in all: j()", None),
    ("def main():\n    say('ran')\n    return 0\nsys.exit(main())", "ran"),
    ("def main(): say('ran')\nraise SystemExit(main())", "ran"),
    ("n = 1\nFalse or sys.exit()\nsay(n)", None),
    ("n = 1\nfrom job_settings import *\nsay(n)", None),
]  # fmt: skip
"""What happens later than it is written, or under another name."""


@pytest.mark.parametrize(("body", "value"), LATE)
def test_what_happens_later_than_it_is_written_is_read_as_python_means_it_or_not_at_all(
    body: str, value: str | None
) -> None:
    script = parse_program(HEAD + body, "job.py")
    texts = [statement.text.removeprefix("SELECT '").removesuffix("'") for statement in script.statements]
    assert bool(script.unread) if value is None else (texts == [value] and not script.unread)


@pytest.mark.parametrize("body", [
    "class A(ScalarFunction):\n    k = 1\n    def eval(self, x): return x + self.k\nA.k = {}\nf = udf(A())\n",
    "class B(ScalarFunction):\n    k = 1\n    def eval(self, x): return x + self.k\nB.k = {}\n"
    "class A(B): pass\nf = udf(A())\n",
    "os.environ['K'] = '{}'\n@udf()\ndef f(x): return x + int(os.environ['K'])\n",
])  # fmt: skip
def test_what_a_python_function_finds_where_it_runs_is_part_of_its_body(body: str) -> None:
    head = HEAD + "from pyflink.table.udf import ScalarFunction, udf\n"
    tail = "t_env.create_temporary_function('f', f)\n"
    old, new = (parse_program(head + body.format(value) + tail, "job.py") for value in (1, 2))
    assert not old.unread
    assert [each.text for each in old.statements] != [each.text for each in new.statements]
