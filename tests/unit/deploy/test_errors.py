from __future__ import annotations

import pytest

from airflow_flinkcompat.deploy.errors import DeployError, condense

# ruff: noqa: E501 — as the SQL Gateway answers, frames cut to a few
NO_COLUMN = """Internal server error.
<Exception on server side:
org.apache.flink.table.gateway.api.utils.SqlGatewayException: org.apache.flink.table.gateway.api.utils.SqlGatewayException: Failed to fetchResults.
\tat org.apache.flink.table.gateway.rest.handler.statement.FetchResultsHandler.handleRequest(FetchResultsHandler.java:91)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.flink.table.gateway.service.utils.SqlExecutionException: Failed to execute the operation 252aca45.
\t... 1 more
Caused by: org.apache.flink.table.api.ValidationException: SQL validation failed. At line 1, column 32: Column 'x' not found in any table
\tat org.apache.flink.table.planner.calcite.FlinkPlannerImpl.org$apache$flink$table$planner$calcite$FlinkPlannerImpl$$validate(FlinkPlannerImpl.scala:205)
\t... 7 more
Caused by: org.apache.calcite.runtime.CalciteContextException: At line 1, column 32: Column 'x' not found in any table
\tat org.apache.calcite.runtime.Resources$ExInstWithCause.ex(Resources.java:507)
\t... 15 more
Caused by: org.apache.calcite.sql.validate.SqlValidatorException: Column 'x' not found in any table
\t... 39 more

End of exception on server side>"""

PARSE = """org.apache.flink.table.api.SqlParserException: SQL parse failed.
\tat a.B.c(B.java:1)
Caused by: org.apache.flink.sql.parser.impl.ParseException: Encountered "PASSWORD" at line 1, column 26.
Was expecting one of:
    "ARRAY" ...
    "COMMENT" ...
"""

NOT_FOUND = """java.util.concurrent.CompletionException: org.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find Flink job (fa30)
\tat java.base/java.util.concurrent.CompletableFuture.encodeThrowable(CompletableFuture.java:315)
\t... 2 common frames omitted
"""

OPTIONS = """java.lang.RuntimeException
\tat a.B.c(B.java:1)
Caused by: org.apache.flink.table.api.ValidationException: Unsupported options found for 'blackhole'.

Unsupported options:

login

Table options are:

'connector'='blackhole'
'password'='hunter2hunter2'
\tat org.apache.flink.table.factories.FactoryUtil.validate(FactoryUtil.java:1)
"""  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NO_COLUMN, "CalciteContextException: At line 1, column 32: Column 'x' not found in any table"),
        (PARSE, 'ParseException: Encountered "PASSWORD" at line 1, column 26.'),
        (NOT_FOUND, "FlinkJobNotFoundException: Could not find Flink job (fa30)"),
        ("Service temporarily unavailable.", "Service temporarily unavailable."),
        ("[Errno 111] Connection refused", "[Errno 111] Connection refused"),
        ("", ""),
    ],
)
def test_root_cause_in_one_line(text: str, expected: str) -> None:
    assert condense(text) == expected


def test_echoed_options_are_masked() -> None:
    said = condense(OPTIONS)
    assert said.startswith("ValidationException: Unsupported options found for 'blackhole'. Unsupported options: login")
    assert "hunter2" not in said


def test_length_is_bounded_and_secrets_go_first() -> None:
    # The secret straddles the cut: masking after cutting would show its first half.
    text = "x" * 580 + " 'password' = 'a-secret-that-is-longer-than-what-is-left-over'"
    said = condense(text)
    assert len(said) <= 600
    assert "a-secret" not in said


def test_every_error_of_the_package_is_masked() -> None:
    assert "hunter2" not in str(DeployError("refused: 'password' = 'hunter2hunter2'"))


def test_a_list_of_factories_is_no_chain_of_exceptions() -> None:
    text = (
        "java.lang.IllegalStateException: Could not find any jdbc dialect factory for url 'jdbc:postgresql://h/d'.\n\n"
        "Available factories are:\n\norg.apache.flink.connector.jdbc.derby.database.DerbyFactory\n\tat a.B.c(B.java:1)"
    )
    assert condense(text).startswith("IllegalStateException: Could not find any jdbc dialect factory for url")
