"""The environment of Spark's driver as the source of values.

``${conn.<conn_id>.<attribute>}`` is read from the variable ``FLINKCOMPAT_CONN_<CONN_ID>_<ATTRIBUTE>`` (upper case,
``_`` for any other character than letters and digits), ``${env.NAME}`` from ``NAME``. Plans, requests, command lines
and Spark's settings hold the placeholders.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.secrets.placeholders import AnyPlaceholder, Lookup


def environment_lookup(environment: Mapping[str, str]) -> Lookup:
    """The lookup of Spark's driver.

    Args:
        environment: Values by variable, ``os.environ`` say.

    Returns:
        A lookup that raises LookupError, which names the variable, for one that is not set.
    """

    def lookup(placeholder: AnyPlaceholder) -> str:
        if placeholder.variable not in environment:
            raise LookupError(
                f"{placeholder} is asked for, but the variable {placeholder.variable} is not set in the environment "
                "of Spark's driver"
            )
        return environment[placeholder.variable]

    return lookup
