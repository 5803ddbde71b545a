"""What names a script: a file, standard input, a file of a Git revision, and none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.support.cli.command import BROKEN, INCOMPATIBLE, SECRETIVE, TABLES, V1, Run, report_of, save


def test_a_side_may_be_a_file_of_a_revision(run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("check", "HEAD:jobs/orders.sql", "jobs/orders.sql", "--engine", "flink")
    assert result.code == 1
    assert "HEAD:jobs/orders.sql -> jobs/orders.sql, open-source Flink 2.3" in result.out
    assert "before HEAD:jobs/orders.sql:7:6" in result.out
    data = report_of(run("check", "HEAD:jobs/orders.sql", "HEAD:jobs/orders.sql", "--format", "json"))
    assert (data["outcome"], data["old"]["source"]) == ("compatible", "HEAD:jobs/orders.sql")
    subprocess.run(["git", "add", "jobs/orders.sql"], check=True)
    assert run("check", "HEAD:jobs/orders.sql", ":jobs/orders.sql").code == 1, "what is staged"
    subprocess.run(["git", "reset", "--quiet"], check=True, env={**os.environ, "GIT_INDEX_FILE": ".git/other"})
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/other")
    assert run("check", "HEAD:jobs/orders.sql", ":jobs/orders.sql").code == 0, "what a hook is told to be staged"
    monkeypatch.chdir(repository / "jobs")
    assert run("check", "HEAD:./orders.sql", "orders.sql").code == 1


def test_a_side_may_be_standard_input(run: Run) -> None:
    save(old=V1)
    result = run("check", "old.sql", "-", "--engine", "flink", stdin=INCOMPATIBLE.encode())
    assert result.code == 1
    assert "old.sql -> <stdin>, open-source Flink 2.3" in result.out
    assert run("check", "-", "old.sql", stdin=b"\xef\xbb\xbf" + V1.encode()).code == 0
    for stdin, words in ((b"", "contains no SQL statement"), (b"\xff", "is not UTF-8"), (b"SELECT FROM;", "Expected")):
        for sides in (("old.sql", "-"), ("-", "old.sql")):
            result = run("check", *sides, stdin=stdin)
            assert (result.code, result.out) == (2, "")
            assert words in result.err
            assert "<stdin>" in result.err
    assert "contains one script" in run("check", "-", "-", stdin=V1.encode()).err


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (("HEAD~3:jobs/orders.sql", "jobs/orders.sql"), "there is no such file, and no revision 'HEAD~3'"),
        (("nosuch:orders.sql", "jobs/orders.sql"), "no revision 'nosuch'"),
        (("--output=x:y", "jobs/orders.sql"), "No such option"),
        (("HEAD:jobs", "jobs/orders.sql"), "HEAD:jobs: is no file in that revision but a folder"),
        (("HEAD:job/orders.sql", "jobs/orders.sql"), "there is no such file; if the script was added or deleted"),
        (("jobs/orders.sql", "HEAD:jobs/other.sql"), "there is no such file; if the script was added or deleted"),
        (("jobs/other.sql", "jobs/orders.sql"), "there is no such file; if the script was added or deleted"),
        (("HEAD:jobs/job.py", "jobs/job.py"), "check out the revision (git worktree add"),
        (("s3://bucket/orders.sql", "jobs/orders.sql"), "s3://bucket/orders.sql: cannot be read"),
        (("/dev/null", "/dev/null"), "there is no script on either side"),
        (("HEAD:none.sql", "none.sql"), "there is no script on either side"),
    ],
)
def test_a_name_that_stands_for_no_script(run: Run, repository: Path, sides: tuple[str, str], words: str) -> None:
    result = run("check", *sides)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_a_revision_needs_git_and_a_repository(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    save(new=V1)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("GIT_DIR", raising=False)
    result = run("check", "HEAD:new.sql", "new.sql")
    assert (result.code, result.out) == (2, "")
    assert "REV:path needs a Git repository, but this folder is not in one" in result.err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "needs git, which is not installed" in run("check", "HEAD:new.sql", "new.sql").err
    Path("a:b.sql").write_text(V1, encoding="utf-8")
    assert run("check", "a:b.sql", "new.sql").code == 0, "a file comes before a revision"


@pytest.mark.parametrize("style", ["text", "markdown", "json"])
def test_a_new_deployment_is_only_read(run: Run, repository: Path, snapshot: SnapshotAssertion, style: str) -> None:
    save(**{"jobs/clicks": V1})
    result = run("check", "/dev/null", "jobs/clicks.sql", "--engine", "flink", "--format", style)
    assert (result.code, result.err) == (0, "")
    if style == "json":
        assert [finding["rule"] for finding in report_of(result)["findings"]] == ["deployment-added"]
    else:
        assert result.out == snapshot
    assert run("check", "HEAD:jobs/clicks.sql", "jobs/clicks.sql", "--fail-on", "partial").code == 0
    assert "NEW DEPLOYMENT on open-source Flink 2.3 and on VVR" in run("check", "/dev/null", "jobs/clicks.sql").out
    save(**{"jobs/clicks": BROKEN})
    broken = run("check", "/dev/null", "jobs/clicks.sql")
    assert (broken.code, broken.out) == (2, "")
    save(**{"jobs/clicks": SECRETIVE})
    assert run("check", "/dev/null", "jobs/clicks.sql").code == 2
    save(**{"jobs/clicks": TABLES})
    assert "no INSERT and no SELECT" in run("check", "/dev/null", "jobs/clicks.sql").err
    save(empty="")
    assert "pass /dev/null as OLD" in run("check", "empty.sql", "jobs/orders.sql").err, "it may be a failed redirection"


@pytest.mark.parametrize("style", ["text", "markdown", "json"])
def test_a_deleted_script_fails_the_gate(run: Run, repository: Path, snapshot: SnapshotAssertion, style: str) -> None:
    given = ("--format", style, "--engine", "flink")
    result = run("check", "jobs/orders.sql", "/dev/null", *given)
    assert (result.code, result.err) == (1, "")
    if style == "json":
        assert [finding["rule"] for finding in report_of(result)["findings"]] == ["deployment-removed"]
    else:
        assert result.out == snapshot
    assert run("check", "jobs/orders.sql", "/dev/null", "--fail-on", "incompatible").code == 1
    assert run("check", "jobs/orders.sql", "/dev/null", "--fail-on", "never").code == 0
    save(empty="\n", broken=BROKEN)
    assert run("check", "broken.sql", "/dev/null").code == 1, "what is gone need not be read"
    assert "DELETED" in run("check", "jobs/orders.sql", "empty.sql").out
    Path("jobs/orders.sql").unlink()
    deleted = run("check", "HEAD:jobs/orders.sql", "jobs/orders.sql")
    assert deleted.code == 1
    assert deleted.out.startswith("DELETED on open-source Flink 2.3 and on VVR")


def test_rehearse_takes_the_same_names(run: Run, repository: Path) -> None:
    given = ("--job-id", "a" * 32, "--gateway", "http://127.0.0.1:9", "--jobmanager", "http://127.0.0.1:9")
    assert "does not answer" in run("rehearse", "HEAD:jobs/orders.sql", "-", *given, stdin=V1.encode()).err
    assert "no revision 'nosuch'" in run("rehearse", "nosuch:jobs/orders.sql", "jobs/orders.sql", *given).err
    assert "cannot be read" in run("rehearse", "/dev/null", "jobs/orders.sql", *given).err
    assert "contains one script" in run("rehearse", "-", "-", *given).err
