"""Pictures of the page's DAG on the local Kubernetes, for that page.

``python -m tests.scenarios.local_kubernetes.pictures`` takes them.

Needs what ``demo.pictures`` needs, and the right to make a folder in /srv. They are to be made small afterwards
(``pngquant --ext .png --force``).
"""

from __future__ import annotations

import shutil
from importlib.resources import as_file
from pathlib import Path

from airflow_flinkcompat.deploy.targets.jar_run import runner_jar
from dev.demo.pictures import Photographer, Picture
from dev.measure.pairs import home
from tests.scenarios.local_kubernetes.gated import KubernetesGate, gated_on_kubernetes

_HOME = Path("/srv/flink")  # the log shows where savepoints lie
_RUN = "dags/{dag}/runs/{run}"
PICTURES = (
    Picture("resumed", "kubernetes-graph", _RUN, "resume", graph=True, height=560, width=1280),
    Picture("resumed", "kubernetes-log", f"{_RUN}/tasks/resume", "deployed: job", height=860, width=1280, keys="wt"),
    Picture(
        "asked",
        "kubernetes-approval",
        f"{_RUN}/tasks/approve/required_actions",
        "Restart with",
        height=1330,
        width=1280,
    ),
)
_SECONDS = 1800.0


def tell(gate: KubernetesGate) -> None:
    """A first start, a resume, and a question."""
    gate.files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "01:10")])
    gate.propose(gate.version())
    gate.client.unpause(gate.dag_id)
    with Photographer(gate.airflow, gate.dag_id, print, PICTURES) as photographer:
        gate.client.wait_for_run(gate.dag_id, gate.run(), timeout=_SECONDS)
        run = gate.run()
        gate.propose(gate.version(poll="300 ms"))
        gate.client.wait_for_run(gate.dag_id, run, timeout=_SECONDS)
        photographer.take("resumed", run)
        run = gate.run()
        gate.propose(gate.version(poll="300 ms", minutes=2))
        gate.client.wait_for_question(gate.dag_id, run, "approve", timeout=_SECONDS)
        photographer.take("asked", run)


def main() -> None:
    """Take every picture."""
    _HOME.mkdir(parents=True)
    try:
        with as_file(runner_jar()) as jar, gated_on_kubernetes(_HOME, home("1.20"), jar) as gate:
            tell(gate)
    finally:
        shutil.rmtree(_HOME)


if __name__ == "__main__":
    main()
