"""What a change does to stored state: sides, pairing, rules, reports and policy."""

from airflow_flinkcompat.compat.judge import check, check_engines
from airflow_flinkcompat.compat.outcome import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.compat.policy import Policy
from airflow_flinkcompat.compat.report import Finding, Report, Reports
from airflow_flinkcompat.compat.reports.advice import Circumstances
from airflow_flinkcompat.compat.reports.markdown import render_markdown, render_markdown_of_engines
from airflow_flinkcompat.compat.reports.render import render_text, render_text_of_engines, report_rows
from airflow_flinkcompat.compat.side import ENGINES, InputError, Side

__all__ = [
    "ENGINES",
    "Basis",
    "Circumstances",
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
