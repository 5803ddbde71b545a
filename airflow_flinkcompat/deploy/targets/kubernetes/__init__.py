"""The Flink Kubernetes Operator: jobs are custom resources that the operator starts and stops.

``api`` reads and writes them, ``resource`` interprets one of them, ``manifest`` embeds a script, and ``target`` deploys
by them.
"""
