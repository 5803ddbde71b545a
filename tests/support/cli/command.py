"""The command line as tests run it: scripts, the outcome each has, and reports checked by their schema."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMA = json.loads(files("airflow_flinkcompat.compat").joinpath("report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
SCHEMA_OF_BOTH = json.loads(
    files("airflow_flinkcompat.compat").joinpath("reports.schema.json").read_text(encoding="utf-8")
)
VALIDATOR_OF_BOTH = Draft202012Validator(
    SCHEMA_OF_BOTH, registry=Registry().with_resource("report.schema.json", Resource.from_contents(SCHEMA))
)
SCHEMA_OF_FLEET = json.loads(files("airflow_flinkcompat.fleet").joinpath("fleet.schema.json").read_text("utf-8"))
VALIDATOR_OF_FLEET = Draft202012Validator(
    SCHEMA_OF_FLEET,
    registry=Registry().with_resources(
        [
            ("report.schema.json", Resource.from_contents(SCHEMA)),
            ("reports.schema.json", Resource.from_contents(SCHEMA_OF_BOTH)),
        ]
    ),
)
TABLES = """\
CREATE TABLE orders (
  customer STRING, amount BIGINT, item STRING, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time
) WITH ('connector' = 'kafka', 'topic' = 'orders');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
"""
QUERY = """\
INSERT INTO totals
SELECT customer, SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' MINUTE))
GROUP BY customer, window_start, window_end;
"""
V1 = TABLES + QUERY
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
"""Of a process of its own: also where the package is not installed."""
COMPATIBLE = V1.replace("SUM(amount)", "SUM(amount) * 100")
PARTIAL = V1.replace("SUM(amount)", "SUM(amount) + COUNT(item)")
UNKNOWN = V1.replace("SELECT", "SET 'table.exec.mini-batch.enabled' = 'true';\nINSERT INTO totals SELECT").replace(
    "INSERT INTO totals\nSET", "SET"
)
INCOMPATIBLE = V1.replace("'1' MINUTE", "'2' MINUTE")
OF_OUTCOME = {"compatible": COMPATIBLE, "partial": PARTIAL, "unknown": UNKNOWN, "incompatible": INCOMPATIBLE}
BROKEN = TABLES + "SELECT FROM\n  WHERE;\n" + QUERY
SECRETIVE = V1.replace("'topic' =", "'properties.sasl.password' = 'hunter2-plain', 'topic' =")
UNREADABLE_PROGRAM = (
    "from pyflink.table import EnvironmentSettings, TableEnvironment\n"
    "t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())\n"
    "import sys\nfor each in open(sys.argv[1]).read().split(';'):\n    t_env.execute_sql(each)\n"
)
FUNCTIONS_OF_PYTHON = (
    "from pyflink.table.udf import udf\n\n\n@udf(result_type='STRING')\ndef clean(x):\n    return x.strip()\n"
)
PROGRAM = """\
import os
from pyflink.table import EnvironmentSettings, TableEnvironment

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("CREATE TABLE o (a STRING) WITH ('connector' = 'kafka')")
t_env.execute_sql(f"CREATE TABLE s (a STRING) WITH ('connector' = '{os.environ['SINK']}')")
t_env.from_path("o").distinct().execute_insert("s")
"""


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


def save(**scripts: str) -> None:
    """Scripts as files of the current folder."""
    for name, text in scripts.items():
        Path(f"{name}.sql").write_text(text, encoding="utf-8")


def report_of(result: Result) -> dict[str, Any]:
    """The report of one engine, of ``vvr`` where both were asked."""
    data = json.loads(result.out)
    if data["schema"] == "flinkcompat-reports/1":
        VALIDATOR_OF_BOTH.validate(data)
        return data["engines"]["vvr"]
    VALIDATOR.validate(data)
    return data


def lines(*pairs: Any) -> bytes:
    return b"".join(p if isinstance(p, bytes) else json.dumps(p).encode() + b"\n" for p in pairs)


def answers(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0
    return [json.loads(line) for line in result.out.splitlines()]
