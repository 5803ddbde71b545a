"""The verdict on a changed job's stored state: sides, pairing, rules, reports and policy.

Each name loads on first use. Importing a policy or an outcome loads neither the rules nor the SQL parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.compat.checker import check, check_engines
    from airflow_flinkcompat.compat.report import Finding, Report, Reports
    from airflow_flinkcompat.compat.reports.advice import ReportContext
    from airflow_flinkcompat.compat.reports.markdown import render_markdown, render_markdown_of_engines
    from airflow_flinkcompat.compat.reports.render import render_text, render_text_of_engines, report_rows
    from airflow_flinkcompat.compat.side import Side
    from airflow_flinkcompat.model import ENGINES, Basis, Consequence, InputError, Outcome, Policy, Reason

_HOMES = {
    ".checker": ("check", "check_engines"),
    ".report": ("Finding", "Report", "Reports"),
    ".reports.advice": ("ReportContext",),
    ".reports.markdown": ("render_markdown", "render_markdown_of_engines"),
    ".reports.render": ("render_text", "render_text_of_engines", "report_rows"),
    ".side": ("Side",),
    "airflow_flinkcompat.model": ("ENGINES", "Basis", "Consequence", "InputError", "Outcome", "Policy", "Reason"),
}

__all__ = [
    "ENGINES",
    "Basis",
    "ReportContext",
    "Consequence",
    "Finding",
    "InputError",
    "Outcome",
    "Policy",
    "Reason",
    "Report",
    "Reports",
    "Side",
    "check",
    "check_engines",
    "render_markdown",
    "render_markdown_of_engines",
    "render_text",
    "render_text_of_engines",
    "report_rows",
]


if not TYPE_CHECKING:  # type checkers assume that a module with __getattr__ has every name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
