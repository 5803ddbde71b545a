"""Write the OpenAPI schema of the plugin to ``frontend/openapi.json``, the source of the pages' types."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_flinkcompat.airflow.plugin.app import create_app

TARGET = Path(__file__).parents[1] / "frontend" / "openapi.json"

if __name__ == "__main__":
    TARGET.write_text(json.dumps(create_app().openapi(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
