"""Syntax of placeholders."""

from __future__ import annotations

import re

#: Matches one placeholder; groups ``conn_id`` and ``attribute``, or ``name``.
PLACEHOLDER = re.compile(
    r"\$\{(?:conn\.(?P<conn_id>[^{}\s'\"`]+?)\.(?P<attribute>host|port|login|password|schema|extra\.[^{}\s'\"`]+)"
    r"|env\.(?P<name>[A-Za-z_][A-Za-z0-9_]*))\}"
)
#: Matches what begins as a placeholder does.
OPENING = re.compile(r"\$\{(?:conn\b|env\.)[^}\s'\"`]*\}?")
#: Matches a variable that the platform of engine ``vvr`` keeps for all jobs of a namespace, and fills in itself.
NAMESPACE_VARIABLE = re.compile(r"\$\{secret_values\.[A-Za-z_][\w-]*\}")
#: Matches a variable as shells and other tools write it; one with a default (``${NAME:-value}``) may hold a secret.
VARIABLE = re.compile(r"\$\{[A-Za-z_][\w.-]*\}")
