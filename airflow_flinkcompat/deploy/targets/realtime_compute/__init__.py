"""Alibaba Cloud Realtime Compute for Apache Flink, the platform of engine ``vvr``."""

from airflow_flinkcompat.deploy.targets.realtime_compute.target import RealtimeComputeTarget

__all__ = ["RealtimeComputeTarget"]
