"""Statements that an exception may leave half done are not read, where the program ignores it and continues."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.frontends.pyflink.reader import parse_program

HEAD = """\
from contextlib import suppress
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("CREATE TABLE o (a BIGINT) WITH ('connector' = 'kafka')")
t_env.execute_sql("CREATE TABLE s (a BIGINT) WITH ('connector' = 'print')")
o = t_env.from_path("o")
"""
PASSED_OVER = "the program ignores an exception"
LEFT = "a return, or the end of the program, inside of a try"
HANDLED = "an exception is handled in an unsupported way"
UNREAD = {
    "a table that was another before": (
        """\
try:
    import fancy
    o = o.filter(col('a') > 3)
except ImportError:
    pass
o.execute_insert('s')
""",
        PASSED_OVER,
    ),
    "an INSERT that waits": (
        """\
st = t_env.create_statement_set()
st.add_insert_sql('INSERT INTO s SELECT 1')
try:
    import fancy
    st.add_insert_sql('INSERT INTO s SELECT a FROM o')
except ImportError:
    pass
st.execute()
""",
        PASSED_OVER,
    ),
    "an option": (
        """\
try:
    import fancy
    t_env.get_config().set('table.exec.state.ttl', '1 d')
except Exception:
    pass
o.filter(col('a') > 1).execute_insert('s')
""",
        PASSED_OVER,
    ),
    "an answer by either way": (
        """\
def size():
    try:
        import fancy
        return 10
    except ImportError:
        return 20
o.filter(col('a') > size()).execute_insert('s')
""",
        HANDLED,
    ),
    "an answer of the handler alone": (
        """\
def size():
    try:
        import fancy
    except ImportError:
        return 20
    return 10
o.filter(col('a') > size()).execute_insert('s')
""",
        HANDLED,
    ),
    "an answer behind the handler": (
        """\
def pick(t):
    try:
        import fancy
        return t.filter(col('a') > 3)
    except ImportError:
        pass
    return t
pick(o).execute_insert('s')
""",
        LEFT,
    ),
    "what else sets": (
        """\
n = 1
try:
    import fancy
except ImportError:
    pass
else:
    n = 2
o.filter(col('a') > n).execute_insert('s')
""",
        PASSED_OVER,
    ),
    "the rounds of a loop": (
        """\
for n in (1, 2):
    try:
        import fancy
    except ImportError:
        continue
    o.filter(col('a') > n).execute_insert('s')
""",
        HANDLED,
    ),
    "where a loop ends": (
        """\
for n in (1, 2):
    try:
        import fancy
        break
    except ImportError:
        continue
o.filter(col('a') > n).execute_insert('s')
""",
        HANDLED,
    ),
    "suppress": (
        """\
n = 1
with suppress(ImportError):
    import fancy
    n = 2
o.filter(col('a') > n).execute_insert('s')
""",
        "contextlib",
    ),
    "another module": (
        """\
try:
    from fast import N
except ImportError:
    from slow import N
o.filter(col('a') > N).execute_insert('s')
""",
        HANDLED,
    ),
    "None in place of a table is the end": (
        """\
def get():
    try:
        return t_env.from_path('o')
    except Exception as e:
        print(e)
get().execute_insert('s')
""",
        LEFT,
    ),
    "a name that is new": (
        """\
try:
    n = int('2')
except ValueError as e:
    print(e)
o.filter(col('a') > n).execute_insert('s')
""",
        PASSED_OVER,
    ),
}
READ = {
    "a program that ends": """\
def main():
    try:
        o.filter(col('a') > 1).execute_insert('s')
    except Exception as e:
        print(e)
        return
main()
""",
    "whatever happened before": """\
n = 1
try:
    import fancy
    n = 2
finally:
    n = 3
o.filter(col('a') > n).execute_insert('s')
""",
    "raised again": """\
n = 1
try:
    import fancy
    n = 2
except ImportError:
    print('no')
    raise
o.filter(col('a') > n).execute_insert('s')
""",
    "somebody ends the program": """\
n = 1
try:
    n = 2
except (KeyboardInterrupt, SystemExit):
    pass
o.filter(col('a') > n).execute_insert('s')
""",
    "a table that has to be there": """\
try:
    t_env.execute_sql("CREATE TABLE x (a BIGINT) WITH ('connector' = 'kafka')")
except Exception:
    pass
t_env.from_path('x').execute_insert('s')
""",
    "nothing before it": """\
n = None
try:
    n = t_env.from_path('o')
except Exception as e:
    print(e)
n.execute_insert('s')
""",
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_may_have_been_left_half_way_is_not_read(name: str) -> None:
    text, why = UNREAD[name]
    unread = parse_program(HEAD + text, "job.py").unread
    assert any(why in each.reason for each in unread), unread


@pytest.mark.parametrize("name", READ)
def test_what_comes_to_the_same_is_read(name: str) -> None:
    script = parse_program(HEAD + READ[name], "job.py")
    assert script.unread == ()
    assert "INSERT INTO" in script.statements[-1].text
