"""What a Python function stands on shows in its digest, wherever and under whatever name it is set."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from tests.support.nightly import mostly_slow

HEAD = """\
from pyflink.table import EnvironmentSettings, TableEnvironment, DataTypes
from pyflink.table.expressions import col
from pyflink.table.udf import ScalarFunction, udf
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("CREATE TABLE o (a BIGINT) WITH ('connector' = 'kafka')")
t_env.execute_sql("CREATE TABLE s (a BIGINT) WITH ('connector' = 'print')")
"""
TAIL = """
t_env.create_temporary_function("f", udf({}, result_type=DataTypes.BIGINT()))
t_env.execute_sql("INSERT INTO s SELECT f(a) FROM o")
"""
SCALE = """
class Scale(ScalarFunction):
    limit = 1
    @classmethod
    def configure(cls, n):
        cls.limit = n
    def put(self, n):
        self.limit = n
        return self
    def eval(self, a):
        return a * self.limit
"""
BASE = """
class Base(ScalarFunction):
    limit = 1
    def eval(self, a):
        return a * self.limit
class Scale(Base):
    pass
"""
UDFS = {
    "udfs.py": "from pyflink.table.udf import ScalarFunction\n"
    + SCALE
    + "LIMITS = {'a': 1}\nLIMIT = 1\ndef make():\n    return Scale()\n"
    "def f(a):\n    return a * LIMITS['a']\ndef h(a):\n    return a * LIMIT\n"
}
SET: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "through sys.modules": (
        "import sys\nK = 1\nm = sys.modules[__name__]\nm.K = <N>\ndef f(a):\n    return a * K",
        "f",
        {},
    ),
    "in its defaults": ("def f(a, *, k=1):\n    return a * k\nf.__kwdefaults__['k'] = <N>", "f", {}),
    "in a module it imports itself": ("def f(a):\n    import cfg\n    return a * cfg.K", "f", {"cfg.py": "K = <N>\n"}),
    "in one that a package's function imports": (
        "from pkg.m import g\ndef f(a):\n    return g(a)",
        "f",
        {
            "pkg/__init__.py": "",
            "pkg/m.py": "def g(a):\n    from .cfg import K\n    return a * K\n",
            "pkg/cfg.py": "K = <N>\n",
        },
    ),
    "by import_module": (
        "import importlib\ndef f(a):\n    return a * importlib.import_module('cfg').K",
        "f",
        {"cfg.py": "K = <N>\n"},
    ),
    "in a file it opens": ("def f(a):\n    return a * int(open('k.txt').read())", "f", {"k.txt": "<N>"}),
    "in a file it finds beside itself": (
        "import os\ndef f(a):\n    return a * int(open(os.path.join(os.path.dirname(__file__), 'k.txt')).read())",
        "f",
        {"k.txt": "<N>"},
    ),
    "in a file that a constant names": (
        "FILE = 'k.txt'\ndef f(a):\n    return a * int(open(FILE).read())",
        "f",
        {"k.txt": "<N>"},
    ),
    "in a file the program read": (
        "import json\nwith open('k.json') as h:\n    K = json.load(h)\ndef f(a):\n    return a * K['k']",
        "f",
        {"k.json": '{"k": <N>}'},
    ),
    "as a name that only a nested function stores": (
        "K = <N>\ndef f(a):\n    def g():\n        K = 5\n        return K\n    return a * K",
        "f",
        {},
    ),
    "as a name of a comprehension": ("K = <N>\ndef f(a):\n    return a * K + sum([K for K in (1, 2)])", "f", {}),
    "as a name of a class in it": (
        "K = <N>\ndef f(a):\n    class Z:\n        K = K\n    return a * Z.K",
        "f",
        {},
    ),
    "on the class": (SCALE + "Scale.limit = <N>", "Scale()", {}),
    "by a method of the class": (SCALE + "Scale.configure(<N>)", "Scale()", {}),
    "under another name": (SCALE + "K = Scale\nK.limit = <N>", "Scale()", {}),
    "in a function": (SCALE + "def tune(k, n):\n    k.limit = n\ntune(Scale, <N>)", "Scale()", {}),
    "by setattr": (SCALE + "K = Scale\nsetattr(K, 'limit', <N>)", "Scale()", {}),
    "by a method of the object": (SCALE + "g = Scale()\ng.put(<N>)", "g", {}),
    "by a method that answers it": (SCALE, "Scale().put(<N>)", {}),
    "on the object": (SCALE + "g = Scale()\ng.limit = <N>", "g", {}),
    "on its base": (BASE + "Base.limit = <N>", "Scale()", {}),
    "by its importer": ("from udfs import Scale, make\nScale.limit = <N>", "make()", UDFS),
    "through its module": ("import udfs\nudfs.Scale.limit = <N>", "udfs.make()", UDFS),
    "by a third module": (
        "import config\nfrom udfs import make",
        "make()",
        {**UDFS, "config.py": "from udfs import Scale\nScale.configure(<N>)\n"},
    ),
    "in a dictionary of its module": ("import udfs\nudfs.LIMITS['a'] = <N>", "udfs.f", UDFS),
    "in one that was imported": ("from udfs import LIMITS, f\nLIMITS['a'] = <N>", "f", UDFS),
    "in one of another name": ("from udfs import LIMITS as X, f\nX.update(a=<N>)", "f", UDFS),
    "as a constant of its module": ("import udfs\nudfs.LIMIT = <N>", "udfs.h", UDFS),
}


def side(text: str, function: str, files: Mapping[str, str], value: int) -> Side:
    """The program with ``<N>`` filled in."""
    filled = {name: each.replace("<N>", str(value)) for name, each in files.items()}
    script = (HEAD + text + TAIL.format(function)).replace("<N>", str(value))
    return Side(script, engine="flink", language="python", files=filled)


@pytest.mark.parametrize("name", mostly_slow(tuple(SET), 4))
def test_what_is_set_elsewhere_is_another_function(name: str) -> None:
    text, function, files = SET[name]
    old, new = (side(text, function, files, value) for value in (2, 3))
    assert old.sha256 != new.sha256
    assert check(old, new).outcome is Outcome.UNKNOWN


def test_a_class_that_nobody_sets_is_compared_alone() -> None:
    old = Side(HEAD + SCALE + TAIL.format("Scale()"), engine="flink", language="python")
    new = Side(HEAD + "words = 'other'\n" + SCALE + TAIL.format("Scale()"), engine="flink", language="python")
    assert [finding.rule for finding in check(old, new).findings] == ["unchanged"]
