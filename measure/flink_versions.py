"""The lines of Flink that are measured, and where their jars come from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from airflow_flinkcompat.local_flink import LocalFlinkError
from airflow_flinkcompat.local_flink.cluster import flink_home

CACHE = Path(__file__).parents[1] / ".measure"
"""In the checkout, ignored by git: jars, and what the last runs left behind."""
VERSIONS = {"2.3": "2.3.0", "1.20": "1.20.3"}
"""By line on which every pair is run, its release."""
RELEASES = {**VERSIONS, "2.2": "2.2.1", "2.1": "2.1.1", "2.0": "2.0.0", "1.19": "1.19.1"}
"""By line that can be run, its release, whose SQL Gateway is pinned in ``jars.toml``.

On those that are not in :data:`VERSIONS` the base set of pairs is run; upgrades are run between any two.
"""


def home(line: str) -> Path:
    """The folder whose ``lib/`` holds the jars of that line; fetched from PyPI on first use (330 MB).

    2.3 is the line the project installs (extra ``local-flink``, or ``$FLINKCOMPAT_FLINK_HOME``) where that is its
    version. Two lines cannot share an environment, so any other goes into a folder of its own. Raises LocalFlinkError.
    """
    version = RELEASES[line]
    if line == "2.3":
        try:
            if list((flink_home() / "lib").glob(f"flink-dist-{version}.jar")):
                return flink_home()
        except LocalFlinkError:
            pass  # not installed: it is fetched like the other one
    folder = CACHE / f"flink-{version}"
    if not list((folder / "pyflink" / "lib").glob("flink-dist-*.jar")):
        _fetch(version, folder)
    return flink_home(folder / "pyflink")


def _fetch(version: str, folder: Path) -> None:
    command = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--quiet", "--python", sys.executable]
    done = subprocess.run(
        [*command, "--target", str(folder), f"apache-flink-libraries=={version}"], capture_output=True, text=True
    )
    if done.returncode:
        raise LocalFlinkError(f"cannot fetch apache-flink-libraries {version} into {folder}:\n{done.stderr.strip()}")
