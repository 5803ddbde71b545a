"""Tree shapes that the planner relies on."""

import pytest
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.statement_parser import Flink, parse_statement


def select(text: str) -> exp.Expr:
    """The first projection of ``SELECT text FROM t``."""
    return parse_statement(f"SELECT {text} FROM t").expressions[0]


def relation(text: str) -> exp.Expr:
    return parse_statement(f"SELECT * FROM {text}").args["from_"].this


# ------------------------------------------------------------------------------------------ names, literals
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t", "SELECT A FROM t"),
        ("SELECT a FROM t", "SELECT a FROM T"),
        ("SELECT a AS x FROM t", "SELECT a AS X FROM t"),
        ("SELECT 'a' FROM t", "SELECT 'A' FROM t"),
        ("SET 'k' = 'v'", "SET 'k' = 'V'"),
        ("SET 'k' = 'v'", "SET 'K' = 'v'"),
        ("CREATE TABLE t (a INT) WITH ('path' = '/A')", "CREATE TABLE t (a INT) WITH ('path' = '/a')"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS TRUE)",
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a) DEFINE A AS TRUE)",
        ),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a DESC"),
        ("SELECT COUNT(a) FROM t", "SELECT COUNT(DISTINCT a) FROM t"),
        ("SELECT INTERVAL '1' DAY FROM t", "SELECT INTERVAL -'1' DAY FROM t"),
        ("SELECT a FROM t /*+ OPTIONS('k'='v') */", "SELECT a FROM t"),
        ("SELECT /*+ STATE_TTL('a'='1d') */ a FROM t", "SELECT a FROM t"),
        ("SELECT a FROM t JOIN d ON TRUE", "SELECT a FROM t JOIN d FOR SYSTEM_TIME AS OF t.ts ON TRUE"),
        ("INSERT INTO t SELECT 1", "INSERT OVERWRITE t SELECT 1"),
        ("SELECT CAST(a AS INT) FROM t", "SELECT TRY_CAST(a AS INT) FROM t"),
        ("SELECT CAST(a AS TIMESTAMP(3)) FROM t", "SELECT CAST(a AS TIMESTAMP_LTZ(3)) FROM t"),
        ("SELECT CAST(a AS INT) FROM t", "SELECT CAST(a AS INT NOT NULL) FROM t"),
        ("SELECT a FROM t UNION SELECT 1", "SELECT a FROM t UNION ALL SELECT 1"),
        ("SELECT x.f(1) FROM t", "SELECT f(1) FROM t"),
    ],
)
def test_statements_that_differ_have_different_trees(one: str, other: str) -> None:
    assert parse_statement(one) != parse_statement(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT sum(a) FROM t", "select SUM(a) from t"),
        ("SELECT INTERVAL '1' MINUTE FROM t", "SELECT INTERVAL '1' minutes FROM t"),
        ("SET 'a.b' = 'c'", "SET a.b = c"),
        ("SET 'a' = '1 h'", "set a =  1 h"),
        ("SELECT CAST(a AS INTEGER) FROM t", "SELECT CAST(a AS INT) FROM t"),
        ("SELECT CAST(a AS TIMESTAMP(3) WITH LOCAL TIME ZONE) FROM t", "SELECT CAST(a AS TIMESTAMP_LTZ(3)) FROM t"),
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' DAY))",) * 2,
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' DAY))",
            "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' DAY)",
        ),
        ("SELECT 'ab' FROM t", "SELECT 'a'\n  'b' FROM t"),
        (
            "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END",
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END",
        ),
        ("SELECT a FROM t GROUP BY a", "SELECT a FROM t GROUP /* x */ -- y\n BY a"),
        ("SELECT a FROM t UNION SELECT 1", "SELECT a FROM t UNION DISTINCT SELECT 1"),
        ("SELECT SUBSTRING(a FROM 1 FOR 2) FROM t", "SELECT SUBSTRING(a, 1, 2) FROM t"),
    ],
)
def test_spellings_of_one_statement_share_a_tree(one: str, other: str) -> None:
    assert parse_statement(one) == parse_statement(other)


def test_double_quotes_do_not_quote_a_name() -> None:
    with pytest.raises(ParseError):
        parse_statement('SELECT "a" FROM t')


def test_the_dialect_is_registered_by_name() -> None:
    assert isinstance(Flink.get_or_raise("flink"), Flink)


