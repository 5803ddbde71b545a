"""Scripts: splitting, places, errors."""

import pickle
from pathlib import Path

import pytest
from sqlglot import exp

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.sql import ScriptError, Statement, nodes, parse_script
from airflow_flinkcompat.sql.script import AS_SUBMITTED, read_script, span_of

SCRIPT = """\
-- a comment; with a semicolon
SET 'a' = 'b;c';

/* another; one */ CREATE TABLE `x;y` (
  a INT
) WITH ('k' = 'it''s; here');;
INSERT INTO s
SELECT SUM(b),
       MAX(c) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) -- end;
"""


def texts(script: str) -> list[str]:
    return [statement.text for statement in parse_script(script).statements]


def covered(node: exp.Expr, statement: Statement, script: str) -> str:
    """The text a span covers."""
    span = span_of(node, statement)
    lines = script.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines)


def test_splits_at_semicolons_outside_of_text() -> None:
    script = parse_script(SCRIPT, "job.sql")
    assert [type(statement.tree) for statement in script.statements] == [
        *(nodes.SetOption, nodes.CreateTable, nodes.InsertInto),
    ]
    assert [str(statement.span) for statement in script.statements] == ["job.sql:2:1", "job.sql:4:20", "job.sql:7:1"]
    assert script.statements[1].span == Span("job.sql", 4, 20, 6, 28)
    assert script.statements[1].text.endswith("WITH ('k' = 'it''s; here')")
    assert script.statements[2].text.endswith("INTERVAL '1' MINUTE))")


@pytest.mark.parametrize(
    "start", ["EXECUTE STATEMENT SET BEGIN", "begin statement set ;", "BEGIN /* ; */ STATEMENT\nSET;"]
)
def test_a_statement_set_is_one_statement(start: str) -> None:
    script = parse_script(
        f"SET 'a' = 'b'; {start} INSERT INTO a SELECT CASE WHEN x THEN 1 END; INSERT INTO b SELECT 2; END; SELECT 1"
    )
    assert [type(statement.tree) for statement in script.statements] == [
        nodes.SetOption,
        nodes.StatementSet,
        exp.Select,
    ]
    inserts = script.statements[1].tree.expressions
    assert [insert.this.name for insert in inserts] == ["a", "b"]


def test_a_statement_set_without_an_end_is_an_error_with_a_place() -> None:
    script = parse_script("EXECUTE STATEMENT SET BEGIN\nINSERT INTO a SELECT 1;", "s.sql")
    (statement,) = script.statements
    assert statement.tree is None
    assert statement.error == "s.sql:2:23: The statement set is not closed with END"


def test_an_empty_statement_set_and_nested_words_do_not_confuse_the_splitter() -> None:
    assert len(texts("EXECUTE STATEMENT SET BEGIN END; SELECT `end`; SELECT a AS `begin` FROM t; SELECT 1")) == 4


