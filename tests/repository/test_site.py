"""The site: made of the pages as they stand, and not made where a link or a heading is dead."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def read(site: Path, page: str) -> str:
    return (site / page / "index.html").read_text(encoding="utf-8")


def test_every_page_and_every_rule_is_on_the_site(site: Path) -> None:
    pages = [page.relative_to(ROOT) for page in (ROOT / "docs").rglob("*.md")]
    places = [page.parent if page.name == "README.md" else page.with_suffix("") for page in pages]
    assert [place for place in places if not (site / place / "index.html").is_file()] == []


def test_what_pages_link_to_is_on_the_site(site: Path) -> None:
    assert 'href="../../dags/flink_deployments.py"' in read(site, "docs/airflow")
    for place in ("dags/flink_deployments.py", "airflow_flinkcompat/compat/report.schema.json", "action.yml"):
        assert (site / place).read_bytes() == (ROOT / place).read_bytes()


class TestWhatIsDead:
    """A small repository of its own, with the site's settings."""

    @pytest.fixture
    def repository(self, tmp_path: Path) -> Path:
        folder = tmp_path / "repository"
        (folder / "docs" / "sub").mkdir(parents=True)
        (folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / "site.py", folder / "scripts")
        text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[0]
        nav = yaml.safe_dump({"nav": ["README.md", {"Pages": "docs/sub/"}, {"More": ["docs/a.md"]}]})
        (folder / "mkdocs.yml").write_text(f"{text}\n{nav}", encoding="utf-8")
        (folder / "README.md").write_text("# Home\n\n[a](docs/a.md#there), [data](data/x.json)\n", encoding="utf-8")
        (folder / "docs" / "a.md").write_text("# A\n\n## There\n\n[up](../README.md)\n", encoding="utf-8")
        (folder / "docs" / "sub" / "b.md").write_text("# B\n\n[data](../../data/x.json)\n", encoding="utf-8")
        (folder / "data").mkdir()
        (folder / "data" / "x.json").write_text("{}\n", encoding="utf-8")
        return folder

    def test_where_nothing_is_dead_the_site_is_made(self, repository: Path, tmp_path: Path) -> None:
        done = build(repository, tmp_path / "site")
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "site" / "data" / "x.json").read_text() == "{}\n"
        assert 'href="docs/sub/b/"' in (tmp_path / "site" / "index.html").read_text()

    @pytest.mark.parametrize(
        ("page", "text", "said"),
        [
            ("docs/a.md", "[gone](gone.md)", "'gone.md'"),
            ("docs/a.md", "[gone](../data/gone.json)", "'../data/gone.json'"),
            ("docs/a.md", "[gone](../README.md#gone)", "'#gone'"),
            ("docs/c.md", "# A page that the navigation does not name", "docs/c.md"),
        ],
    )
    def test_what_is_dead_is_named(self, repository: Path, tmp_path: Path, page: str, text: str, said: str) -> None:
        place = repository / page
        place.write_text((place.read_text() if place.exists() else "") + f"\n## There\n\n{text}\n", encoding="utf-8")
        done = build(repository, tmp_path / "site")
        assert done.returncode == 1, done.stdout + done.stderr
        assert said in done.stdout + done.stderr
