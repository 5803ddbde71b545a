"""The plugin's FastAPI application with read-only routes, which all require an Airflow user."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep, get_user
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders

from airflow_flinkcompat.airflow.plugin import changes, fleet, models, views
from airflow_flinkcompat.airflow.plugin.ledgers import NamedLedger, Rights, find_ledgers
from airflow_flinkcompat.deploy.ledger.ledger import can_name
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from pydantic import BaseModel
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from airflow_flinkcompat.deploy import LedgerEntry

STATIC = files("airflow_flinkcompat.airflow.plugin") / "static"
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".map": "application/json", ".txt": "text/plain"}
_HEADERS = {
    # No response is an HTML page, so no response may load or run anything, or be shown in a frame.
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
_NO_DEPLOYMENT = "there is no such deployment"
_FORBIDDEN = "Forbidden: you may not read this deployment, or there is none"


class SecurityHeaders:
    """Adds security headers to every response, and ``no-store`` unless a route sets caching."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Calls the application, and adds headers to its response."""

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, complete)


def rights_of(user: GetUserDep) -> Rights:
    """Rights of a request's user."""
    return Rights(user, get_auth_manager())


RightsDep = Annotated[Rights, Depends(rights_of)]
_ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"model": models.ErrorDetail, "description": "No user is signed in."},
    403: {"model": models.ErrorDetail, "description": "The user may not read this resource."},
}
_OF_ONE = _ERRORS | {
    404: {
        "model": models.ErrorDetail,
        "description": "Not found. Only users who may read the ledger receive this response.",
    },
    503: {"model": models.ErrorDetail, "description": "The ledger cannot be read."},
}
# Every route belongs to this router, so that each route requires a user.
router = APIRouter(dependencies=[Depends(get_user)])


def _answer(request: Request, answer: BaseModel) -> Response:
    """A response with an ETag, or 304 if the browser has the same content."""
    content = answer.model_dump_json().encode()
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization"}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if etag in known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


@router.get("/api/v1/deployments", responses=_ERRORS, response_model=models.DeploymentList)
def list_deployments(
    request: Request,
    rights: RightsDep,
    attention: Annotated[
        list[fleet.Attention] | None, Query(description="Only deployments of these kinds; may be repeated.")
    ] = None,
    team: Annotated[str | None, Query(description="Only deployments of this team.")] = None,
    q: Annotated[
        str,
        Query(
            description="Words that must all occur in name, DAG, team, owner, author, commit or job.", max_length=200
        ),
    ] = "",
    ledger: Annotated[str | None, Query(description="Only deployments of the ledger with this id.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """List the visible deployments by name, with running versions and unfinished or failed redeploys."""
    wanted = fleet.ListFilter(frozenset(attention or ()), team, q, ledger)
    return _answer(request, fleet.deployment_list(find_ledgers(), rights, wanted, limit, offset))


@router.get("/api/v1/deployments/{ledger}/{name}", responses=_OF_ONE, response_model=models.DeploymentPage)
def get_deployment(request: Request, ledger: str, name: str, rights: RightsDep) -> Response:
    """A deployment with its running version, history, redeploys and savepoints."""
    found, entries = _entries(ledger, name, rights)
    return _answer(request, views.deployment_page(found, name, entries, rights))


@router.get("/api/v1/deployments/{ledger}/{name}/changes/{number}", responses=_OF_ONE, response_model=models.ChangePage)
def get_change(request: Request, ledger: str, name: str, number: int, rights: RightsDep) -> Response:
    """The change to which an entry belongs, with both versions, the report and the decision."""
    found, entries = _entries(ledger, name, rights)
    if any(each.number == number and not rights.reads_entry(each) for each in entries):
        raise HTTPException(403, f"Forbidden: entry {number} of {name} is {views.HIDDEN}")
    proposal = changes.Proposal.at(entries, number)
    if proposal is None:
        raise HTTPException(404, f"entry {number} of {name} does not exist, or has no version")
    return _answer(request, changes.change(found, name, entries, proposal, rights))


@router.get("/api/v1/runs/{dag_id}/{run_id:path}", responses=_ERRORS, response_model=models.RunChanges)
def get_run(
    request: Request,
    dag_id: str,
    run_id: str,
    rights: RightsDep,
    task_id: Annotated[
        str | None, Query(description="Only changes of this task, if it wrote any; else changes of the run.")
    ] = None,
) -> Response:
    """The changes that a DAG run is about."""
    if not rights.reads_dag(dag_id):
        raise HTTPException(403, "Forbidden")
    found = fleet.changes_of_run(find_ledgers(), rights, dag_id, run_id, task_id)
    return _answer(request, models.RunChanges(dag_id=dag_id, run_id=run_id, changes=found))


def _entries(ledger_id: str, name: str, rights: Rights) -> tuple[NamedLedger, Sequence[LedgerEntry]]:
    """The entries of a deployment that the user may see. Raises HTTPException.

    Users who may not read the ledger receive the same response for missing and for hidden entries.
    """
    ledger = find_ledgers().by_id(ledger_id)
    if ledger is None:
        raise HTTPException(404, "there is no such ledger") if rights.reads_connections else _forbidden()
    if not can_name(name):
        raise HTTPException(404, _NO_DEPLOYMENT) if rights.reads_ledger(ledger) else _forbidden()
    entries, row = fleet.entries_and_row(ledger, name)
    if not entries:
        raise HTTPException(404, _NO_DEPLOYMENT) if rights.reads_ledger(ledger) else _forbidden()
    if not rights.sees(ledger, row):
        raise _forbidden()
    if isinstance(entries, LedgerError):
        raise HTTPException(503, mask_secrets(str(entries)))
    return ledger, entries


def _forbidden() -> HTTPException:
    return HTTPException(403, _FORBIDDEN)


@router.get("/static/{name}", include_in_schema=False)
def get_static(request: Request, name: str) -> Response:
    """A file in the folder of the React bundle. No file outside of this folder is served."""
    found = next((each for each in STATIC.iterdir() if each.name == name and each.is_file()), None)
    media_type = _MEDIA_TYPES.get("." + name.rpartition(".")[2])
    if found is None or media_type is None:
        raise HTTPException(404, "there is no such file")
    content = found.read_bytes()
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


@router.get("/api/v1/openapi.json", include_in_schema=False)
def get_openapi(request: Request) -> JSONResponse:
    """OpenAPI schema, for clients."""
    return JSONResponse(request.app.openapi())


def create_app() -> FastAPI:
    """Create the application that Airflow mounts under ``/flinkcompat``."""
    app = FastAPI(
        title="Flink deployments",
        description="Read-only access to the ledgers of Flink deployments for users of Airflow.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_middleware(SecurityHeaders)
    app.include_router(router)
    return app
