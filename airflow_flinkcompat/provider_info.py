"""What Airflow is told about this package (entry point ``apache_airflow_provider``). Imports nothing heavy."""

from __future__ import annotations

from typing import Any

_INTEGRATION = "Apache Flink SQL"
_CLASSES = "airflow_flinkcompat"


def _modules(*names: str) -> list[dict[str, Any]]:
    return [{"integration-name": _INTEGRATION, "python-modules": [f"{_CLASSES}.{name}" for name in names]}]


def _field(label: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **schema}}


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
            "operators.compatibility", "operators.deploy", "operators.approval", "operators.backfill"
        ),
        "sensors": _modules("sensors.change"),
        "triggers": _modules("triggers.change"),
        "hooks": _modules("hooks.flink"),
        "extra-links": [f"{_CLASSES}.links.flink.FlinkJobLink"],
        "connection-types": [
            {
                "connection-type": "flink",
                "hook-name": "Apache Flink (SQL Gateway)",
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
                    "ledger": _field(
                        "Ledger",
                        "Folder or object-store URI of the record of what is deployed, e.g. s3://bucket/ledger",
                    ),
                    "ca_file": _field("CA file", "PEM file that signs the servers' certificates, for https"),
                    "verify": _field(
                        "Verify certificates", "Switch off only on test systems", type=["boolean", "null"], default=True
                    ),
                    "timeout": _field(
                        "Time-out", "Seconds for one REST call", type=["number", "null"], default=30, minimum=1
                    ),
                },
            }
        ],
    }
