"""The JobManager of a job instance through the OpenAPI's proxy, which only passes GET requests."""

from __future__ import annotations

import httpx

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.targets.realtime_compute.openapi import OpenApi, RealtimeComputeError

_FORBIDDEN, _REFUSED = 403, 500


class _ProxyTransport(httpx.BaseTransport):
    """Transport of the requests of a JobManager's client as calls of ``FlinkApiProxy``."""

    def __init__(self, api: OpenApi, job_id: str) -> None:
        self._api = api
        self._job_id = job_id

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The JobManager's answer; a refusal by the service is an error of the JobManager."""
        if request.method != "GET":
            raise httpx.UnsupportedProtocol(f"the proxy of {self._api.place} passes GET requests on only")
        try:
            text = self._api.flink(self._job_id, request.url.raw_path.decode())
        except RealtimeComputeError as error:
            if error.unanswered:
                raise httpx.ReadError(str(error)) from None
            return httpx.Response(_FORBIDDEN if error.denied else _REFUSED, text=error.reason)
        return httpx.Response(200, text=text)


def proxied_jobmanager(api: OpenApi, job_id: str) -> JobManager:
    """A client of the JobManager that runs a job instance; it is asked nothing yet."""
    place = Endpoint(f"{api.settings.scheme}://{api.settings.host}", timeout=api.settings.timeout)
    return JobManager(place, transport=_ProxyTransport(api, job_id))


def flink_job(jobmanager: JobManager) -> str | None:
    """The id that Flink itself gave the one job of a JobManager."""
    found = list(jobmanager.jobs())
    return found[0] if len(found) == 1 else None
