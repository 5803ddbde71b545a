"""Metadata of the provider (entry point ``apache_airflow_provider``). Imports nothing heavy."""

from __future__ import annotations

from typing import Any

_INTEGRATION = "Apache Flink SQL"
_CLASSES = "airflow_flinkcompat.airflow"
CONFIG_SECTION = "flinkcompat"
"""Section of airflow.cfg."""


def _modules(*names: str) -> list[dict[str, Any]]:
    return [{"integration-name": _INTEGRATION, "python-modules": [f"{_CLASSES}.{name}" for name in names]}]


def _field(label: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **schema}}


_LOGIN = {
    "login": _field("user", "Basic authentication"),
    "password": _field("password", "Or a bearer token where there is no user", format="password"),
}
# How both servers are reached: the keys of deploy.access, in its order.
_ACCESS = {
    "ca_file": _field("CA file", "PEM file of the authority that signed the servers' certificates, for https"),
    "verify": _field("Verify certificates", "Switch off only on test systems", type=["boolean", "null"], default=True),
    "client_cert": _field("Client certificate", "PEM file of the certificate to show to the servers (mutual TLS)"),
    "client_key": _field("Client key", "PEM file of its key, where the certificate's file does not hold it"),
    "client_key_password": _field("Client key password", "Where the key is encrypted", format="password"),
    "proxy": _field("Proxy", "http://host:port or https://host:port; the environment's where empty"),
    "proxy_login": _field("Proxy user", "Where the proxy asks for one"),
    "proxy_password": _field("Proxy password", "Of the proxy's user", format="password"),
    "timeout": _field("Time-out", "Seconds for one REST call", type=["number", "null"], default=30, exclusiveMinimum=0),
}


_LEDGER = {
    "ledger": _field("Ledger", "Folder or object-store URI of the record of what is deployed, e.g. s3://bucket/ledger")
}
_REALTIME_COMPUTE = {
    "region": _field("Region", "Of the workspace, eu-central-1 say"),
    "endpoint": _field("Endpoint", "Of the OpenAPI; ververica.<region>.aliyuncs.com where empty"),
    "workspace": _field("Workspace", "Its id, as the console shows it"),
    "namespace": _field("Namespace", "Its name"),
    "alibaba_conn_id": _field("Alibaba connection", "A connection of type alibaba_cloud whose access key is borrowed"),
    "engine_version": _field("Engine version", "Of all deployments, as the platform names it: vvr-8.0.11-flink-1.17"),
    "deployment_target": _field("Deployment target", "The queue in which missing deployments are made"),
    "ui_url": _field("Console URL", "Where a browser opens the console, for links"),
}

_CONFIG = {
    CONFIG_SECTION: {
        "description": "The pages of Flink deployments.",
        "options": {
            "connections": {
                "description": (
                    "Ids, with commas between them, of connections whose ledgers the pages show. Those of the metadata "
                    "database are found without: name here what environment variables and secrets backends hold, "
                    "which Airflow cannot list."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "flink_prod,flink_staging",
                "default": "",
            },
            "ledgers": {
                "description": "Addresses, with commas between them, of ledgers that no connection names.",
                "version_added": "0.1.0",
                "type": "string",
                "example": "s3://bucket/ledger",
                "default": "",
            },
        },
    }
}


def _for_jobmanager(fields: dict[str, Any]) -> dict[str, Any]:
    """The same fields for the JobManager alone; empty means as for the Gateway.

    A toggle or a number cannot be empty in the form: ``verify`` and ``timeout`` are taken from the extra's JSON only.
    """
    return {
        f"jobmanager_{name}": {
            "label": f"JobManager: {field['label']}",
            "description": f"{field['description']}. Only where it differs from the Gateway's",
            "schema": field["schema"],
        }
        for name, field in fields.items()
        if "default" not in field["schema"]
    }


def get_provider_info() -> dict[str, Any]:
    """The provider's metadata, valid against Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "airflow-flinkcompat",
        "name": "Flink SQL compatibility",
        "description": "Know what a change to a Flink SQL job does to its state, and let Airflow act on it.",
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "external-doc-url": "https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/table/sql-gateway/overview/",
                "tags": ["apache"],
            }
        ],
        "operators": _modules(
            "operators.compatibility",
            "operators.deploy",
            "operators.migration",
            "operators.approval",
            "operators.rehearsal",
            "operators.backfill",
        ),
        "sensors": _modules("sensors.change"),
        "triggers": _modules(
            "triggers.change", "triggers.deploy", "triggers.gateway", "triggers.rehearsal", "triggers.script"
        ),
        "hooks": _modules("hooks.flink", "hooks.realtime_compute"),
        "config": _CONFIG,
        "cli": [f"{_CLASSES}.cli.definition.get_flinkcompat_cli_commands"],
        "extra-links": [f"{_CLASSES}.links.flink.FlinkJobLink", f"{_CLASSES}.links.pages.FlinkChangeLink"],
        "connection-types": [
            {
                "connection-type": "flink",
                "hook-name": "Apache Flink",
                "hook-class-name": f"{_CLASSES}.hooks.flink.FlinkHook",
                "ui-field-behaviour": {
                    "hidden-fields": [],
                    "relabeling": {
                        "host": "SQL Gateway host",
                        "port": "SQL Gateway port",
                        "schema": "Scheme (http or https)",
                        "login": "User (basic authentication)",
                        "password": "Password, or bearer token where there is no user",
                    },
                    "placeholders": {"host": "sql-gateway.example.com", "port": "8083", "schema": "http"},
                },
                "conn-fields": {
                    "jobmanager_url": _field(
                        "JobManager URL", "REST address of the JobManager; the Gateway's host on port 8081 where empty"
                    ),
                    "ui_url": _field(
                        "Flink UI URL",
                        "Where a browser opens Flink's UI, for links; the JobManager URL where empty",
                    ),
                    "target": _field(
                        "Target",
                        "Where jobs run: sql-gateway (where empty), jobmanager, kubernetes, aws, realtime-compute or "
                        "another; its page tells which keys of the extra it reads",
                    ),
                    **_LEDGER,
                    **_ACCESS,
                    **_for_jobmanager(_LOGIN | _ACCESS),
                },
            },
            {
                "connection-type": "alibaba_realtime_compute",
                "hook-name": "Alibaba Cloud Realtime Compute for Apache Flink",
                "hook-class-name": f"{_CLASSES}.hooks.realtime_compute.RealtimeComputeHook",
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "port", "schema"],
                    "relabeling": {"login": "Access key id", "password": "Access key secret"},
                    "placeholders": {},
                },
                "conn-fields": {**_REALTIME_COMPUTE, **_LEDGER},
            },
        ],
    }
