"""``flinkcompat lsp``: the language server for editors."""

from __future__ import annotations

import click

from airflow_flinkcompat.cli.arguments import bare_install, job_options
from airflow_flinkcompat.cli.diff import against_option
from airflow_flinkcompat.cli.project import Given


@click.command("lsp")
@against_option
@job_options("engine")
def lsp_command(against: str | None, given: Given) -> None:
    """A language server on standard input and output: the verdict on a script while one types.

    An editor starts it; docs/editors.md describes the setup. Each script is compared with the deployed one as by
    flinkcompat diff, by the project file found upwards from it; one that no deployment names is only read.
    """
    try:
        from airflow_flinkcompat.fleet.baselines import require_against
        from airflow_flinkcompat.lsp.projects import Projects
        from airflow_flinkcompat.lsp.server import serve
    except ImportError as error:
        raise bare_install("lsp", error, "lsp") from None
    require_against(against)
    serve(Projects(given.options, against))
