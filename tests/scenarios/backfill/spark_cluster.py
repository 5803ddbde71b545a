"""A Spark standalone cluster of this machine: a master and two workers, from the jars PySpark brings along."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from airflow_flinkcompat.local_flink.processes import LOOPBACK, Child, choose_ports, find_java, spawn, stop_all
from dev.services.csv_job import wait_for

WORKERS = 2


@dataclass(frozen=True)
class Cluster:
    """``port`` of the master, and the folder of each worker, which gets a folder of its own for every application."""

    port: int
    folders: tuple[Path, ...]

    @property
    def master(self) -> str:
        return f"spark://{LOOPBACK}:{self.port}"

    def applications(self, worker: int) -> list[str]:
        """The applications a worker had executors for."""
        return sorted(path.name for path in self.folders[worker].glob("app-*") if any(path.iterdir()))


@contextmanager
def spark_cluster(folder: Path) -> Iterator[Cluster]:
    """Master and workers for as long as the block lasts, each worker with one core and Python code of nobody."""
    ports = choose_ports({"master": None, "ui": None})
    home = Path(pyspark.__file__).parent
    java = [
        str(find_java()),
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xmx256m",
        "-cp",
        str(home / "jars" / "*"),
    ]
    environment = {key: os.environ[key] for key in ("PATH", "JAVA_HOME", "HOME", "LANG") if key in os.environ}
    (core,) = (home / "jars").glob("spark-core_*.jar")
    environment |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": LOOPBACK, "PYSPARK_PYTHON": sys.executable}
    environment["SPARK_SCALA_VERSION"] = core.name.removeprefix("spark-core_").partition("-")[0]
    cluster = Cluster(ports["master"], tuple(folder / f"worker-{number}" for number in range(WORKERS)))
    master = ["org.apache.spark.deploy.master.Master", "--host", LOOPBACK, "--port", str(ports["master"])]
    commands = {"master": [*master, "--webui-port", str(ports["ui"])]}
    for place in cluster.folders:
        options = ["--host", LOOPBACK, "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(place)]
        commands[place.name] = ["org.apache.spark.deploy.worker.Worker", *options, cluster.master]
    children: list[Child] = []
    try:
        for name, command in commands.items():
            files = {
                "output": folder / f"{name}.log",
                "pid_file": folder / f"{name}.pid",
                "log": folder / f"{name}.log",
            }
            children.append(spawn(name, [*java, *command], environment=environment, **files))
        wait_for(lambda: _alive(ports["ui"], children) == WORKERS, "both workers are registered")
        yield cluster
    finally:
        stop_all(children)


def _alive(port: int, children: list[Child]) -> int:
    dead = [child for child in children if not child.running]
    assert not dead, dead[0].log_tail()
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/json/", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
    except OSError:
        return 0
    return int(found["aliveworkers"])
