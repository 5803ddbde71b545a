"""What holds for the project as a whole: packaging, import contracts, containers, no machine's paths, no skips."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml

from airflow_flinkcompat.model.installation import Extra, install_command, missing_packages

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def run(*command: str | Path, cwd: Path = ROOT, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pinned() -> dict[str, str]:
    """Distribution to version, as constraints.txt holds them (markers dropped)."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.partition(";")[0].strip().split("==") for line in lines if "==" in line.partition(";")[0])


class TestPackaging:
    def test_bare_install_needs_only_the_parser_and_the_command_line(self, pyproject: dict[str, Any]) -> None:
        names = {re.match(r"[\w-]+", requirement)[0] for requirement in pyproject["project"]["dependencies"]}  # type: ignore[index]
        assert names == {"click", "sqlglot"}

    def test_extras(self, pyproject: dict[str, Any]) -> None:
        extras = pyproject["project"]["optional-dependencies"]
        assert {"airflow", "spark", "local-flink", "all", "dev"} <= set(extras)
        assert "apache-airflow>=3.1,<4" in extras["airflow"]
        spark = {name: version for name, _, version in (pin.partition("==") for pin in extras["spark"])}
        assert spark["pyspark"] == spark["pyspark-client"] != ""
        flink = [requirement for requirement in extras["local-flink"] if "flink" in requirement.partition("[")[0]]
        assert flink == ["airflow-flinkcompat[deploy,jars]", "apache-flink-libraries==2.3.*"]
        assert extras["native"][0] == "airflow-flinkcompat[spark]"
        for part in ("airflow", "native", "local-flink"):
            assert part in extras["all"][0]

    def test_messages_and_pages_install_extras_that_there_are(self, pyproject: dict[str, Any]) -> None:
        """No release is on an index yet, so pages install a checkout."""
        extras = set(pyproject["project"]["optional-dependencies"])
        assert set(get_args(Extra)) <= extras
        pages = [ROOT / "README.md", ROOT / "action.yml", *(ROOT / "docs").rglob("*.md")]
        found = [line for page in pages for line in re.findall(r"pip install '?[^ \n`']+", page.read_text("utf-8"))]
        form = re.compile(r"pip install (?:\.|'\S+\.whl\[([^]]+)\]|'\.\[([^]]+)\]|'airflow-flinkcompat\[([^]]+)\])")
        named = {each: form.fullmatch(each) for each in found}
        assert [each for each, match in named.items() if match is None] == []
        given = (group for match in named.values() if match for group in match.groups() if group)
        assert {name for group in given for name in group.split(",")} <= extras

    @pytest.mark.parametrize(
        ("origin", "command"),
        [
            ({"url": "file:///src", "dir_info": {"editable": True}}, "pip install --editable '/src[lsp,s3]'"),
            ({"url": "file:///src", "dir_info": {}}, "pip install 'airflow-flinkcompat[lsp,s3] @ file:///src'"),
            (
                {"url": "https://h/r.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
                "pip install 'airflow-flinkcompat[lsp,s3] @ git+https://h/r.git@c0ffee'",
            ),
            (None, "pip install 'airflow-flinkcompat[lsp,s3]'"),
        ],
    )
    def test_extras_are_installed_from_where_the_package_came(
        self, origin: dict[str, Any] | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if origin is not None:
            (tmp_path / "direct_url.json").write_text(json.dumps(origin))
        monkeypatch.setattr(metadata, "distribution", lambda _: metadata.PathDistribution(tmp_path))
        assert install_command("lsp", "s3") == command

    def test_all_packages_that_extras_lack_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert missing_packages("local-flink", "spark") == ()
        present = metadata.distribution

        def distribution(name: str) -> metadata.Distribution:
            if name in ("httpx", "mmh3", "pandas"):
                raise metadata.PackageNotFoundError(name)
            return present(name)

        monkeypatch.setattr(metadata, "distribution", distribution)
        assert missing_packages("local-flink", "spark") == ("httpx", "mmh3", "pandas")

    def test_every_dependency_is_pinned(self, pyproject: dict[str, Any], pinned: dict[str, str]) -> None:
        project = pyproject["project"]
        wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
        names = {re.split(r"[\[<>=~! ]", requirement)[0].lower() for requirement in wanted} - {project["name"]}
        assert names - set(pinned) == set(), "run `make lock`"

    def test_importing_the_package_costs_nothing(self) -> None:
        code = (
            "import sys, airflow_flinkcompat as a; "
            "heavy = {'sqlglot', 'airflow', 'pyspark', 'httpx', 'kubernetes'} & set(sys.modules); "
            "assert not heavy, heavy; print(a.__version__)"
        )
        done = run(sys.executable, "-c", code)
        assert done.returncode == 0, done.stderr

    def test_front_door(self) -> None:
        import airflow_flinkcompat
        from airflow_flinkcompat import compat

        assert airflow_flinkcompat.check is compat.check
        assert airflow_flinkcompat.Side is compat.Side
        with pytest.raises(AttributeError, match="no attribute 'chekc'"):
            airflow_flinkcompat.chekc  # noqa: B018

    def test_entry_points(self) -> None:
        (script,) = [e for e in entry_points(group="console_scripts") if e.name == "flinkcompat"]
        assert callable(script.load())
        (provider,) = [e for e in entry_points(group="apache_airflow_provider") if "flinkcompat" in e.value]
        assert provider.load()()["package-name"] == "airflow-flinkcompat"

    def test_provider_info_is_valid(self) -> None:
        from airflow_flinkcompat.airflow.provider_info import get_provider_info

        schema = json.loads(files("airflow").joinpath("provider_info.schema.json").read_text(encoding="utf-8"))
        jsonschema.validate(get_provider_info(), schema)


@pytest.mark.slow
def test_import_contracts() -> None:
    done = run(BIN / "lint-imports", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_import_contracts_bite(tmp_path: Path) -> None:
    """The contracts catch each kind of wrong import, also inside a function and for typing only."""
    package = tmp_path / "airflow_flinkcompat"
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [(kind["containers"], kind["layers"]) for kind in contracts if kind["type"] == "layers"]
    modules = {
        f"{container}.{name}".removeprefix("airflow_flinkcompat.").replace(".", "/")
        for containers, names in layers
        for container in containers
        for name in re.split(r"[|:]?\s+(?:[|:]\s+)?", " ".join(names))
    }
    modules |= {
        name.removeprefix("airflow_flinkcompat.").replace(".", "/").replace("*", "files")
        for kind in contracts
        for name in (*kind.get("source_modules", ()), *kind.get("forbidden_modules", ()))
        if name.startswith("airflow_flinkcompat.")
    }
    for name in sorted(modules):
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "__init__.py").touch()
    ignored = (each.partition(" -> ") for kind in contracts for each in kind.get("ignore_imports", ()))
    for importer, _, imported in ignored:
        place = tmp_path / importer.replace(".", "/")
        place.mkdir(parents=True, exist_ok=True)
        (place.parent / "__init__.py").touch()
        (place / "__init__.py").write_text(f"import {imported}\n")
    (package / "__init__.py").write_text("def __getattr__(name):\n    from airflow_flinkcompat import compat, model\n")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    command = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as lint; lint()"
    clean = run(sys.executable, "-c", command, "--no-cache", cwd=tmp_path)
    assert clean.returncode == 0, clean.stdout + clean.stderr

    wrong = {
        ("model", "sqlglot"): "def f():\n    import sqlglot",
        ("sql", "airflow_flinkcompat.plan"): "from airflow_flinkcompat import plan",
        ("plan", "httpx"): "def f():\n    import httpx",
        ("backfill/steps", "airflow_flinkcompat.backfill.run"): "from airflow_flinkcompat.backfill import run",
        ("frontends", "airflow_flinkcompat.plan"): "def f():\n    from airflow_flinkcompat import plan",
        (
            "airflow/operators/summary",
            "airflow_flinkcompat.airflow.operators.deploy",
        ): "def f():\n    from airflow_flinkcompat.airflow.operators import deploy",
        ("compat", "pyspark"): "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pyspark.sql",
        ("deploy", "airflow_flinkcompat.backfill"): "from airflow_flinkcompat import backfill",
        ("backfill", "airflow"): "from airflow.sdk import DAG",
        ("deploy/ledger", "airflow_flinkcompat.deploy.redeploy"): "from airflow_flinkcompat.deploy import redeploy",
        (
            "frontends/pyflink",
            "airflow_flinkcompat.frontends.flip11",
        ): "from airflow_flinkcompat.frontends import flip11",
        (
            "deploy/redeploy",
            "airflow_flinkcompat.deploy.flink.jobmanager",
        ): "def f():\n    from airflow_flinkcompat.deploy.flink import jobmanager",
        ("cli", "airflow_flinkcompat.airflow.hooks"): "from airflow_flinkcompat.airflow import hooks",
        ("airflow/operators", "airflow_flinkcompat.cli"): "from airflow_flinkcompat import cli",
    }
    for (module, _), code in wrong.items():
        (package / module / "__init__.py").write_text(code + "\n")
    broken = run(sys.executable, "-c", command, "--no-cache", cwd=tmp_path)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    arrows = {pair: f"airflow_flinkcompat.{pair[0].replace('/', '.')} -> {pair[1]}" for pair in wrong}
    told = " ".join(broken.stdout.split())  # long lines are wrapped
    missed = [pair for pair, arrow in arrows.items() if arrow not in told]
    assert missed == [], broken.stdout


class TestCompose:
    @pytest.mark.slow
    def test_schema(self) -> None:
        done = run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yaml")
        assert done.returncode == 0, done.stdout + done.stderr

    def test_ports_are_on_loopback(self, compose: dict[str, Any]) -> None:
        ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
        assert len(ports) >= 4
        assert all(port.startswith("127.0.0.1:") for port in ports)

    def test_every_lasting_service_has_a_health_check(self, compose: dict[str, Any]) -> None:
        lasting = {name for name, service in compose["services"].items() if service.get("restart")}
        assert lasting == set(compose["services"]) - {"volume-owner"}
        assert all("test" in compose["services"][name]["healthcheck"] for name in lasting)

    def test_versions_are_those_that_are_tested(self, compose: dict[str, Any], pinned: dict[str, str]) -> None:
        services = compose["services"]
        for name in ("flink-jobmanager", "flink-taskmanager", "flink-sql-gateway", "volume-owner"):
            assert services[name]["image"].startswith(f"flink:{pinned['apache-flink-libraries']}-")
        for name in ("spark-master", "spark-worker"):
            assert services[name]["image"].startswith(f"apache/spark:{pinned['pyspark']}-")
        dockerfile = services["airflow"]["build"]["dockerfile_inline"]
        assert f"FROM apache/airflow:{pinned['apache-airflow']}-" in dockerfile

    def test_variables(self, compose: dict[str, Any]) -> None:
        assert compose["services"]["airflow"]["env_file"] == "compose.env"
        # Read as a shell would, so that the file also serves `set -a; . ./compose.env`.
        done = run("bash", "-c", "set -a; . ./compose.env; env -0")
        values = dict(pair.split("=", 1) for pair in done.stdout.split("\0") if "=" in pair)
        gateway = json.loads(values["AIRFLOW_CONN_FLINK_DEFAULT"])
        assert values["FLINKCOMPAT_GATEWAY_URL"] == f"{gateway['host']}:{gateway['port']}"
        # What a browser on this machine opens.
        port = gateway["extra"]["ui_url"].removeprefix("http://localhost:")
        assert f"127.0.0.1:{port}:8081" in compose["services"]["flink-jobmanager"]["ports"]
        spark = json.loads(values["AIRFLOW_CONN_SPARK_DEFAULT"])
        master = compose["services"]["spark-master"]["command"]
        assert spark["host"] == f"spark://{master[master.index('--host') + 1]}"
        assert str(spark["port"]) == master[master.index("--port") + 1]
        hosts = re.findall(r"//([\w-]+)", values["FLINKCOMPAT_GATEWAY_URL"] + values["FLINKCOMPAT_JOBMANAGER_URL"])
        assert set(hosts) <= set(compose["services"])


def test_pre_commit_configuration() -> None:
    done = run(BIN / "pre-commit", "validate-config", ".pre-commit-config.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


# Put together from pieces so that this file does not find itself.
_PLACES = [
    *(rf"(?<![\w.$}}])/{place}" for place in ("wo" + "rk/", "ro" + "ot/", "ho" + r"me/(?!airflow)\w", "opt/de" + "v/")),
    *(re.escape(host) for host in ("py" + "pi.org", "files.python" + "hosted.org", "registry.npm" + "js.org")),
]


@pytest.mark.slow
def test_no_file_names_a_place_on_one_machine() -> None:
    """No tracked text file holds a path of the machine it was written on, or a registry's host."""
    tracked = run("git", "ls-files", "-z").stdout.split("\0")
    pattern = re.compile("|".join(_PLACES))
    found = []
    for name in filter(None, tracked):
        if name == "airflow_flinkcompat/local_flink/jars.toml":
            continue  # archives that the product fetches, by checksum
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a picture, or a file that is being removed
        found += [f"{name}:{number}" for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    assert found == []


@pytest.mark.slow
def test_which_tests_run_does_not_depend_on_the_date() -> None:
    """A commit that is green today is green on any day."""
    asks = re.compile(r"\bdate\.today\(|\btoordinal\(|\btm_yday\b|GITHUB_RUN_ID")
    modules = [path for path in (ROOT / "tests").rglob("*.py") if "fixtures" not in path.parts]
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}" for path in modules for match in asks.finditer(path.read_text())
    ]
    own = "tests/repository/test_project.py"
    assert [place for place in found if not place.startswith(own)] == []


@pytest.mark.slow
class TestNoSkips:
    """The rule of tests/conftest.py, run on a small suite of its own."""

    @pytest.fixture
    def suite(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
        for name in ("CI", "FLINKCOMPAT_NO_SKIPS", "PYTEST_ADDOPTS"):
            monkeypatch.delenv(name, raising=False)
        pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
        pytester.makepyfile(
            test_passes="def test_it(): pass",
            test_skips="import pytest\n\n@pytest.mark.skip(reason='later')\ndef test_it(): pass",
        )
        return pytester

    @pytest.mark.parametrize(
        ("variable", "workers"),
        [("CI", []), ("FLINKCOMPAT_NO_SKIPS", ["--numprocesses", "2"])],
    )
    def test_a_skip_fails(
        self, suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variable: str, workers: list[str]
    ) -> None:
        monkeypatch.setenv(variable, "true")
        result = suite.runpytest_subprocess(*workers)
        result.assert_outcomes(passed=1, skipped=1)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["FAILED: 1 skipped*"])

    def test_a_module_skipped_on_import_fails(self, suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "true")
        suite.makepyfile(test_skips="import pytest\npytest.importorskip('no_such_module')")
        assert suite.runpytest_subprocess().ret == pytest.ExitCode.TESTS_FAILED

    def test_elsewhere_a_skip_is_a_skip(self, suite: pytest.Pytester) -> None:
        assert suite.runpytest_subprocess().ret == pytest.ExitCode.OK

    def test_without_skips_ci_passes(self, suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "true")
        assert suite.runpytest_subprocess("test_passes.py").ret == pytest.ExitCode.OK
