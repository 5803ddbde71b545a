"""Jars from Maven Central and Flink from PyPI, pinned in ``jars.toml``, checked by SHA-256 and cached."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pooch

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.model.installation import cache_directory

_TIMEOUT_SECONDS = 60
_ATTEMPTS = 3


class JarError(DeployError):
    """Raised if a jar is not pinned, cannot be fetched, or differs from the pinned file."""


@dataclass(frozen=True)
class Jar:
    """A pinned jar with its Maven coordinates, address and SHA-256 (64 hex digits)."""

    name: str
    coordinates: str
    url: str
    sha256: str

    @property
    def filename(self) -> str:
        return self.url.rsplit("/", 1)[-1]


def pinned() -> Mapping[str, Jar]:
    table = _pins()
    return {
        name: Jar(name, row["coordinates"], table["repository"] + row["path"], row["sha256"])
        for name, row in table["jars"].items()
    }


def flink(release: str) -> Jar:
    """The archive of all jars of one Flink release. Maven Central does not offer this archive."""
    row = _pins()["flink"][release]
    return Jar("flink", f"apache-flink-libraries {release}", row["url"], row["sha256"])


def _pins() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("jars.toml").read_text(encoding="utf-8"))


def fetch(name: str, *, progress: bool | None = None) -> Path:
    """The local file of the jar ``name``, downloaded on first use.

    The download respects the proxy and CA variables of the environment (``HTTPS_PROXY``, ``REQUESTS_CA_BUNDLE`` …). If
    ``progress`` is None, a progress bar is shown only on a terminal. Raises JarError if the name is unknown, the
    download fails, or the file differs from the pinned file.
    """
    jars = pinned()
    if name not in jars:
        raise JarError(f"no jar {name!r} is pinned in jars.toml. Pinned jars: {', '.join(sorted(jars))}")
    return fetch_jar(jars[name], progress=progress)


def cached(name: str) -> Path | None:
    """The local file of the jar ``name``, or None if the jar was not fetched before."""
    file = cache_directory() / "jars" / pinned()[name].filename
    return file if file.is_file() else None


def fetch_jar(jar: Jar, *, progress: bool | None = None) -> Path:
    """Fetch a jar as ``fetch`` does. An interrupted download resumes in this run or in the next."""
    folder = cache_directory() / "jars"
    show = sys.stderr.isatty() if progress is None else progress
    pooch.get_logger().setLevel("WARNING")

    def download(url: str, target: str, mirror: pooch.Pooch) -> None:
        part = folder / f"{jar.filename}.part"
        with part.open("ab") as file:
            begun = {"Range": f"bytes={file.tell()}-"} if file.tell() else {}
            try:
                pooch.HTTPDownloader(progressbar=show, timeout=_TIMEOUT_SECONDS, headers=begun)(url, file, mirror)
            except OSError as error:
                if getattr(error, "response", None) is not None:  # the server rejected the Range header
                    part.unlink()
                raise
        part.replace(target)

    source = pooch.create(
        path=folder,
        base_url="",
        registry={jar.filename: f"sha256:{jar.sha256}"},
        urls={jar.filename: jar.url},
        retry_if_failed=_ATTEMPTS - 1,
    )
    try:
        return Path(source.fetch(jar.filename, downloader=download))
    except ValueError as error:  # pooch raises ValueError if the hash differs
        raise JarError(
            f"{jar.coordinates} from {jar.url} is not the pinned file (expected SHA-256 {jar.sha256}). A proxy may "
            f"have answered instead, or the cached copy may be damaged. Check the answer of {jar.url}, then empty "
            f"{folder}"
        ) from error
    except OSError as error:  # errors of the library ``requests`` are OSErrors
        raise JarError(
            f"cannot fetch {jar.coordinates} from {jar.url}: {_first_line(error)}. Check the network and the "
            f"HTTPS_PROXY and REQUESTS_CA_BUNDLE variables, or put the file into {folder} manually"
        ) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:300] if lines else type(error).__name__


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the named jars, or all pinned jars, and print the paths of their files."""
    parser = argparse.ArgumentParser(prog="python -m airflow_flinkcompat.local_flink.jars", description=fetch.__doc__)
    parser.add_argument("names", nargs="*", help="jars to fetch (default: all pinned jars)")
    options = parser.parse_args(arguments)
    try:
        for name in options.names or sorted(pinned()):
            print(fetch(name, progress=True))
    except JarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
