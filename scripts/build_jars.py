"""Build the jars of this package: ``python scripts/build_jars.py FLINK_LIB``.

The same source and the same javac result in the same bytes: entries are sorted, uncompressed and have one fixed date.
The class files are for Java 8, so they run on every Java that Flink 1.19 and later support. FLINK_LIB is the ``lib``
folder of any Flink 1.19 or later; the choice does not affect the bytes. Uses only the standard library.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_DEPLOY = Path(__file__).parents[1] / "airflow_flinkcompat" / "deploy"
_MANIFEST = "META-INF/MANIFEST.MF"
_VERSION = b"Manifest-Version: 1.0\r\n"
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can hold


@dataclass(frozen=True)
class Jar:
    """A jar in this package with its only source; ``entries``: its files that are no classes."""

    path: Path
    source: str
    entries: Mapping[str, bytes]

    def build(self, library: Path, javac: str = "javac") -> dict[str, bytes]:
        """All files of the jar by name. Raises CalledProcessError with javac's errors."""
        return {**self.entries, **_compiled(self.path.with_name(self.source), library, javac)}


JARS = (
    Jar(
        _DEPLOY / "targets" / "runner" / "flinkcompat-sql-runner.jar",
        "SqlRunner.java",
        {_MANIFEST: _VERSION + b"Main-Class: flinkcompat.SqlRunner\r\n\r\n"},
    ),
    Jar(
        _DEPLOY / "flink" / "upserts" / "flinkcompat-upserts.jar",
        "Upserts.java",
        {
            _MANIFEST: _VERSION + b"\r\n",
            "META-INF/services/org.apache.flink.table.factories.Factory": (
                b"flinkcompat.Upserts$Connector\nflinkcompat.Upserts$Format\n"
            ),
        },
    ),
)


def _compiled(source: Path, library: Path, javac: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        command = [javac, "--release", "8", "-Xlint:-options", "-proc:none", "-encoding", "UTF-8", "-g:source,lines"]
        subprocess.run([*command, "-cp", f"{library}/*", "-d", folder, str(source)], check=True)
        classes = sorted(Path(folder).rglob("*.class"))
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in classes}


def write_jar(files: Mapping[str, bytes], jar: Path) -> None:
    """Write a jar with the manifest as its first entry."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(files.items(), key=lambda file: (file[0] != _MANIFEST, file)):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path, metavar="FLINK_LIB", help="the lib folder of a Flink 1.19 or later")
    options = parser.parse_args(arguments)
    if not list(options.library.glob("flink-dist-*.jar")):
        print(f"error: {options.library} contains no flink-dist-*.jar: pass the lib folder of a Flink", file=sys.stderr)
        return 2
    try:
        for jar in JARS:
            write_jar(jar.build(options.library), jar.path)
            print(jar.path)
    except FileNotFoundError as error:
        print(f"error: {error.filename} is not installed: install a JDK 17 (openjdk-17-jdk-headless)", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