@pytest.mark.parametrize(
    "text",
    """
    SELECT FROM t
    SELECT ALL FROM t
    SELECT DISTINCT FROM t
    SELECT , a FROM t
    SELECT a, , b FROM t
    SELECT f(, a) FROM t
    SELECT a. FROM t
    SELECT () FROM t
    SELECT a IN () FROM t
    SELECT COUNT(DISTINCT) FROM t
    SELECT EXTRACT(FROM a) FROM t
    SELECT SUBSTRING(FROM 1) FROM t
    SELECT SUBSTRING(a FOR 2) FROM t
    SELECT OVERLAY(a PLACING b) FROM t
    SELECT ROW_NUMBER() OVER FROM t
    SELECT SUM(a) OVER (PARTITION BY) FROM t
    SELECT SUM(a) OVER (ORDER BY b ROWS) FROM t
    SELECT SUM(a) OVER (ORDER BY b ROWS 1) FROM t
    SELECT SUM(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING) FROM t
    SELECT SUM(a) OVER (ORDER BY b ROWS 1 PRECEDING AND CURRENT ROW) FROM t
    SELECT SUM(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND BETWEEN CURRENT ROW) FROM t
    SELECT a FROM t WINDOW w
    SELECT a FROM t JOIN u
    SELECT a FROM t JOIN u ON
    SELECT a FROM t LEFT JOIN u USING () GROUP BY a
    SELECT a FROM t AS u()
    SELECT a FROM t GROUP BY
    SELECT a FROM t GROUP BY CUBE()
    SELECT a AS 1 FROM t
    SELECT [1] FROM t
    SELECT a, AS b FROM t
    SELECT a FROM t GROUP GROUP BY a
    SELECT INTERVAL '1' '1' MINUTE FROM t
    SELECT a FROM t LIMIT 1, 2
    SELECT a FROM t FETCH NEXT ROWS ONLY
    INSERT INTO t () SELECT a FROM u
    INSERT INTO t PARTITION () SELECT a FROM u
    INSERT INTO t VALUES ()
    CREATE VIEW v () AS SELECT a FROM t
    CREATE TABLE t (a INT) PARTITIONED BY ()
    CREATE TABLE t (PRIMARY KEY () NOT ENFORCED)
    """.strip().split("\n"),
)
def test_nothing_is_read_into_a_gap(text: str) -> None:
    (statement,) = parse_script(text).statements
    assert statement.error


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("SELECT a FROM t WHERE", "x:1:17", "after WHERE"),
        ("SELECT 1;\nSELECT a,\n  b FROM WHERE c", "x:3:5", "after FROM"),
        ("CREATE TABLE t (\n  a INT,\n  b INTT INT\n)", "x:3:10", ""),
        ("SELECT 'never closed;\nSELECT 2", "x:1:8", "string is never closed"),
        ("SELECT /* never closed;\nSELECT 2", "x:1:8", "comment is never closed"),
        ("SELECT `never closed;\nSELECT 2", "x:1:8", "never closed"),
        ("/*+ HINT */ SELECT 1", "x:1:1", "hint"),
        ("SHUTDOWN NOW", "x:1:1", "query"),
        ("SELECT a\n FROM t GROUP BY bb WITH ROLLUP", "x:2:18", "not part of Flink SQL"),
        ("SELECT x'zz'", "x:1:1", "literal"),
        (f"SELECT {'(' * 5000}1{')' * 5000}", "x:1:1", "too deeply"),
        ("SELECT a FROM t ORDER BY a, ", "x:1:27", "sides of the comma"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_line_and_column(text: str, place: str, words: str) -> None:
    statement = parse_script(text, "x").statements[-1]
    assert statement.tree is None
    assert statement.error is not None
    assert statement.error.startswith(f"{place}: ")
    assert words in statement.error


def test_one_bad_statement_leaves_the_others_alone() -> None:
    script = parse_script("SELECT 1; FROBNICATE ALL THINGS; SELECT 2;")
    assert [statement.error is None for statement in script.statements] == [True, False, True]


def test_exactly_one_of_tree_and_error_is_set() -> None:
    for statement in parse_script("SELECT 1; WHAT; SELECT 'x").statements:
        assert (statement.tree is None) != (statement.error is None)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "CREATE TABLE t (a INT) WITH ('password' 'hunter2')",
            "SET password hunter2",
            "PASSWORD hunter2",
            "SET a = 'hunter2",
        ),
        *("SELECT hunter2 FROM t hunter2 hunter2", "SELECT `hunter2"),
    ],
)
def test_errors_and_representations_do_not_quote_the_text(text: str) -> None:
    script = parse_script(text)
    assert script.statements[0].error is not None
    assert "hunter2" not in script.statements[0].error
    assert "hunter2" not in repr(script)


@pytest.mark.parametrize("text", ["", "  \n\t", "-- nothing", "/* nothing; */ ;;\n; -- x", "\ufeff"])
def test_a_script_without_a_statement_is_refused(text: str) -> None:
    with pytest.raises(ScriptError, match="no SQL statement"):
        parse_script(text)


def test_reads_files(tmp_path: Path) -> None:
    path = tmp_path / "job.sql"
    path.write_bytes("\ufeffSELECT 'ü'".encode())
    script = read_script(path)
    assert script.source == str(path)
    assert script.text == "SELECT 'ü'"
    assert script.statements[0].span.line == 1


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read"), (b"SELECT 1;\n\xff", ":2: is not UTF-8"), (b"", "no SQL")]
)
def test_files_that_cannot_be_used_are_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "job.sql"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScriptError, match=words):
        read_script(path)


def test_a_folder_is_not_a_script(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="cannot be read"):
        read_script(tmp_path)


