"""Metadata of the provider (entry point ``apache_airflow_provider``), which is cheap to import."""

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
    "password": _field("password", "Password, or a bearer token if no user is set", format="password"),
}
# Access to both servers: the keys of deploy.access, in its order.
_ACCESS = {
    "ca_file": _field("CA file", "PEM file of the authority that signed the servers' certificates (https)"),
    "verify": _field("Verify certificates", "Turn off only on test systems", type=["boolean", "null"], default=True),
    "client_cert": _field("Client certificate", "PEM file of the client certificate (mutual TLS)"),
    "client_key": _field(
        "Client key", "PEM file of the client's key, if the certificate's file does not contain the key"
    ),
    "client_key_password": _field("Client key password", "Password of the key, if it is encrypted", format="password"),
    "proxy": _field("Proxy", "http://host:port or https://host:port; if empty, the proxy of the environment"),
    "proxy_login": _field("Proxy user", "User of the proxy, if the proxy requires a login"),
    "proxy_password": _field("Proxy password", "Password of the proxy user", format="password"),
    "timeout": _field(
        "Time-out", "Maximum seconds for one REST call", type=["number", "null"], default=30, exclusiveMinimum=0
    ),
}


_LEDGER = {
    "ledger": _field("Ledger", "Folder or object-store URI of the deployment record, for example s3://bucket/ledger")
}
_REALTIME_COMPUTE = {
    "region": _field("Region", "Region of the workspace, for example eu-central-1"),
    "endpoint": _field("Endpoint", "Endpoint of the OpenAPI; if empty, ververica.<region>.aliyuncs.com"),
    "workspace": _field("Workspace", "Workspace id, as shown in the console"),
    "namespace": _field("Namespace", "Name of the namespace"),
    "alibaba_conn_id": _field("Alibaba connection", "Connection of type alibaba_cloud whose access key is used"),
    "engine_version": _field(
        "Engine version", "Engine version of all deployments, as named by the platform: vvr-8.0.11-flink-1.17"
    ),
    "deployment_target": _field("Deployment target", "Queue in which missing deployments are created"),
    "ui_url": _field("Console URL", "Address of the console in a browser, for links"),
}

_CONFIG = {
    CONFIG_SECTION: {
        "description": "The pages of Flink deployments.",
        "options": {
            "connections": {
                "description": (
                    "Comma-separated ids of connections whose ledgers the pages show. Connections in the metadata "
                    "database are found automatically. List here connections in environment variables and secrets "
                    "backends, which Airflow cannot list."
                ),
                "version_added": "0.1.0",
                "type": "string",
                "example": "flink_prod,flink_staging",
                "default": "",
            },
            "ledgers": {
                "description": "Comma-separated addresses of ledgers that no connection uses.",
                "version_added": "0.1.0",
                "type": "string",
                "example": "s3://bucket/ledger",
                "default": "",
            },
        },
    }
}


def _for_jobmanager(fields: dict[str, Any]) -> dict[str, Any]:
    """The SQL Gateway's fields, repeated for the JobManager; an empty field means the Gateway's value.

    A toggle or a number cannot be empty in the form, so ``verify`` and ``timeout`` are read only from the extra's JSON.
    """
    return {
        f"jobmanager_{name}": {
            "label": f"JobManager: {field['label']}",
            "description": f"{field['description']}. Only if different from the Gateway's",
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
        "description": "Check how a change to a Flink SQL job affects its state, and let Airflow act on the verdict.",
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
            "operators.shadow",
            "operators.backfill",
            "operators.upgrade",
        ),
        "sensors": _modules("sensors"),
        "triggers": _modules("triggers.change", "triggers.deploy", "triggers.health"),
        "hooks": _modules("hooks.flink"),
        "config": _CONFIG,
        "cli": [f"{_CLASSES}.cli.get_flinkcompat_cli_commands"],
        "extra-links": [f"{_CLASSES}.links.FlinkJobLink", f"{_CLASSES}.links.FlinkChangeLink"],
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
                        "password": "Password, or bearer token if no user is set",
                    },
                    "placeholders": {"host": "sql-gateway.example.com", "port": "8083", "schema": "http"},
                },
                "conn-fields": {
                    "jobmanager_url": _field(
                        "JobManager URL", "REST address of the JobManager; if empty, port 8081 on the Gateway's host"
                    ),
                    "ui_url": _field(
                        "Flink UI URL",
                        "Address of Flink's UI in a browser, for links; if empty, the JobManager URL",
                    ),
                    "target": _field(
                        "Target",
                        "Where jobs run: sql-gateway (default), jobmanager, kubernetes, aws, "
                        "realtime-compute or another target; the page of the target lists its keys of the extra",
                    ),
                    **_LEDGER,
                    **_ACCESS,
                    **_for_jobmanager(_LOGIN | _ACCESS),
                },
            },
            {
                "connection-type": "alibaba_realtime_compute",
                "hook-name": "Alibaba Cloud Realtime Compute for Apache Flink",
                "hook-class-name": f"{_CLASSES}.hooks.flink.RealtimeComputeHook",
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "port", "schema"],
                    "relabeling": {"login": "Access key id", "password": "Access key secret"},
                    "placeholders": {},
                },
                "conn-fields": {**_REALTIME_COMPUTE, **_LEDGER},
            },
        ],
    }
