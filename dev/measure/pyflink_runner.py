"""Runs PyFlink programs in one JVM: planned only, submitted to a cluster, or run here to their end.

``python -P dev/measure/pyflink_runner.py`` in an environment that holds ``apache-flink`` and nothing of this project;
see :mod:`measure.pyflink` for its other end. A request is one line of JSON on standard input: ``do`` (``plan``,
``submit`` or ``run``), ``program`` (its text), ``name`` (its file's), ``settings`` (Flink's options) and ``arguments``
(of its command line). The answer is one line on standard output: ``answer`` (the compiled plans as texts, or the ids of
the jobs), or ``error``. What programs print goes to standard error.

Programs are executed with all this process may do: it is for programs of the project's own tests only.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import StatementSet, Table, TableEnvironment, TableResult

_JOB = re.compile(r"\s*(INSERT|EXECUTE\s+STATEMENT\s+SET|BEGIN\s+STATEMENT\s+SET)\b", re.IGNORECASE)
_QUERY = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
_EXECUTE = re.compile(r"\s*EXECUTE\s+", re.IGNORECASE)
_BEGIN_SET = re.compile(r"\s*BEGIN\s+STATEMENT\s+SET\s*;", re.IGNORECASE)
_FRAME = re.compile(r"\s+(at |\.\.\. )|Trace:$")
_SINK = "flinkcompat_query"
_HERE = {"execution.target": "local", "execution.attached": "true"}
_COMPILE = {"table.plan.compile.catalog-objects": "SCHEMA"}


class Planned:
    """Result of a job that was only planned."""

    def wait(self, timeout_ms: int | None = None) -> None:
        pass

    def print(self) -> None:
        pass

    def get_job_client(self) -> None:
        return None


class Planner:
    """Replacement for everything that starts a job, which keeps the plan."""

    def __init__(self) -> None:
        self.plans: list[str] = []
        self._execute_sql = TableEnvironment.execute_sql

    def _keep(self, plan: Any) -> Planned:
        self.plans.append(plan.as_json_string())
        return Planned()

    def methods(self) -> list[tuple[type, str, Any]]:
        def execute_sql(env: TableEnvironment, text: str) -> Any:
            if _JOB.match(text):
                one = _EXECUTE.sub("", _BEGIN_SET.sub("STATEMENT SET BEGIN ", text, count=1), count=1)
                return self._keep(env.compile_plan_sql(one.rstrip().rstrip(";")))
            if _QUERY.match(text):
                return execute(env.sql_query(text.rstrip().rstrip(";")))
            return self._execute_sql(env, text)

        def execute_insert(table: Table, path: Any, overwrite: bool = False) -> Planned:
            return self._keep(table.insert_into(path, overwrite).compile_plan())

        def execute(table: Table) -> Planned:
            """A query without a sink is planned with a sink of its own columns."""
            env = table._t_env
            columns = ", ".join(
                f"`{column.getName()}` {re.sub(r' [*](ROWTIME|PROCTIME)[*]', '', str(column.getDataType()))}"
                for column in table._j_table.getResolvedSchema().getColumns()
            )
            self._execute_sql(env, f"DROP TEMPORARY TABLE IF EXISTS {_SINK}")
            self._execute_sql(env, f"CREATE TEMPORARY TABLE {_SINK} ({columns}) WITH ('connector' = 'blackhole')")
            return execute_insert(table, _SINK)

        def execute_set(statements: StatementSet) -> Planned:
            return self._keep(statements.compile_plan())

        return [
            (TableEnvironment, "execute_sql", execute_sql),
            (Table, "execute_insert", execute_insert),
            (Table, "execute", execute),
            (StatementSet, "execute", execute_set),
        ]


class Starter:
    """Starter of jobs that keeps them; ``wait`` waits for the end of bounded ones only."""

    def __init__(self, to_the_end: bool) -> None:
        self.jobs: list[str] = []
        self._to_the_end = to_the_end
        self._methods = [(TableEnvironment, "execute_sql"), (Table, "execute_insert"), (StatementSet, "execute")]

    def methods(self) -> list[tuple[type, str, Any]]:
        def started(method: Any) -> Any:
            def call(*args: Any, **names: Any) -> TableResult:
                result: TableResult = method(*args, **names)
                client = result.get_job_client()
                if client is not None:
                    self.jobs.append(str(client.get_job_id()))
                    if self._to_the_end:
                        result.wait()
                return result

            return call

        kept = [(owner, name, started(getattr(owner, name))) for owner, name in self._methods]
        return kept if self._to_the_end else [*kept, (TableResult, "wait", lambda result, timeout_ms=None: None)]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what programs and Python itself print is no answer
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: dict[str, Any] = {"answer": _done(request)}
        except BaseException as error:
            answer = {"error": _told(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _done(request: dict[str, Any]) -> list[str]:
    planning = request["do"] == "plan"
    work: Planner | Starter = Planner() if planning else Starter(to_the_end=request["do"] == "run")
    methods = work.methods()
    replaced = [(owner, name, vars(owner)[name]) for owner, name, _ in methods]
    _as_flink_run({**_HERE, **(_COMPILE if planning else {}), **request["settings"]})
    arguments, names = sys.argv, {"__name__": "__main__", "__file__": request["name"]}
    try:
        sys.argv = [request["name"], *request["arguments"]]
        for owner, name, method in methods:
            setattr(owner, name, method)
        exec(compile(request["program"], request["name"], "exec"), names)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.argv = arguments
        for owner, name, method in replaced:
            setattr(owner, name, method)
    return work.plans if isinstance(work, Planner) else work.jobs


def _as_flink_run(settings: dict[str, str]) -> None:
    """Start environments of the program with these options, as ``flink run`` does."""
    java = get_gateway().jvm
    configuration = java.org.apache.flink.configuration.Configuration()
    for key, value in settings.items():
        configuration.setString(key, value)
    java.org.apache.flink.client.program.StreamContextEnvironment.setAsContext(
        java.org.apache.flink.core.execution.DefaultExecutorServiceLoader(),
        configuration,
        java.java.lang.Thread.currentThread().getContextClassLoader(),
        java.java.lang.Integer.MAX_VALUE,
        java.java.lang.Integer.MAX_VALUE,
        False,
        None,
        None,
        java.java.util.ArrayList(),
    )


def _told(error: BaseException) -> str:
    """The error with all its causes, without stack frames."""
    lines = "".join(traceback.format_exception_only(error)).splitlines()
    return "\n".join(line for line in lines if line.strip() and not _FRAME.match(line))


if __name__ == "__main__":
    main()
