"""The Flink Kubernetes Operator: jobs are custom resources that the operator starts and stops.

``api`` reads and writes custom resources. ``resource`` interprets a single resource. ``manifest`` embeds the script,
and ``target`` contains the verbs.
"""