# ------------------------------------------------------------------------------------------------ relations
def test_a_window_function_keeps_its_parts() -> None:
    window = relation(
        "TABLE(HOP(DATA => TABLE c.d.t, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' HOURS, `SIZE` => 2)) AS w"
    )
    assert isinstance(window, nodes.TableFunction)
    assert window.this.name == "HOP"
    assert not window.args["lateral"]
    assert window.alias == "w"
    arguments = {argument.this.name: argument.expression for argument in window.expressions}
    assert list(arguments) == ["DATA", "TIMECOL", "SLIDE", "SIZE"]
    data = arguments["DATA"]
    assert isinstance(data, nodes.TableArgument)
    assert (data.this.catalog, data.this.db, data.this.name) == ("c", "d", "t")
    assert isinstance(arguments["TIMECOL"], nodes.Descriptor)
    assert [column.name for column in arguments["TIMECOL"].expressions] == ["ts"]
    slide = arguments["SLIDE"]
    assert isinstance(slide, exp.Interval)
    assert (slide.this.name, slide.args["unit"].name) == ("1", "HOUR")


@pytest.mark.parametrize("argument", ["MODEL m", "MODEL => MODEL c.d.m"])
def test_a_model_is_an_argument_by_its_name(argument: str) -> None:
    call = relation(f"TABLE(ML_PREDICT(TABLE t, {argument}, DESCRIPTOR(a)))")
    (model,) = call.find_all(nodes.ModelArgument)
    assert model.this.name == "m"
    assert "MODEL " in call.sql(dialect="flink")


@pytest.mark.parametrize("keys", ["a", "(a)", "(a, b)"])
def test_a_table_argument_keeps_its_partition_keys(keys: str) -> None:
    window = relation(f"TABLE(SESSION(TABLE t PARTITION BY {keys}, DESCRIPTOR(ts), INTERVAL '1' DAY))")
    argument = window.expressions[0]
    assert isinstance(argument, nodes.TableArgument)
    assert [key.name for key in argument.args["partition_by"]] == keys.strip("()").split(", ")
    assert len(window.expressions) == 3


def test_a_user_function_in_lateral_table_is_not_a_built_in() -> None:
    tree = parse_statement("SELECT * FROM t LEFT JOIN LATERAL TABLE(split(c, 1)) AS T(x, y) ON TRUE")
    join = tree.args["joins"][0]
    assert join.side == "LEFT"
    assert isinstance(join.this, nodes.TableFunction)
    assert join.this.this.name == "split"
    assert join.this.args["lateral"]
    assert [column.name for column in join.this.args["alias"].columns] == ["x", "y"]


def test_hints_stay_in_the_tree() -> None:
    tree = parse_statement("SELECT /*+ STATE_TTL('a'='1d'), BROADCAST(x) */ * FROM t /*+ OPTIONS('k'='v') */ AS u")
    state, broadcast = tree.args["hint"].expressions
    assert (state.this.name, state.expressions[0].this.name, state.expressions[0].expression.name) == (
        *("STATE_TTL", "a", "1d"),
    )
    assert (broadcast.this.name, broadcast.expressions[0].name) == ("BROADCAST", "x")
    table = tree.args["from_"].this
    assert table.alias == "u"
    assert table.args["hints"][0].this.name == "OPTIONS"


@pytest.mark.parametrize(
    "text",
    ["SELECT a /*+ X */ FROM t", "SELECT a FROM t WHERE /*+ X */ a = 1", "SELECT a FROM (SELECT 1) /*+ X('a'='b') */"],
)
def test_a_misplaced_hint_is_an_error_and_not_a_comment(text: str) -> None:
    with pytest.raises(ParseError):
        parse_statement(text)


def test_a_lookup_join_keeps_its_time() -> None:
    join = parse_statement("SELECT * FROM o JOIN d FOR SYSTEM_TIME AS OF o.pt AS e ON o.k = e.k").args["joins"][0]
    assert isinstance(join.this.args["version"], nodes.SystemTime)
    assert join.this.args["version"].this.name == "pt"
    assert join.this.alias == "e"


