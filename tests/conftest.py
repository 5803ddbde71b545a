"""What holds for every test: a throw-away Airflow home, hypothesis profiles, and no skipped test where that counts."""

from __future__ import annotations

import atexit
import fcntl
import gc
import logging
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.support.nightly import NIGHTLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_flinkcompat.local_flink import LocalFlink

# Airflow writes into its home on import, so this stands before any test module is collected. A user's own home and
# settings are never touched.
for _name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
    del os.environ[_name]
_airflow_home = tempfile.mkdtemp(prefix="flinkcompat-airflow-")
atexit.register(shutil.rmtree, _airflow_home, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _airflow_home
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
# No test starts Flink's planner unless it says so.
os.environ["FLINKCOMPAT_PLANNER"] = "never"

# Its connections are closed when the interpreter is, after pytest has closed the streams that would be written to.
logging.getLogger("py4j").setLevel(logging.WARNING)

# Real parts share the machine with the tests, so a slow example is no failure. CI draws the same examples every time.
settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.register_profile("ci", deadline=None, max_examples=15, derandomize=True, print_blob=True)
settings.register_profile("thorough", deadline=None, max_examples=300, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))


def _skips_fail() -> bool:
    return bool(os.environ.get("CI") or os.environ.get("FLINKCOMPAT_NO_SKIPS"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What is collected stays until the end: looking for garbage in it again and again takes an eighth of a run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # Tests make trees and read them: at Python's own threshold an eighth of a run looks for garbage in them.
        gc.set_threshold(100_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """pytest looks for garbage five times here; once is enough, in a heap of this size."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped test proves nothing: with CI or FLINKCOMPAT_NO_SKIPS set, one skip fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not _skips_fail():
        return
    skipped = reporter.stats.get("skipped", [])
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line("")
        reporter.write_line(f"FAILED: {len(skipped)} skipped; a skipped test counts as a failure here", red=True)


REAL = {
    "backfill": "one Spark",
    "history": "one Spark",
    "spark_migration": "one Spark",
    "airflow": "one Airflow and one Flink",
    "deploy": "one Flink",
    "local_kubernetes": "one Kubernetes and one Flink",
}
"""Folders whose tests start or use real parts, and which of a run: those of one kind belong into one process."""


STAND_INS = tuple(f"tests/unit/deploy/targets/test_{name}" for name in ("aws", "kubernetes", "realtime_compute"))
"""What uses real parts in a nightly run alone."""
LONG = (
    "tests/unit/sql/test_properties.py",
    "tests/unit/exec_graph/test_from_script.py",
    "tests/unit/test_fuzz.py",
    "tests/scenarios/local_flink/test_local_flink.py",
    "tests/unit/plan/test_robustness.py",
    "tests/unit/secrets/test_leaks.py",
    "tests/repository/test_bare_install.py",
    "tests/repository/test_project.py",
)
"""Files without real parts that take long, the longest first: begun last, one of them would run alone in the end."""


@cache
def _parts(file: str) -> str:
    """The real parts of a file's tests; of one that has none, the file itself."""
    found = next((parts for folder, parts in REAL.items() if folder in file.split("/")), file)
    if file.startswith(STAND_INS) and not NIGHTLY:
        return file
    path = Path(__file__).parents[1] / file
    compares = found == REAL["backfill"] and re.search(r"\bflink\b", path.read_text(encoding="utf-8"))
    return f"{found} beside one Flink" if compares else found


def _scope(nodeid: str) -> str:
    return _parts(nodeid.partition("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several processes the first begin with real parts, each with one kind; other files stay whole, long first."""
    from xdist.scheduler import LoadScopeScheduling

    class RealPartsTogether(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return RealPartsTogether(config, log)


_ALL_SLOW = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick tests do not import what holds slow ones alone: a quarter of what is imported is for those."""
    if config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
        return None
    return True if _ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) else None


MANY, EVERY = 6, 7
"""Of a test with more cases than these the quick tests run one in so many; an odd number meets all of few engines."""


def _leave_out_like_cases(items: list[pytest.Item]) -> None:
    """Marks as slow what is one more of many like cases; ``make test`` runs them all."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for like in cases.values():
        for number, item in enumerate(like if len(like) > MANY else ()):
            if number % EVERY:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not NIGHTLY:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("nightly")])
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    if config.getoption("markexpr") == "not slow":
        _leave_out_like_cases(items)
    kinds = [f"{REAL['backfill']} beside one Flink", *REAL.values(), *LONG]
    items.sort(key=lambda item: kinds.index(_scope(item.nodeid)) if _scope(item.nodeid) in kinds else len(kinds))


@pytest.fixture(scope="session")
def local_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFlink]:
    """The one real Flink of a run, with its Kafka connector: JobManager, TaskManager and SQL Gateway on loopback."""
    from airflow_flinkcompat.local_flink import LocalFlink
    from airflow_flinkcompat.local_flink.jars import fetch

    jars = [fetch("flink-sql-connector-kafka")]
    with LocalFlink(tmp_path_factory.mktemp("flink"), slots=16, extra_jars=jars) as flink:
        yield flink


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session, as a backfill itself would start it."""
    from airflow_flinkcompat.backfill.spark import Effort, spark_session
    from dev.services.kafka import ivy_directory
    from tests.support.spark_packages import NEEDS

    ivy_directory().mkdir(parents=True, exist_ok=True)
    with ExitStack() as ends:
        # Ivy's cache is filled by one process at a time: two at once leave it half-filled to each other.
        with (ivy_directory() / ".tests").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # A few rows a query: the second compiler would take more processor time than it saves.
            session = ends.enter_context(spark_session("local[2]", NEEDS, Effort.LITTLE))
        yield session
