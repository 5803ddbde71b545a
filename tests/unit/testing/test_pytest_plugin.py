"""The contract as a plugin: a target keeps it, or breaks it, with nothing given but its name and settings."""

from __future__ import annotations

import pytest

from tests.support.nightly import mostly_nightly

# Each test has a pytest of its own.
pytestmark = pytest.mark.slow
PLUGIN = "airflow_flinkcompat.testing.pytest_plugin"
CONTRACT = ("--pyargs", "airflow_flinkcompat.testing.installed_target")
QUICK = ("--flinkcompat-settle-seconds", "0", "--flinkcompat-step-seconds", "10", "-p", "no:cacheprovider")
MINE = """
from airflow_flinkcompat.testing.fake_target import FakeServer, FakeTarget
from airflow_flinkcompat.deploy.target import Operation, Verb

SERVERS = {}

class Mine(FakeTarget):
    @classmethod
    def connect(cls, access):
        assert access.settings is None or set(access.settings) == {"server"}
        name = (access.settings or {}).get("server", "environment")
        return cls(SERVERS.setdefault((cls, name), FakeServer()))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class Forgetful(Mine):
    '''Each start that is asked for makes a job, whatever it was asked for under.'''

    def start(self, job, start, request_id):
        self.server.starts.pop(request_id, None)
        return super().start(job, start, request_id)
"""
MISFITS = """
import pytest

@pytest.fixture
def flinkcompat_misfits():
    return lambda target, name: target.server.refuses.add(name)
"""


@pytest.fixture
def contract(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with two targets; the second one is broken."""
    pytester.makepyfile(mine=MINE)
    pytester.makeconftest(MISFITS)
    pytester.syspathinsert()
    # Of the outer run: its options are none of the inner one's.
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return pytester


def ran(contract: pytest.Pytester, *options: str) -> pytest.RunResult:
    return contract.runpytest("-p", PLUGIN, *QUICK, *options, *CONTRACT)


def test_a_target_keeps_the_contract_by_its_name_alone(contract: pytest.Pytester) -> None:
    result = ran(contract, "--flinkcompat-target", "mine:Mine", "--flinkcompat-connection", '{"server": "one"}')
    result.assert_outcomes(passed=27)
    result.stdout.fnmatch_lines(["flinkcompat: target mine:Mine"])
    assert "one" not in result.stdout.str().split("flinkcompat: target", 1)[1].splitlines()[0]


def test_a_target_that_breaks_it_fails(contract: pytest.Pytester) -> None:
    some = "asked_for_twice_is_one_job or names_its_engine"
    result = ran(contract, "--flinkcompat-target", "mine:Forgetful", "-k", some)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED *::test_a_start_asked_for_twice_is_one_job*"])


def test_the_settings_may_stand_in_a_file_and_the_name_in_pytest_ini(contract: pytest.Pytester) -> None:
    contract.makefile(".json", connection='{"server": "two"}')
    contract.makeini("[pytest]\nflinkcompat_target = mine:Mine\nflinkcompat_connection = connection.json")
    ran(contract, "-k", "names_its_engine").assert_outcomes(passed=1)


def test_a_file_of_tests_may_say_how_the_target_is_opened(contract: pytest.Pytester) -> None:
    contract.makepyfile(
        test_mine="""
        import pytest
        from airflow_flinkcompat.deploy.targets import Access
        from airflow_flinkcompat.testing.installed_target import TestInstalledTarget
        from mine import Mine

        @pytest.fixture(scope="session")
        def flinkcompat_open():
            return lambda: Mine.connect(Access(str, {"server": "three"}))
        """
    )
    result = contract.runpytest("-p", PLUGIN, *QUICK, "-k", "goes_on_from", "test_mine.py")
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("options", "words"),
    mostly_nightly(
        [
            ((), "name the target with --flinkcompat-target NAME (installed: *sql-gateway*)"),
            (("--flinkcompat-target", "gatway"), "flinkcompat: there is no target 'gatway'. Installed targets: *"),
            (("--flinkcompat-target", "no_such:Target"), "flinkcompat: No module named 'no_such'"),
            (
                ("--flinkcompat-target", "mine:Mine", "--flinkcompat-connection", '{"password": "planted'),
                "flinkcompat: --flinkcompat-connection is no JSON: Unterminated string starting at: line 1 column 14 *",
            ),
            (
                ("--flinkcompat-target", "mine:Mine", "--flinkcompat-step-seconds", "soon"),
                "--flinkcompat-step-seconds 'soon' is not a number of seconds",
            ),
        ],
        few=2,
    ),
)
def test_what_is_missing_or_wrong_is_said_once(contract: pytest.Pytester, options: tuple[str, ...], words: str) -> None:
    result = ran(contract, "-k", "names_its_engine", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines([f"!* _pytest.outcomes.Exit: {words} !*"])
    assert "planted" not in result.stdout.str()


def test_an_airflow_connection_may_be_named(contract: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one of that target, or that is said."""
    monkeypatch.setenv("AIRFLOW_CONN_MY_FLINK", '{"conn_type": "flink", "extra": {"target": "aws"}}')
    result = ran(contract, "--flinkcompat-target", "mine:Mine", "--flinkcompat-connection", "my_flink", "-k", "engine")
    result.stdout.fnmatch_lines(
        ["*connection 'my_flink' belongs to target 'aws', but the target to test is 'mine:Mine'*"]
    )