def test_match_recognize_is_a_relation_of_its_own() -> None:
    match = relation(
        "t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.x AS ax ONE ROW PER MATCH "
        "AFTER MATCH SKIP TO FIRST B PATTERN (A+ B{2,}?) WITHIN INTERVAL '1' HOUR DEFINE A AS A.x > 1) AS m"
    )
    assert isinstance(match, nodes.MatchRecognize)
    assert match.this.name == "t"
    assert match.alias == "m"
    first, second = match.args["pattern"].expressions
    assert (first.this.name, first.args["minimum"].name, first.args["maximum"]) == ("A", "1", None)
    assert (second.args["minimum"].name, second.args["maximum"], second.args["reluctant"]) == ("2", None, True)
    assert match.args["within"].this.name == "1"
    assert match.args["after"].expression.name == "B"
    assert match.args["define"][0].this.name == "A"


# ---------------------------------------------------------------------------------------------- expressions
@pytest.mark.parametrize("name", ["SUM", "sum", "TUMBLE_START", "split", "DATE_FORMAT", "COALESCE", "session", "IF"])
def test_every_call_keeps_its_name(name: str) -> None:
    call = select(f"{name}(a, 1)")
    assert isinstance(call, exp.Anonymous)
    assert call.name == name
    assert len(call.expressions) == 2


def test_aggregates_keep_distinct_and_filter() -> None:
    call = select("COUNT(DISTINCT a, b) FILTER (WHERE c > 1)")
    assert isinstance(call, exp.Filter)
    distinct = call.this.expressions[0]
    assert isinstance(distinct, exp.Distinct)
    assert [column.name for column in distinct.expressions] == ["a", "b"]
    assert isinstance(call.expression, exp.Where)


def test_grouping_sets_stand_among_the_keys() -> None:
    group = parse_statement("SELECT a FROM t GROUP BY a, GROUPING SETS ((b), ()), CUBE (c), ROLLUP (d)").args["group"]
    assert [type(key) for key in group.expressions] == [exp.Column, exp.GroupingSets, exp.Cube, exp.Rollup]


@pytest.mark.parametrize(
    ("text", "name", "parameters"),
    [
        ("INTEGER", "INT", 0),
        ("NUMERIC(10, 2)", "DECIMAL", 2),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ", 1),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ", 1),
        ("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP", 0),
        ("DOUBLE PRECISION", "DOUBLE", 0),
        ("INT ARRAY", "ARRAY", 1),
        ("MAP<STRING, INT>", "MAP", 2),
        ("ROW<a INT, b STRING>", "ROW", 2),
        ("RAW('c', 's')", "RAW", 2),
        ("my.own.Type", "USER", 1),
    ],
)
def test_types_are_canonical(text: str, name: str, parameters: int) -> None:
    cast = select(f"CAST(a AS {text})")
    data_type = cast.args["to"]
    assert isinstance(data_type, nodes.FlinkType)
    assert data_type.this == name
    assert len(data_type.expressions or []) == parameters
    assert not data_type.args.get("not_null")


