"""The engines by name."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.compat.engines.flink.engine import FlinkEngine
from airflow_flinkcompat.compat.engines.protocol import Engine
from airflow_flinkcompat.compat.engines.vvr import VvrEngine

_EVERY: tuple[Engine, ...] = (VvrEngine(), FlinkEngine())
BY_NAME: Mapping[str, Engine] = {engine.name: engine for engine in _EVERY}
