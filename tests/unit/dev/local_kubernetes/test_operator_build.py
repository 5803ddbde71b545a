"""An operator that is built of its source: what is kept of it, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.local_flink.jars import JarError
from dev.local_kubernetes import flink_operator

POM = '<project xmlns="http://maven.apache.org/POM/4.0.0"><version>9.9.9</version></project>'
# What a Maven of its place does to the tree it stands in: jars, and CRDs that are not those of the release.
BUILT = """\
#!/bin/sh
echo changed > helm/flink-kubernetes-operator/crds/flinkdeployments.yml
for each in flink-kubernetes-standalone/target/flink-kubernetes-standalone-9.9.9.jar \\
  flink-kubernetes-operator/target/flink-kubernetes-operator-9.9.9-shaded.jar \\
  flink-kubernetes-operator/target/log4j/log4j.jar
do mkdir -p "$(dirname "$each")"; echo jar > "$each"; done
"""
CRD = """\
spec:
  names: {kind: FlinkDeployment}
  versions:
  - schema: {openAPIV3Schema: {properties: {spec: {properties: {flinkVersion: {enum: [v1_9, v1_20, v2_1]}}}}}}
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of a release, and a cache of its own."""
    monkeypatch.setenv("FLINKCOMPAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    crds = tmp_path / "source" / "helm" / "flink-kubernetes-operator" / "crds"
    crds.mkdir(parents=True)
    (crds / "flinkdeployments.yml").write_text(CRD)
    (tmp_path / "source" / "pom.xml").write_text(POM)
    return tmp_path / "source"


def maven(folder: Path, script: str) -> None:
    (folder / "mvn").write_text(script)
    (folder / "mvn").chmod(0o755)


def test_what_was_built_is_run_with_the_crds_of_its_release(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maven(tmp_path, BUILT)
    assert flink_operator.main(["--source", str(source)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "cache" / "operator" / "9.9.9")
    assert [jar.name for jar in flink_operator.class_path("9.9.9")] == [
        "flink-kubernetes-standalone-9.9.9.jar",
        "flink-kubernetes-operator-9.9.9-shaded.jar",
        "log4j.jar",
    ]
    assert flink_operator.flink_version("9.9.9") == "v1_20"
    assert [each.name for each in (tmp_path / "cache" / "operator").iterdir()] == ["9.9.9"]
    assert (source / "helm/flink-kubernetes-operator/crds/flinkdeployments.yml").read_text() == CRD


def test_a_build_that_fails_leaves_nothing(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maven(tmp_path, "#!/bin/sh\nexit 1\n")
    assert flink_operator.main(["--source", str(source)]) == 1
    assert "returned non-zero exit status 1" in capsys.readouterr().err
    assert list((tmp_path / "cache" / "operator").iterdir()) == []


def test_what_was_not_built_names_the_command(source: Path) -> None:
    with pytest.raises(JarError, match=r"operator 9\.9\.9 has no lock and was not built: .* --source FOLDER"):
        flink_operator.class_path("9.9.9")


def test_a_folder_that_is_no_source_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert flink_operator.main(["--source", str(tmp_path)]) == 1
    assert str(tmp_path / "pom.xml") in capsys.readouterr().err