def test_a_table_keeps_its_kinds_of_columns_apart() -> None:
    tree = parse_statement(
        "CREATE TABLE t (a INT, b AS a + 1, c STRING METADATA FROM 'k' VIRTUAL, WATERMARK FOR ts AS ts, "
        "ts TIMESTAMP(3), PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'x', 'k.y' = 'z')"
    )
    assert isinstance(tree, nodes.CreateTable)
    assert [type(column) for column in tree.args["columns"]] == [
        *(nodes.PhysicalColumn, nodes.ComputedColumn, nodes.MetadataColumn, nodes.PhysicalColumn),
    ]
    assert tree.args["columns"][2].args["metadata_key"].name == "k"
    assert [watermark.this.name for watermark in tree.args["watermarks"]] == ["ts"]
    assert tree.args["constraints"][0].args["enforced"] is False
    assert {option.this.name: option.expression.name for option in tree.args["options"]} == {
        "connector": "x",
        "k.y": "z",
    }


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT a FROM SELECT 1", "FROM t", "SELECT a, FROM t", "SELECT f(a,) FROM t", "SELECT a FROM t,"),
        *("SELECT a FROM t JOIN ON TRUE", "INSERT t SELECT 1", "CREATE THING t", "SELECT a IN b FROM t"),
        *(
            "SELECT a BETWEEN 1 FROM t",
            "SELECT a BETWEEN 1 2 FROM t",
            "SELECT a BETWEEN b c AND 2 FROM t",
            "SELECT CAST(a) FROM t",
            "SELECT a FROM t SELECT b FROM u",
            "SELECT 1; SELECT 2",
        ),
        *("SELECT a::INT FROM t", "SELECT a -> b FROM t", "SELECT @a FROM t", "SELECT :a FROM t", "SELECT ? FROM t"),
        *("CREATE TABLE t (a)(b)", "GRANT ALL", "COPY t FROM 'x'", "SELECT {# hidden #} 1 FROM t", "{{ a }}"),
        *("WITH a AS (DROP TABLE t) SELECT 1", "SELECT INTERVAL '1' FROM t", "SELECT INTERVAL '1 DAY' FROM t", ""),
        *("SELECT a FROM t GROUP BY a WITH ROLLUP", "SELECT a INTO u FROM t", "SELECT DISTINCT ON (a) b FROM t"),
        *(
            "SELECT AS STRUCT a FROM t",
            "SELECT * EXCEPT (a) FROM t",
            "SELECT a FROM t LIMIT 1 BY a",
        ),
        *(
            "SELECT a FROM t FETCH FIRST 5 ROWS WITH TIES",
            "SELECT a FROM t ORDER BY a WITH FILL",
            "SELECT * REPLACE (1 AS a) FROM t",
        ),
        *(
            "SELECT a FROM t UNION BY NAME SELECT b FROM u",
            "SELECT a FROM t START WITH a CONNECT BY b",
            "SELECT a FROM t GROUP BY ALL",
        ),
        *(
            "WITH a AS MATERIALIZED (SELECT 1) SELECT 1",
            "WITH a AS (SELECT 1) WITH b AS (SELECT 2) SELECT * FROM a",
            "WITH a AS (SELECT 1), WITH b AS (SELECT 2) SELECT * FROM a",
            "SELECT SUM(a) OVER (ORDER BY b ROWS 1 PRECEDING EXCLUDE TIES) FROM t",
        ),
        *("SELECT MAX(a HAVING MAX b) FROM t", "SELECT f(a ORDER BY b LIMIT 1) FROM t", "SELECT a.*EXCLUDE (b) FROM a"),
        *("SET a = b--c", "SET a = /x//y", "ADD JAR /opt/x.jar", "SELECT a FROM t AS (b)", "SELECT a AS (b, c) FROM t"),
        *("SELECT a FROM t TABLESAMPLE (1)", "SELECT TOP 1 a FROM t", "DELETE", "EXECUTE STATEMENT SET BEGIN INSERT"),
        "CREATE TABLE t (a STRING, items . INT, b INT) WITH ('connector' = 'print')",
    ],
)
def test_what_flink_cannot_read_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_statement(text)


@pytest.mark.parametrize(
    ("literal", "plain"),
    [
        (r"U&'a\0041b'", "'aAb'"),
        (r"u&'\0041!'", "'A!'"),
        ("U&'a!0041b' UESCAPE '!'", "'aAb'"),
        ("U&'a!!b' uescape '!'", "'a!b'"),
        (r"U&'\D83D\DE00'", "'😀'"),
        ("U&'it''s \\0027'", "'it''s '''"),
        ("U&'a'\n'\\0041'", "'aA'"),
    ],
)
def test_unicode_escapes_are_the_characters_they_mean(literal: str, plain: str) -> None:
    """As Flink 2.3 reads them, in an expression, an option, a hint and a setting."""
    for text in (
        *("SELECT {0} FROM t", "CREATE TABLE t (a INT) WITH ('k' = {0}, {0} = 'v')", "SET 'k' = {0}"),
        *("SELECT a FROM t /*+ OPTIONS('k' = {0}) */", "SELECT a FROM t WHERE a LIKE {0} ESCAPE '!'"),
    ):
        assert parse_statement(text.format(literal)) == parse_statement(text.format(plain))


@pytest.mark.parametrize("literal", [r"U&'\00'", r"U&'\zzzz'", r"U&'\D800'", "U&'a' UESCAPE 'ab'", "U&'a' UESCAPE '0'"])
def test_escapes_that_mean_no_character_are_refused(literal: str) -> None:
    with pytest.raises(TokenError):
        parse_statement(f"SELECT {literal}")


def test_uescape_is_a_name_elsewhere() -> None:
    assert parse_statement("SELECT uescape FROM t").expressions[0].name == "uescape"
