"""No command shows a secret."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_flinkcompat import Side, check
from airflow_flinkcompat.compat import render_markdown, render_text, report_rows
from tests.support.cli.command import V1, Run, lines, save

LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
SECRETS = st.text(LETTERS, min_size=12, max_size=24).map("Zq9{}".format)
HIDING_PLACES = """\
CREATE TABLE source (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'password' = '{0}',
  'properties.sasl.jaas.config' = 'org.example.Login required username="u" password="{0}";',
  'url' = 'jdbc:postgresql://user:{0}@db:5432/x', 'api.token' = '{0}');
-- the password = '{0}' of the old cluster
SET 's3.secret-key' = '{0}';
ADD JAR 'https://me:{0}@files.example.com/x.jar';
CREATE CATALOG lake WITH ('type' = 'jdbc', 'password' = '{0}');
CREATE TEMPORARY FUNCTION tidy AS 'com.example.Tidy' USING JAR 'https://me:{0}@files.example.com/tidy.jar';
CREATE TEMPORARY VIEW calls AS SELECT CONCAT('https://me:{0}@api.example.com/', a) AS a, b, ts FROM source;
CREATE TABLE broken (a STRING) WITH ('password' = '{0}', nonsense);
INSERT INTO sink /*+ OPTIONS('password' = '{0}') */
SELECT a, MAX(CONCAT(a, 'https://me:{0}@api.example.com/'))
FROM TABLE(TUMBLE(TABLE calls, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE a <> 'https://me:{0}@api.example.com/' GROUP BY a, window_start, window_end;
"""


@settings(max_examples=20)
@given(old=SECRETS, new=SECRETS, engine=st.sampled_from(["vvr", "flink"]))
def test_no_output_shows_a_secret(old: str, new: str, engine: str) -> None:
    in_force = [{"fs.azure.account.key": secret, "my.auth.token": secret} for secret in (old, new)]
    report = check(
        Side(HIDING_PLACES.format(old), in_force[0], engine=engine),
        Side(HIDING_PLACES.format(new), in_force[1], engine=engine),
        with_other_engine=True,
    )
    outputs = (
        json.dumps(report.to_dict()),
        render_text(report),
        render_markdown(report),
        "\n".join(report_rows(report)),
    )
    for output in outputs:
        assert old not in output
        assert new not in output
    assert report.warnings


ODD = "ab1 '\"`,;=:#\t\n\r\\"
ODD_SECRETS = st.lists(SECRETS, min_size=2, max_size=3, unique=True).flatmap(
    lambda cores: st.lists(st.text(ODD, max_size=3), min_size=len(cores) + 1, max_size=len(cores) + 1).map(
        lambda gaps: (cores, gaps[0] + "".join(core + gap for core, gap in zip(cores, gaps[1:], strict=True)))
    )
)
"""The parts that must not show, and a value with them between blanks, quotes, commas and line breaks."""
ODD_PLACES = """\
CREATE TABLE source (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'password' = '{0}', 'properties.sasl.jaas.config' = '{0}', 'basic-auth' = '{0}', 'z' = 'y');
CREATE TABLE sink (a STRING, n BIGINT) WITH ('connector' = 'jdbc', 'api.token' = '{0}', 'url' = 'jdbc:x');
SET 's3.secret-key' = '{0}';
INSERT INTO sink /*+ OPTIONS('password' = '{0}') */ SELECT a, COUNT(*)
FROM TABLE(TUMBLE(TABLE source, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
"""


@settings(max_examples=30, deadline=None)
@given(planted=ODD_SECRETS, engine=st.sampled_from(["vvr", "flink"]), is_old=st.booleans())
def test_no_output_shows_the_tail_of_a_secret(planted: tuple[list[str], str], engine: str, is_old: bool) -> None:
    """Where key and value are known it does not matter what the value holds."""
    cores, secret = planted

    def side(value: str) -> Side:
        return Side(ODD_PLACES.format(value.replace("'", "''")), {"a.token": value, "basic_auth": value}, engine=engine)

    sides = (side(secret), side("other")) if is_old else (side("other"), side(secret))
    report = check(*sides, with_other_engine=True)
    assert {"source-table-changed", "setting-changed"} <= {finding.rule for finding in report.findings}
    outputs = (
        *(finding.before + finding.after for finding in report.findings),
        json.dumps(report.to_dict()),
        *(render_text(report), render_markdown(report), "\n".join(report_rows(report))),
    )
    assert [core for core in cores for output in outputs if core in output] == []


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
def test_a_setting_with_blanks_and_quotes_is_masked_whole(run: Run, style: str) -> None:
    save(old=V1, new=V1)
    pairs = ("my.password=one 'hunter2', \"hunter3\"\nhunter4", "basic-auth=bob:a hunter5")
    args = [part for pair in pairs for part in ("--set", pair, "--old-set", pair + " hunter6")]
    result = run("check", "old.sql", "new.sql", "--allow-secrets", "--format", style, *args)
    assert "my.password = ***" in result.out
    assert "hunter" not in result.out + result.err


def test_the_command_line_shows_no_secret(run: Run) -> None:
    secret = "hunter2isnotgood"
    readable = "\n".join(line for line in HIDING_PLACES.splitlines() if "broken" not in line)
    for script, codes in ((HIDING_PLACES, {2}), (readable, {0, 1})):
        save(old=script.format(secret), new=script.format(secret + "2"))
        for style in ("text", "json", "markdown"):
            options = ("--allow-secrets", "--format", style, "--old-set", f"my.password={secret}")
            result = run("check", "old.sql", "new.sql", *options)
            assert result.code in codes
            assert secret not in result.out + result.err
            assert secret not in run("check", "old.sql", "new.sql").err
    pair = {"id": 1, "old": readable.format(secret), "new": V1, "settings_old": {"my.password": secret}}
    assert secret not in run("batch", "-", stdin=lines(pair)).out
    assert secret not in run("check", "old.sql", "new.sql", "--set", f"password:{secret}").err
