"""Judgement of each engine about a change to stored state.

To add an engine: a module here that makes an :class:`~airflow_flinkcompat.compat.engines.protocol.Engine`, an entry in
:data:`~airflow_flinkcompat.model.engine.ENGINE_FACTS`, and a verdict of each rule.
"""
