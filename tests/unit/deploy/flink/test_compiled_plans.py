"""Compiled plans through a SQL Gateway: a scripted one, and a real one that has no cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import psutil
import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import PlansUnavailable, TargetError
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayPlanner
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.secrets.placeholders import Placeholder

PLAN = json.dumps(
    json.loads(files("airflow_flinkcompat.exec_graph").joinpath("examples.json").read_text())["plan-equal"][0]
)
TABLES = """\
CREATE TABLE orders (customer STRING, amount BIGINT, item STRING) WITH ('connector' = 'datagen');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
"""
SUMS = "INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;\n"


class Scripted(httpx.MockTransport):
    """A SQL Gateway that takes every statement; ``writes`` is what a COMPILE PLAN leaves in its file, if anything."""

    def __init__(self, writes: str | None = PLAN, version: str = "2.3.0") -> None:
        super().__init__(self._answer)
        self.writes = writes
        self.version = version
        self.refused: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.files: list[Path] = []

    @property
    def statements(self) -> list[str]:
        return [re.sub(r"'file://[^']*'", "'…'", statement) for statement, _ in self.asked]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/v2/info":
            return httpx.Response(200, json={"productName": "Apache Flink", "version": self.version})
        if path == "/v2/sessions":
            return httpx.Response(200, json={"sessionHandle": "s"})
        if path.endswith("/statements"):
            body = json.loads(request.content)
            self._run(body["statement"], body.get("executionConfig", {}))
            return httpx.Response(200, json={"operationHandle": str(len(self.asked) - 1)})
        if found := re.search(r"/operations/(\d+)/result", path):
            return self._result(self.asked[int(found.group(1))][0])
        return httpx.Response(200, json={})

    def _run(self, statement: str, config: dict[str, str]) -> None:
        self.asked.append((statement, config))
        if found := re.match(r"COMPILE PLAN 'file://(.*?)' FOR ", statement):
            self.files.append(Path(found.group(1)))
            if self.writes is not None:
                self.files[-1].write_text(self.writes, encoding="utf-8")

    def _result(self, statement: str) -> httpx.Response:
        for part, why in self.refused.items():
            if part in statement:
                return httpx.Response(500, json={"errors": [why]})
        rows: list[Any] = []
        if statement.startswith("DESCRIBE"):
            rows = [{"fields": ["a`b", "STRING", True]}, {"fields": ["ts", "TIMESTAMP(3) *ROWTIME*", True]}]
        columns = [{"name": "name"}, {"name": "type"}, {"name": "null"}]
        return httpx.Response(200, json={"resultType": "EOS", "results": {"columns": columns, "data": rows}})


def gateway(server: Scripted, url: str = "http://127.0.0.1:8083") -> SqlGateway:
    return SqlGateway(Endpoint(url), transport=server, retry_wait=0.01)


def planner(server: Scripted, **more: Any) -> SqlGatewayPlanner:
    return SqlGatewayPlanner(gateway(server), **more)


def side(script: str, **more: Any) -> Side:
    return Side(script, engine="flink", source="job.sql", **more)


@pytest.mark.parametrize(
    ("job", "planned"),
    [
        (SUMS, SUMS.strip().rstrip(";")),
        (f"EXECUTE STATEMENT SET BEGIN {SUMS} END;", f"STATEMENT SET BEGIN {SUMS} END"),
        (f"BEGIN STATEMENT SET; {SUMS} END;", f"STATEMENT SET BEGIN {SUMS} END"),
        (f"EXECUTE {SUMS}", SUMS.strip().rstrip(";")),
    ],
)
def test_every_form_of_a_job_is_compiled(job: str, planned: str, tmp_path: Path) -> None:
    server = Scripted()
    (plan,) = planner(server).compile_plans(side(TABLES + job), str(tmp_path))
    assert plan.version == "2.3"
    assert [statement.split("(")[0].strip() for statement in server.statements[:2]] == [
        "CREATE TABLE orders",
        "CREATE TABLE totals",
    ]
    assert server.statements[2:] == [f"COMPILE PLAN '…' FOR {planned}"]
    assert not list(tmp_path.iterdir()), "the plan is removed once it was read"


def test_loose_inserts_are_jobs_of_their_own(tmp_path: Path) -> None:
    assert len(planner(Scripted()).compile_plans(side(TABLES + SUMS + SUMS), str(tmp_path))) == 2


def test_options_of_tables_are_not_written_into_plans(tmp_path: Path) -> None:
    server = Scripted()
    planner(server).compile_plans(side(TABLES + SUMS), str(tmp_path))
    assert server.asked[-1][1]["table.plan.compile.catalog-objects"] == "SCHEMA"


@pytest.mark.parametrize(
    ("options", "hint", "given"),
    [
        ("'format' = 'csv', 'username' = 'x'", "", {"connector": "datagen", "format": "csv"}),
        ("'format' = 'csv'", "/*+ OPTIONS('format' = 'debezium-json') */", {}),
    ],
)
def test_the_script_says_how_rows_of_a_source_come(
    options: str, hint: str, given: dict[str, str], tmp_path: Path
) -> None:
    """A join keeps new columns of a side only where its rows are not taken back."""
    written = json.loads(PLAN)
    (table,) = (node["scanTableSource"]["table"] for node in written["nodes"] if "scanTableSource" in node)
    table["identifier"] = "`default_catalog`.`default_database`.`orders`"
    table["resolvedTable"].pop("options", None)
    text = TABLES.replace("'datagen'", f"'datagen', {options}") + SUMS.replace("FROM orders", f"FROM orders {hint}")
    (plan,) = planner(Scripted(json.dumps(written))).compile_plans(side(text), str(tmp_path))
    (scan,) = (node for node in plan.nodes if node.kind == "table-source-scan")
    assert scan.config["scanTableSource"]["table"]["resolvedTable"]["options"] == given


def test_the_catalog_is_declared_first(tmp_path: Path) -> None:
    server = Scripted()
    planner(server).compile_plans(side(SUMS, catalog=TABLES), str(tmp_path))
    assert [statement[:12] for statement in server.statements] == ["CREATE TABLE", "CREATE TABLE", "COMPILE PLAN"]


def test_a_bare_query_gets_a_sink(tmp_path: Path) -> None:
    server = Scripted()
    planner(server).compile_plans(side(TABLES + "SELECT customer, amount FROM orders;"), str(tmp_path))
    assert server.statements[-2:] == [
        "CREATE TEMPORARY TABLE `flinkcompat_query` (`a``b` STRING, `ts` TIMESTAMP(3))"
        " WITH ('connector' = 'blackhole')",
        "COMPILE PLAN '…' FOR INSERT INTO `flinkcompat_query` SELECT customer, amount FROM orders",
    ]


def test_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    server = Scripted()
    server.refused["VIEW `flinkcompat_query_view` AS"] = "ValidationException: A column with the same name `a` …"
    planner(server).compile_plans(side(TABLES + "SELECT customer, customer FROM orders;"), str(tmp_path))
    assert "CREATE TEMPORARY VIEW `flinkcompat_query_view` (c0, c1) AS SELECT customer, customer FROM orders" in (
        server.statements
    )


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE totals SET total = 1;", "runs a separate job"),
        ("CALL sys.compact();", "a procedure may run a separate job"),
        ("TRUNCATE TABLE totals;", "changes data"),
        ("CREATE TABLE copy WITH ('connector' = 'print') AS SELECT * FROM orders;", "starts a separate job"),
        ("EXECUTE PLAN '/plan.json';", "a compiled plan cannot be deployed"),
    ],
)
def test_what_would_do_something_is_never_run(statement: str, said: str, tmp_path: Path) -> None:
    server = Scripted()
    with pytest.raises(ScriptRefused, match=rf"job\.sql:3:1: .*{said}"):
        planner(server).compile_plans(side(TABLES + statement + SUMS), str(tmp_path))
    assert all(text.startswith("CREATE TABLE") for text in server.statements)


def test_a_refusal_names_the_place_in_the_script(tmp_path: Path) -> None:
    server = Scripted()
    head = len("COMPILE PLAN '' FOR ") + len(f"{tmp_path.as_uri()}/flinkcompat-{'0' * 32}.json")
    server.refused["COMPILE"] = f"ValidationException: line 1, column {head + 20}: no such function"
    with pytest.raises(TargetError, match=r"job\.sql:3:1: .*line 3, column 20: no such function"):
        planner(server).compile_plans(side(TABLES + SUMS), str(tmp_path))


def test_a_connector_the_client_lacks_is_told_with_its_remedy(tmp_path: Path) -> None:
    server = Scripted()
    server.refused["orders"] = "ValidationException: Could not find any factory for identifier 'kafka'"
    with pytest.raises(PlansUnavailable, match=r"job\.sql:1:1: .*flink-sql-connector-kafka:5\.0\.0-2\.2.*lib folder"):
        planner(server).compile_plans(side(TABLES + SUMS), str(tmp_path))


def test_a_plan_that_cannot_be_seen(tmp_path: Path) -> None:
    with pytest.raises(
        PlansUnavailable, match=r"this machine cannot read that folder\. Name a folder that both can access"
    ):
        planner(Scripted(writes=None)).compile_plans(side(TABLES + SUMS), str(tmp_path))


def test_a_plan_that_is_none_is_removed_too(tmp_path: Path) -> None:
    with pytest.raises(PlansUnavailable, match=r"job\.sql:3:1: this is not a compiled plan"):
        planner(Scripted(writes="nothing")).compile_plans(side(TABLES + SUMS), str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_placeholders_are_looked_up_and_never_told(tmp_path: Path) -> None:
    server = Scripted()
    secret = TABLES.replace("'print'", "'print', 'print-identifier' = '${conn.out.password}'")
    planner(server).compile_plans(side(secret + SUMS), str(tmp_path))
    assert "${conn.out.password}" in server.statements[1], "nothing is known here, and no plan depends on it"
    server.refused["totals ("] = "ValidationException: s3cret-value is wrong"

    def lookup(_placeholder: Placeholder) -> str:
        return "s3cret-value"

    with pytest.raises(TargetError) as raised:
        planner(server, lookup=lookup).compile_plans(side(secret + SUMS), str(tmp_path))
    assert "s3cret-value" in server.statements[-1]
    assert "s3cret-value" not in str(raised.value)


# --- a real planner ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFlink]:
    with LocalFlink(tmp_path_factory.mktemp("client"), gateway_only=True) as started:
        yield started


@pytest.mark.slow
def test_a_gateway_alone_is_one_process(client: LocalFlink) -> None:
    assert set(client.pids) == {"sql-gateway"}
    assert all(psutil.pid_exists(pid) for pid in client.pids.values())


@pytest.mark.slow
def test_flink_compiles_jobs_and_bare_queries(client: LocalFlink, tmp_path: Path) -> None:
    read: list[str] = []

    def kept(text: str) -> Any:
        read.append(text)
        return read_plan(text)

    script = TABLES.replace("'print'", "'print', 'print-identifier' = 'hidden-value'") + (
        "SELECT customer, customer, amount AS customer FROM orders;\n"
        "SELECT item, COUNT(*) FROM orders GROUP BY item;\n"
        f"{SUMS}EXECUTE STATEMENT SET BEGIN {SUMS} {SUMS} END;\n"
    )
    with (
        SqlGatewayPlanner(client.gateway_url) as asked,
        patch("airflow_flinkcompat.deploy.flink.compiled_plans.read_plan", kept),
    ):
        plans = asked.compile_plans(side(script), str(tmp_path))
    assert [sum(node.kind == "sink" for node in plan.nodes) for plan in plans] == [1, 1, 1, 1]
    assert [any(node.kind == "group-aggregate" for node in plan.nodes) for plan in plans] == [False, True, True, True]
    assert not list(tmp_path.iterdir())
    assert not any("hidden-value" in text for text in read)
