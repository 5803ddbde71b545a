"""The Flink Kubernetes Operator: jobs that are custom resources, which the operator starts and stops.

``api`` reads and writes them, ``resource`` says what one of them tells, ``manifest`` how it carries a script, and
``target`` deploys by them.
"""
