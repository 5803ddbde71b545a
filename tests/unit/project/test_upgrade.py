"""The table ``[upgrade]``: what it means, and what is said of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import read_tables
from airflow_flinkcompat.project.settings import load_project
from airflow_flinkcompat.project.upgrade import FleetUpgrade, upgrade_of

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
    assert [upgrade.wave_of(tags) for tags in (["shop", "canary"], ["shop"], [])] == ["canary", "*", "*"]
    assert upgrade.connection_of("flink_120") == "flink_23"
    few = read(tmp_path, TABLE.replace(', "*"', "").replace('"flink_23"', '{ eu = "eu_23" }'))
    assert (few.wave_of([]), few.hold) == (None, 600)
    assert (few.connection_of("eu"), few.connection_of("us")) == ("eu_23", None)


@pytest.mark.parametrize(
    ("former", "wrong", "words"),
    [
        ("wave", "waves", "5:1: upgrade.waves: is unknown; did you mean wave?"),
        ('from = "1.20"\n', "", '1:2: upgrade.from: is missing from [upgrade]; add from = "1.20"'),
        ('to = "2.3"', "to = 2.3", '3:1: upgrade.to: 2.3 is not a line of Flink; write it as text, such as to = "2.3"'),
        ('"2.3"', '"1.19"', "3:1: upgrade.to: 1.19 is not later than 1.20: an older line cannot read"),
        ('"flink_23"', "true", "4:1: upgrade.flink_conn_id: is not the id of a connection, or a table of ids; write"),
        ('"flink_23"', "{ eu = 1 }", "4:19: upgrade.flink_conn_id.eu: is not the id of a connection; write"),
        ('["canary", "*"]', '"canary"', '5:1: upgrade.wave: is not a list of tags; write wave = ["canary", "*"]'),
        ('"canary", "*"', '"cannary"', "5:9: upgrade.wave.1: no deployment has the tag 'cannary'; the tags are canary"),
        ('"canary", "*"', '"*", "shop"', "5:14: upgrade.wave.2: 'shop' follows '*', which contains all remaining"),
        ('"canary", "*"', '"shop", "shop"', "5:17: upgrade.wave.2: 'shop' is listed twice; remove one"),
        ('"canary", "*"', '"a b"', "5:9: upgrade.wave.1: 'a b' names no wave; use letters, digits, - and _, but"),
        ("wave =", "hold = 3600\nwave =", "5:1: upgrade.hold: 3600 is not a duration; write a number and s, min, h"),
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
