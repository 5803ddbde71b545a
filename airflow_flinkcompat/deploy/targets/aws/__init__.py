"""AWS Managed Service for Apache Flink: an application's program runs a SQL script.

``properties`` describes the application's property groups. ``service`` is a client of the API (``kinesisanalyticsv2``).
``target`` contains the verbs. This code was never run against the real service (see ``docs/targets/aws.md``).
"""

from airflow_flinkcompat.deploy.targets.aws.target import ManagedFlinkTarget

__all__ = ["ManagedFlinkTarget"]
