"""The API in Airflow's own application: who is let in, who sees what, and what stands beside each answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute

from airflow_flinkcompat.airflow.plugin.app import create_app
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, DeployedEntry, JobStart, JobVersion, Review
from tests.support.airflow.plugin.ledgers import SECRET, Writing, fill_rejected, job
from tests.unit.airflow.plugin.conftest import Server

pytestmark = pytest.mark.slow
API = "/flinkcompat/api/v1"


def names(server: Server, user: str, **params: object) -> list[str]:
    return [each["deployment"] for each in server.get(user, "deployments", **params)["deployments"]]


def ledger_of(server: Server, deployment: str) -> str:
    rows = server.get("root", "deployments")["deployments"]
    return str(next(each["ledger"] for each in rows if each["deployment"] == deployment))


def routes() -> Iterator[object]:
    for route in create_app().routes:
        included = getattr(route, "original_router", None)  # later FastAPI keeps a router as it was
        yield from [route] if included is None else included.routes


def paths(ledger: str) -> list[str]:
    """An address of every route of the application."""
    given = {"ledger": ledger, "name": "orders", "number": "8", "dag_id": "redeploy_orders", "run_id:path": "manual__2"}
    found = []
    for route in routes():
        assert isinstance(route, APIRoute), f"{route} is no route that asks who is there"
        path = route.path.replace("/static/{name}", "/static/main.umd.js")
        for name, value in given.items():
            path = path.replace(f"{{{name}}}", value)
        assert "{" not in path
        found.append(path)
    return found


# ----------------------------------------------------------------------------------------------------- who is let in
def test_no_route_answers_without_a_user(server: Server) -> None:
    everything = paths(ledger_of(server, "orders"))
    assert len(everything) == 6
    for path in everything:
        assert server.client(None).get(f"/flinkcompat{path}").status_code == 401, path
        forged = server.client(None).get(f"/flinkcompat{path}", headers={"Authorization": "Bearer a.b.c"})
        assert forged.status_code == 403, path


def test_a_browser_is_known_by_its_cookie(server: Server) -> None:
    client = server.client("ann")
    token = client.headers.pop("Authorization").removeprefix("Bearer ")
    client.cookies.set("_token", token)
    assert [each["deployment"] for each in client.get(f"{API}/deployments").json()["deployments"]] == [
        "orders", "shared",
    ]  # fmt: skip


def test_every_route_reads() -> None:
    for route in routes():
        assert isinstance(route, APIRoute)
        assert route.methods == {"GET"}


# ----------------------------------------------------------------------------------------------------- who sees what
def test_each_user_sees_the_deployments_whose_dags_they_may_read(server: Server) -> None:
    assert names(server, "root") == ["by-hand", "damaged", "elsewhere", "orders", "parcels", "shared"]
    assert names(server, "ann") == ["orders", "shared"]
    assert names(server, "bob") == ["parcels", "shared"]
    # May read connections, and no DAG of a team.
    assert names(server, "op") == ["by-hand", "damaged", "elsewhere", "shared"]
    assert server.get("ann", "deployments")["counts"] == {
        "all": 2, "pending": 1, "in_flight": 0, "interrupted": 1, "failed": 1, "unreadable": 0,
    }  # fmt: skip


def test_deployments_are_counted_by_line_whatever_the_filter(server: Server) -> None:
    found = server.get("ann", "deployments", q="orders")
    line = {"engine": "flink", "line": "2.3", "deployments": 2, "pending": 1, "failed": 1}
    assert (found["total"], found["lines"]) == (1, [line])


@pytest.mark.parametrize(
    ("user", "deployment", "status"),
    [
        ("root", "orders", 200), ("ann", "orders", 200), ("ann", "shared", 200), ("op", "by-hand", 200),
        ("bob", "orders", 403), ("op", "orders", 403), ("ann", "by-hand", 403), ("ann", "elsewhere", 403),
        # Who may not read the ledger learns of no name whether there is such a deployment.
        ("ann", "nothing", 403), ("ann", "_index", 403), ("ann", "damaged", 403),
        ("root", "nothing", 404), ("root", "_index", 404), ("root", "reports", 404), ("root", "damaged", 503),
    ],
)  # fmt: skip
def test_one_deployment_and_its_changes(server: Server, user: str, deployment: str, status: int) -> None:
    rows = {each["deployment"]: each["ledger"] for each in server.get("root", "deployments")["deployments"]}
    ledger = rows.get(deployment, rows["orders"])
    for path in (f"deployments/{ledger}/{deployment}", f"deployments/{ledger}/{deployment}/changes/2"):
        found = server.client(user).get(f"{API}/{path}")
        assert found.status_code == status, found.text
        if status != 200:
            assert found.headers["content-type"] == "application/json"
            assert list(found.json()) == ["detail"]


def test_damage_below_what_is_in_force_is_told_to_who_may_read_the_dag(server: Server) -> None:
    ledger = fill_rejected(server.named, "redeploy_orders", "worn")
    ledger.append(DeployedEntry(job=job(2), start=JobStart(), owner="airflow:redeploy_orders/r/deploy"))
    (server.named / "worn" / "000001.json").write_text("{}")
    try:
        path = f"{API}/deployments/{ledger_of(server, 'orders')}/worn"
        told = server.client("ann").get(path)
        assert told.status_code == 503
        assert "000001.json cannot be read" in told.json()["detail"]
        assert server.client("bob").get(path).status_code == 403
    finally:
        _remove(server.named, "worn")


def test_what_another_dag_wrote_into_a_history(server: Server) -> None:
    ledger = fill_rejected(server.named, "redeploy_parcels", "moved")
    last = ledger.append(DeployedEntry(job=job(3), start=JobStart(), owner="airflow:redeploy_orders/r/deploy")).number
    # Nothing of the other DAG is left in what the list shows.
    ledger.append(CheckedEntry(version=JobVersion.of(job(3)), owner="airflow:redeploy_orders/r/check"))
    path = f"{API}/deployments/{ledger_of(server, 'orders')}/moved"
    try:
        page = server.client("ann").get(path).json()
        assert [each["kind"] for each in page["history"]] == ["hidden"] * (last - 1) + ["deployed", "checked"]
        assert "not before Christmas" not in json.dumps(page)
        for number in range(1, last):
            refused = server.client("ann").get(f"{path}/changes/{number}")
            assert refused.status_code == 403
            assert refused.json() == {
                "detail": f"Forbidden: entry {number} of moved is an entry of a DAG that you may not read"
            }
        own = server.client("ann").get(f"{path}/changes/{last}")
        assert own.status_code == 200
        assert own.json()["old"] is None
        assert server.client("root").get(f"{path}/changes/1").status_code == 200
        assert server.client("bob").get(path).status_code == 403
    finally:
        _remove(server.named, "moved")


def test_a_ledger_that_there_is_not(server: Server) -> None:
    for user, status in (("root", 404), ("ann", 403)):
        assert server.client(user).get(f"{API}/deployments/0123456789ab/orders").status_code == status


def test_a_run_is_shown_to_who_may_read_its_dag(server: Server) -> None:
    found = server.get("ann", "runs/redeploy_orders/manual__4")
    assert [(each["deployment"], each["decision"]["state"]) for each in found["changes"]] == [("orders", "waiting")]
    # The task that waits has written nothing yet; that of another run is not this one's.
    for task in ("check", "approve"):
        assert server.get("ann", "runs/redeploy_orders/manual__4", task_id=task) == found
    assert server.get("ann", "runs/redeploy_orders/manual__44")["changes"] == []
    assert server.get("ann", f"runs/redeploy_shared/{quote('a+b:c', safe='')}")["run_id"] == "a+b:c"
    for user, dag_id in (("bob", "redeploy_orders"), ("ann", "no_such_dag")):
        assert server.client(user).get(f"{API}/runs/{dag_id}/manual__4").status_code == 403


@pytest.mark.parametrize("deployment", ["taken_over", "{{ params.name }}"])
def test_a_run_is_found_also_where_another_dag_has_taken_its_deployment_over(server: Server, deployment: str) -> None:
    fill_rejected(server.named, "redeploy_orders", "taken_over")
    later = Writing(server.named, "taken_over", "redeploy_shared")
    later.put("deploy", DeployedEntry(job=job(2), start=JobStart()))
    later.check(job(2), job(3), "reject")
    path = "runs/redeploy_orders/manual__2"
    try:
        with server.airflow_knows("redeploy_orders", "manual__2", deployment, rendered="taken_over"):
            found = {each["deployment"]: each["decision"]["state"] for each in server.get("ann", path)["changes"]}
            assert found["taken_over"] == "rejected"
            assert server.get("ann", "runs/redeploy_orders/manual__77")["changes"] == []
        assert "taken_over" not in [each["deployment"] for each in server.get("ann", path)["changes"]]
    finally:
        _remove(server.named, "taken_over")


def test_addresses_are_shown_to_who_may_read_connections(server: Server) -> None:
    known = server.get("op", "deployments")["ledgers"]
    assert sorted(each["uri"] for each in known) == sorted(map(str, (server.named, server.unnamed)))
    assert sorted(each["connections"] for each in known) == [[], ["flink_default"]]
    others = server.get("ann", "deployments")["ledgers"]
    assert [(each["uri"], each["connections"]) for each in others] == [(None, []), (None, [])]


# --------------------------------------------------------------------------------------------------- what is asked for
@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"attention": "pending"}, ["orders"]),
        ({"attention": "interrupted"}, ["shared"]),
        ({"attention": ["failed", "unreadable"]}, ["damaged", "orders"]),
        ({"attention": "in_flight"}, []),
        ({"team": "payments"}, ["by-hand", "elsewhere", "orders", "parcels"]),
        ({"q": "redeploy_PARCELS"}, ["parcels"]),
        ({"q": "c0ffee ann orders"}, ["orders"]),
        ({"q": SECRET}, []),
        ({"limit": 2}, ["by-hand", "damaged"]),
        ({"limit": 2, "offset": 5}, ["shared"]),
    ],
)
def test_filters(server: Server, params: dict[str, Any], found: list[str]) -> None:
    assert names(server, "root", **params) == found


def test_a_page_knows_how_many_there_are(server: Server) -> None:
    page = server.get("root", "deployments", limit=1, team="payments")
    assert (len(page["deployments"]), page["total"], page["counts"]["all"]) == (1, 4, 6)


@pytest.mark.parametrize(
    "params", [{"limit": 0}, {"limit": 201}, {"offset": -1}, {"attention": "all"}, {"q": "x" * 201}]
)
def test_bad_questions_are_refused(server: Server, params: dict[str, Any]) -> None:
    assert server.client("root").get(f"{API}/deployments", params=params).status_code == 422


# ------------------------------------------------------------------------------------------------ beside each answer
def test_headers_of_every_answer(server: Server) -> None:
    ledger = ledger_of(server, "orders")
    for user in ("root", None):
        for path in [*paths(ledger), "/nothing", "/api/v1/deployments?limit=0"]:
            headers = server.client(user).get(f"/flinkcompat{path}").headers
            assert headers["content-security-policy"] == (
                "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            )
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] in ("private, no-cache", "no-store")
            assert "html" not in headers["content-type"]


def test_what_is_known_is_not_sent_again(server: Server) -> None:
    ledger = Ledger(server.named, "cached")
    fill_rejected(server.named, "redeploy_shared", "cached")
    try:
        path = f"{API}/deployments/{ledger_of(server, 'orders')}/cached"
        client = server.client("ann")
        first = client.get(path)
        again = client.get(path, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        ledger.append(
            CheckedEntry(version=JobVersion.of(job(3)), branch="approve", owner="airflow:redeploy_shared/r/c")
        )
        newer = client.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (newer.status_code, newer.json()["last"]) == (200, first.json()["last"] + 1)
    finally:
        _remove(server.named, "cached")


def _remove(root: Path, deployment: str) -> None:
    for each in sorted((root / deployment).rglob("*"), reverse=True):
        each.unlink() if each.is_file() else each.rmdir()
    (root / deployment).rmdir()


def test_nothing_is_written(server: Server) -> None:
    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(server.home.rglob("*")) if path.is_file()}

    ledger, before = ledger_of(server, "orders"), state()
    for path in paths(ledger):
        server.client("root").get(f"/flinkcompat{path}")
    assert state() == before


# ------------------------------------------------------------------------------------------------------ hostile texts
HOSTILE = (
    "<script>alert(1)</script>",
    "</textarea><img src=x onerror=alert(1)>",
    "javascript:alert(1)//",
    "'\"><svg/onload=alert(1)>",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)} #{7*7} <%= 7*7 %>",
    "]]></xml><!--#exec cmd=ls--><!--",
    "\u202eevil\u2066\u200b\ufeff",
    "\u2028\u2029\x00\x1b[31m\r\nX-Other: 1",
    "=cmd|' /C calc'!A0",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
)


@pytest.fixture
def hostile(server: Server) -> Iterator[str]:
    """A deployment every text of which is hostile."""
    ledger = Ledger(server.named, "hostile")
    texts = "\n".join(HOSTILE)
    spec = job(1, catalog=f"-- {texts}")
    entry = CheckedEntry(
        version=JobVersion.of(spec), review=Review("partial", None, texts, texts), branch=texts, message=texts,
        owner="airflow:redeploy_shared/r/check",
    )  # fmt: skip
    fill_rejected(server.named, "redeploy_shared", "hostile")
    ledger.append(entry)
    yield texts
    _remove(server.named, "hostile")


def test_hostile_texts_are_json_strings_and_nothing_else(server: Server, hostile: str) -> None:
    ledger = ledger_of(server, "orders")
    for path in ("deployments?q=hostile", f"deployments/{ledger}/hostile", f"deployments/{ledger}/hostile/changes/4"):
        found = server.client("ann").get(f"{API}/{path}")
        assert found.status_code == 200
        assert found.headers["content-type"] == "application/json"
        assert json.dumps(hostile) in json.dumps(found.json())


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_addresses_are_answered_in_json(server: Server, text: str) -> None:
    ledger = ledger_of(server, "orders")
    part = quote(text, safe="")
    for path in (f"deployments/{ledger}/{part}", f"deployments/{part}/orders", f"runs/{part}/{part}", f"runs/r/{part}"):
        found = server.client("ann").get(f"{API}/{path}")
        assert found.status_code in (403, 404)
        assert found.headers["content-type"] == "application/json"
        assert text not in found.text


@pytest.mark.parametrize("name", ["..%2Fapp.py", "%2e%2e%2fapp.py", "../app.py", ".gitignore", "__init__.py", ""])
def test_of_the_files_only_those_of_the_bundle_are_served(server: Server, name: str) -> None:
    assert server.client("root").get(f"/flinkcompat/static/{name}").status_code == 404


def test_the_bundle_is_served(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "main.umd.js").write_text("globalThis.Flink = () => null;\n")
    monkeypatch.setattr("airflow_flinkcompat.airflow.plugin.app.STATIC", tmp_path)
    client, path = server.client("bob"), "/flinkcompat/static/main.umd.js"
    found = client.get(path)
    assert (found.status_code, found.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    known = server.client("bob").get(
        "/flinkcompat/static/main.umd.js", headers={"If-None-Match": found.headers["etag"]}
    )
    assert known.status_code == 304


# -------------------------------------------------------------------------------------------------------- in Airflow
def test_airflow_lists_the_plugin(server: Server) -> None:
    found = server.client("root").get("/api/v2/plugins").json()
    plugin = next(each for each in found["plugins"] if each["name"] == "flinkcompat")
    assert [(each["name"], each["destination"]) for each in plugin["react_apps"]] == [
        ("Flink", "nav"), ("Flink change", "dag_run"), ("Flink change", "task_instance"),
        ("Flink overview", "dashboard"),
    ]  # fmt: skip
    assert plugin["react_apps"][0]["nav_top_level"]
    assert server.client("root").get("/api/v2/plugins/importErrors").json()["import_errors"] == []


def test_the_answers_are_described(server: Server) -> None:
    described = server.get("ann", "openapi.json")
    assert {path.removeprefix("/api/v1") for path in described["paths"]} == {
        "/deployments", "/deployments/{ledger}/{name}", "/deployments/{ledger}/{name}/changes/{number}",
        "/runs/{dag_id}/{run_id}",
    }  # fmt: skip
    assert "next_steps" in described["components"]["schemas"]["ChangePage"]["properties"]
