"""What a change does to stored state: sides, pairing, rules, reports and policy."""

from airflow_flinkcompat.compat.judge import check
from airflow_flinkcompat.compat.outcome import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.compat.policy import Policy
from airflow_flinkcompat.compat.report import Finding, Report
from airflow_flinkcompat.compat.reports.markdown import render_markdown
from airflow_flinkcompat.compat.reports.render import render_text, report_rows
from airflow_flinkcompat.compat.side import ENGINES, InputError, Side

__all__ = [
    "ENGINES",
    "Basis",
    "Consequence",
    "Finding",
    "InputError",
    "Outcome",
    "Policy",
    "Reason",
    "Report",
    "Side",
    "check",
    "render_markdown",
    "render_text",
    "report_rows",
]
