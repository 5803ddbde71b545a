"""AWS Managed Service for Apache Flink: an application whose program reads its SQL script.

``properties`` describes the application's property groups, ``service`` is the API (``kinesisanalyticsv2``) as values,
and ``target`` has the verbs. Nothing here was run against the vendor's service: see ``docs/targets/aws.md``.
"""

from airflow_flinkcompat.deploy.targets.aws.target import ManagedFlinkTarget

__all__ = ["ManagedFlinkTarget"]
