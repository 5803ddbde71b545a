"""The engines, which judge the effect of a change on stored state.

To add an engine, add a module here that defines an :class:`~airflow_flinkcompat.compat.engines.protocol.Engine`. Then
add an entry to :data:`~airflow_flinkcompat.model.engine.ENGINE_FACTS`, and a verdict to each rule.
"""