# --------------------------------------------------------------------------------------------------- places
def test_nodes_know_their_place_in_the_script() -> None:
    statement = parse_script(SCRIPT, "job.sql").statements[2]
    assert statement.tree is not None
    by_text = {covered(node, statement, SCRIPT) for node in statement.tree.walk()}
    assert by_text >= {
        *("SUM(b)", "MAX(c)", "b", "c", "t", "ts", "s", "'1'", "INTERVAL '1' MINUTE", "DESCRIPTOR(ts)"),
        *("TABLE t", "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"),
    }


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("SELECT a, t.b AS c FROM t", exp.Alias, "t.b AS c"),
        ("SELECT\n SUM( b )\n OVER (ORDER BY c) FROM t", exp.Anonymous, "SUM( b )"),
        ("SELECT CAST(a AS INT) FROM t", exp.Cast, "CAST(a AS INT)"),
        ("SELECT a FROM t /*+ OPTIONS('k' = 'v') */", nodes.HintCall, "OPTIONS('k' = 'v')"),
        ("SELECT a FROM t /*+ OPTIONS(\n'k' = 'v') */", nodes.Option, "'k' = 'v'"),
        (
            "CREATE TABLE t (a INT,\n  ts TIMESTAMP(3), WATERMARK FOR ts AS ts)",
            nodes.Watermark,
            "WATERMARK FOR ts AS ts",
        ),
        ("CREATE TABLE t (a INT) WITH ('x' = 'y')", nodes.Option, "'x' = 'y'"),
        ("SELECT a FROM t JOIN u ON a = 'ü' AND bb = 1", exp.And, "a = 'ü' AND bb = 1"),
        ("SELECT FLOOR(ts TO DAY) FROM t", nodes.KeywordCall, "FLOOR(ts TO DAY)"),
        ("SELECT a FROM (SELECT 1 AS a) AS s", exp.Subquery, "(SELECT 1 AS a) AS s"),
    ],
)
def test_spans_cover_what_was_read(text: str, kind: type[exp.Expr], expected: str) -> None:
    script = f"SELECT 0;\r\n  {text};"
    statement = parse_script(script).statements[1]
    assert statement.tree is not None
    node = next(iter(statement.tree.find_all(kind)))
    assert covered(node, statement, script) == expected


def test_a_node_without_position_falls_back_to_the_statement() -> None:
    statement = parse_script("SELECT 1;\n SELECT a FROM t", "x").statements[1]
    assert span_of(exp.column("built"), statement) == statement.span
    assert str(span_of(exp.column("built"), statement)) == "x:2:2"


def test_statements_written_the_same_share_their_tree_and_keep_their_own_places() -> None:
    old = parse_script("SELECT a FROM t;\nSELECT b FROM t;", "old.sql")
    new = parse_script("-- moved\nSELECT b\nFROM t;\n\n  SELECT b FROM t; SELECT c FROM (t;", "new.sql", like=old)
    changed, same, broken = new.statements
    assert same.tree is old.statements[1].tree
    assert changed.tree is not None
    assert changed.tree is not same.tree
    assert broken.tree is None
    assert broken.error is not None
    assert broken.error.startswith("new.sql:5:")
    (column,) = same.tree.find_all(exp.Column)
    assert (str(span_of(column, same)), str(span_of(column, old.statements[1]))) == ("new.sql:5:10", "old.sql:2:8")
    assert new == parse_script("-- moved\nSELECT b\nFROM t;\n\n  SELECT b FROM t; SELECT c FROM (t;", "new.sql")


@pytest.mark.parametrize("number", ["1e", "0x1F", "9" * 5000, "1e+", "CAST(a AS VARCHAR(1.5))", "CAST(a AS DECIMAL())"])
def test_what_is_no_number_in_flink_is_no_number(number: str) -> None:
    (statement,) = parse_script(f"SELECT {number} FROM t").statements
    assert statement.error


def test_half_a_character_is_an_error_with_its_line() -> None:
    with pytest.raises(ScriptError, match="x:2: contains half of a surrogate pair"):
        parse_script("SELECT 1;\nSELECT '\ud800'", "x")


