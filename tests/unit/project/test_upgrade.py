"""The table ``[upgrade]``: what it means, and what is said of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import read_tables
from airflow_flinkcompat.project.settings import load_project
from airflow_flinkcompat.project.upgrade import FleetUpgrade, Risk, Wave, upgrade_of

DEPLOYMENTS = """
[deployments.orders]
script = "orders.sql"
tags = ["canary", "shop"]

[deployments.clicks]
script = "clicks.sql"
"""
TABLE = """\
[upgrade]
from = "1.20"
to = "2.3"
flink_conn_id = "flink_23"
wave = ["canary", "*"]
"""


def read(folder: Path, table: str) -> FleetUpgrade:
    path = folder / "flinkcompat.toml"
    path.write_text(table + DEPLOYMENTS, encoding="utf-8")
    load_project(path)
    return upgrade_of(read_tables(path))


def test_waves_take_deployments_by_tag(tmp_path: Path) -> None:
    upgrade = read(tmp_path, TABLE + 'hold = "1 h"\nlag = { pendingRecords = 10000 }\n')
    assert (upgrade.old, upgrade.new, upgrade.hold, upgrade.lag) == ("1.20", "2.3", 3600, {"pendingRecords": 10000})
    found = [upgrade.wave_of(tags, None, Risk.HIGH) for tags in (["shop", "canary"], ["shop"], [])]
    assert [str(each) for each in found] == ["canary", "*", "*"]
    assert upgrade.connection_of("flink_120") == "flink_23"
    few = read(tmp_path, TABLE.replace(', "*"', "").replace('"flink_23"', '{ eu = "eu_23" }'))
    assert (few.wave_of([], 0, Risk.NONE), few.hold) == (None, 600)
    assert (few.connection_of("eu"), few.connection_of("us")) == ("eu_23", None)


def test_waves_take_jobs_by_size_and_risk(tmp_path: Path) -> None:
    waves = '["canary", { size = "1 GB", risk = "none" }, { tag = "shop", risk = "low" }, { size = "20GB" }, "*"]'
    upgrade = read(tmp_path, TABLE.replace('["canary", "*"]', waves))
    assert [str(each) for each in upgrade.waves] == [
        "canary",
        "size 1 GB, risk none",
        "tag shop, risk low",
        "size 20GB",
        "*",
    ]
    jobs: dict[tuple[str, int | None, Risk], int] = {
        ("canary", None, Risk.HIGH): 0,
        ("other", 1_000_000_000, Risk.NONE): 1,
        ("shop", 1_000_000_001, Risk.NONE): 2,
        ("shop", 0, Risk.LOW): 2,
        ("other", 0, Risk.LOW): 3,
        ("shop", 20_000_000_000, Risk.HIGH): 3,
        ("shop", 20_000_000_001, Risk.HIGH): 4,
        ("other", None, Risk.NONE): 4,
    }
    found = {job: upgrade.wave_of([job[0]], *job[1:]) for job in jobs}
    assert {job: upgrade.waves.index(wave or Wave()) for job, wave in found.items()} == jobs


@pytest.mark.parametrize(
    ("former", "wrong", "words"),
    [
        ("wave", "waves", "5:1: upgrade.waves: is unknown; did you mean wave?"),
        ('from = "1.20"\n', "", '1:2: upgrade.from: is missing from [upgrade]; add from = "1.20"'),
        ('to = "2.3"', "to = 2.3", '3:1: upgrade.to: 2.3 is not a line of Flink; write it as text, such as to = "2.3"'),
        ('"2.3"', '"1.19"', "3:1: upgrade.to: 1.19 is not later than 1.20: an older line cannot read"),
        ('"flink_23"', "true", "4:1: upgrade.flink_conn_id: is not the id of a connection, or a table of ids; write"),
        ('"flink_23"', "{ eu = 1 }", "4:19: upgrade.flink_conn_id.eu: is not the id of a connection; write"),
        (
            '["canary", "*"]',
            '"canary"',
            '5:1: upgrade.wave: is not a list of tags and tables; write wave = ["canary", "*"]',
        ),
        ('"canary", "*"', '"cannary"', "5:9: upgrade.wave.1: no deployment has the tag 'cannary'; the tags are canary"),
        ('"canary", "*"', '"*", "shop"', "5:14: upgrade.wave.2: 'shop' follows '*', which contains all remaining"),
        ('"canary", "*"', '"shop", "shop"', "5:17: upgrade.wave.2: 'shop' is listed twice; remove one"),
        ('"canary"', "{}", "5:9: upgrade.wave.1: has no condition; write { size = \"1 GB\" }, or '*' for all"),
        ('"canary"', '{ bytes = "1" }', "5:11: upgrade.wave.1.bytes: is unknown"),
        ('"canary"', '{ tag = "can" }', "5:11: upgrade.wave.1.tag: no deployment has the tag 'can'; the tags are"),
        ('"canary"', "{ size = 10 }", "5:11: upgrade.wave.1.size: 10 is not a size; write a number and KB, MB, GB"),
        ('"canary"', '{ risk = "high" }', "5:11: upgrade.wave.1.risk: 'high' is not the highest risk of a wave;"),
        ("wave =", "hold = 3600\nwave =", "5:1: upgrade.hold: 3600 is not a duration. Write a duration such as"),
        ("wave =", "lag = 1\nwave =", "5:1: upgrade.lag: is not a table of metrics; write lag = { pendingRecords"),
        ("wave =", 'lag = { a = "1" }\nwave =', "5:9: upgrade.lag.a: '1' is not a number; write the largest healthy"),
        (TABLE, "upgrade = 1\n", "1:1: upgrade: a table is needed, [upgrade]"),
        (TABLE, "", "[upgrade] is missing: add it with from"),
    ],
)
def test_a_mistake_has_place_and_remedy(tmp_path: Path, former: str, wrong: str, words: str) -> None:
    assert former in TABLE
    with pytest.raises(InputError) as raised:
        read(tmp_path, TABLE.replace(former, wrong))
    assert f"{tmp_path / 'flinkcompat.toml'}:" in str(raised.value)
    assert words in str(raised.value)
