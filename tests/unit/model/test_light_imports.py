"""Importing a value, an operator or a sensor loads neither the rules nor the SQL parser."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PARTS = ("backfill", "cli", "compat.checker", "compat.rule", "compat.rules", "deploy", "frontends", "plan", "sql")
HEAVY = ("sqlglot", "pyspark", "kubernetes", *(f"airflow_flinkcompat.{part}" for part in PARTS))
"""What none of the light imports may load."""
CLIENTS = ("airflow", "click", "httpx", "pydantic")
"""What a value may not load either; Airflow itself loads some of them."""
VALUES = {
    "model": "import airflow_flinkcompat.model",
    "front door": "import airflow_flinkcompat; airflow_flinkcompat.Policy.of(None)",
    "compat": "from airflow_flinkcompat.compat import ENGINES, InputError, Outcome, Policy, Reason",
    "deploy": "from airflow_flinkcompat.deploy import StartMode",
}
FRONTS = {
    "packages": "import airflow_flinkcompat.airflow.operators, airflow_flinkcompat.airflow.sensors",
    "every operator": "from airflow_flinkcompat.airflow.operators import *",
    "every sensor": "from airflow_flinkcompat.airflow.sensors import *",
    "triggers": "import airflow_flinkcompat.airflow.triggers.change, airflow_flinkcompat.airflow.triggers.deploy",
}


@pytest.fixture(scope="module")
def fronts() -> dict[str, list[str]]:
    """The heavy modules that are loaded after each of FRONTS, one after the other in a fresh interpreter."""
    code = f"""
import json, sys
seen = {{}}
for name, code in {FRONTS!r}.items():
    exec(code)
    seen[name] = sorted(set({HEAVY!r}) & set(sys.modules))
print(json.dumps(seen))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has after it ran ``code``."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    heavy = {*HEAVY, *CLIENTS} - ({"airflow_flinkcompat.deploy"} if name == "deploy" else set())
    assert loaded(VALUES[name]) & heavy == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", FRONTS)
def test_fronts(fronts: dict[str, list[str]], name: str) -> None:
    assert fronts[name] == []


@pytest.mark.slow
def test_a_dag_file_pays_for_no_types_of_arguments_no_job_and_no_trigger() -> None:
    named = "FlinkSqlApprovalOperator, FlinkSqlCompatibilityOperator, FlinkSqlDeployOperator"
    found = loaded(
        f"from airflow_flinkcompat.airflow.operators import {named}\nimport airflow_flinkcompat.airflow.sensors"
    )
    assert "airflow_flinkcompat.airflow.operators.deploy" in found
    assert (
        found & {f"airflow_flinkcompat.{part}" for part in ("model.job", "airflow.tasks.arguments", "airflow.triggers")}
        == set()
    )


def test_the_measure_would_notice() -> None:
    assert {"sqlglot", "airflow_flinkcompat.compat.rules"} <= loaded("from airflow_flinkcompat import check")