def test_a_place_nobody_looked_at_is_a_place_like_any_other() -> None:
    statement = parse_script("SELECT a\nFROM t", "x").statements[0]
    assert statement.tree is not None
    column = statement.tree.expressions[0]
    plain = Span("x", 1, 8, 1, 8)
    assert span_of(column, statement) == plain
    assert plain == span_of(column, statement)
    assert span_of(column, statement) == span_of(column, statement) != span_of(statement.tree, statement)
    assert hash(span_of(column, statement)) == hash(plain)
    assert repr(span_of(column, statement)) == repr(plain)
    assert pickle.loads(pickle.dumps(span_of(column, statement))) == plain
    assert not hasattr(span_of(column, statement), "colour")


# --- a missing semicolon ---------------------------------------------------------------------------------------------


def test_a_statement_that_can_only_begin_there_ends_the_one_before() -> None:
    script = parse_script(
        "CREATE TABLE t (a INT) WITH ('k' = 'v') -- no end\n"
        "insert into t select a from u\n\n-- another\nCREATE VIEW v AS SELECT 1 b\nSELECT a FROM v;\nSELECT 1",
        "x",
    )
    assert [type(each.tree) for each in script.statements] == [
        *(nodes.CreateTable, nodes.InsertInto, nodes.CreateView, exp.Select, exp.Select),
    ]
    assert [str(each.unended or "") for each in script.statements] == ["x:2:1", "x:5:1", "x:6:1", "", ""]
    assert script.statements[0].text == "CREATE TABLE t (a INT) WITH ('k' = 'v')"
    assert not any(each.malformed for each in script.statements)


def test_behind_a_missing_semicolon_an_error_has_its_own_place() -> None:
    first, second = parse_script("CREATE TABLE t (a INT)\nINSERT INTO t SELECT a, FROM u", "x").statements
    assert first.tree is not None
    assert second.tree is None
    assert str(second.error).startswith("x:2:25: Expected a value on both sides")


@pytest.mark.parametrize("text", ["SELECT a FROM t UPDATE", "SELECT a FROM t x SHOW TABLES", "SELECT a FROM t b c"])
def test_a_word_that_flink_does_not_reserve_ends_nothing(text: str) -> None:
    (statement,) = parse_script(text, "x").statements
    assert statement.unended is None


def test_the_character_set_that_flink_writes_out_says_nothing() -> None:
    text = "CREATE TABLE t (a VARCHAR(3) CHARACTER SET `UTF-16LE` NOT NULL, b CHAR CHARACTER SET `{}`)"
    (statement,) = parse_script(text.format("UTF-16LE")).statements
    (plain,) = parse_script("CREATE TABLE t (a VARCHAR(3) NOT NULL, b CHAR)").statements
    assert statement.tree == plain.tree
    (other,) = parse_script(text.format("latin1")).statements
    assert other.error is not None
    assert "UTF-16LE" in other.error


@pytest.mark.parametrize("literal", ["'x'", "N'x'", "X'ab'", "U&'x'"])
def test_a_literal_is_no_name(literal: str) -> None:
    (statement,) = parse_script(f"SELECT b + 1 AS {literal} FROM t;").statements
    assert statement.tree is None
    assert "Expected a name" in str(statement.error)


def test_a_script_beyond_all_size_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(
        ScriptError, match=r"job\.sql: contains 100,000,000 characters; a script can have at most 8,000,000"
    ):
        parse_script("x" * 100_000_000, "job.sql")


@pytest.mark.parametrize(
    ("script", "placeholder"),
    [
        ("INSERT INTO {{ sink }} SELECT a FROM t", "{{ sink }}"),
        ("{% if wide %}INSERT INTO s SELECT a FROM t{% endif %}", "{% if wide %}"),
        ("SELECT a FROM t WHERE b > {least}", "{least}"),
        ("CREATE TABLE <your table> (a STRING)", "<your table>"),
        ("SELECT a FROM %s", "%s"),
        ("SELECT a FROM t WHERE b > :least", ":least"),
        ("${declarations}", "${declarations}"),
    ],
)
def test_a_placeholder_of_a_template_is_named(script: str, placeholder: str) -> None:
    (statement,) = parse_script(script, "x").statements
    assert f"{placeholder} is a placeholder of a template; {AS_SUBMITTED}" in str(statement.error)


@pytest.mark.parametrize(
    "script", ["SELECT CAST(a AS FOO<STRING>) FROM", "SELECT '{{ a }}' FROM t WHERE", "SELECT a FROM"]
)
def test_another_error_names_no_placeholder(script: str) -> None:
    (statement,) = parse_script(script, "x").statements
    assert statement.malformed
    assert AS_SUBMITTED not in str(statement.error)
