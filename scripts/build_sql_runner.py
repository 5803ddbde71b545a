"""Build the SQL runner's jar: ``python scripts/build_sql_runner.py FLINK_LIB [--output JAR]``.

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
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "airflow_flinkcompat" / "deploy" / "targets" / "runner"
SOURCE = FOLDER / "SqlRunner.java"
JAR = FOLDER / "flinkcompat-sql-runner.jar"
_MANIFEST = b"Manifest-Version: 1.0\r\nMain-Class: flinkcompat.SqlRunner\r\n\r\n"
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can hold


def compile_source(library: Path, javac: str = "javac") -> dict[str, bytes]:
    """Class files by name in the jar. Raises CalledProcessError with javac's errors."""
    with tempfile.TemporaryDirectory() as folder:
        command = [javac, "--release", "8", "-Xlint:-options", "-proc:none", "-encoding", "UTF-8", "-g:source,lines"]
        subprocess.run([*command, "-cp", f"{library}/*", "-d", folder, str(SOURCE)], check=True)
        classes = sorted(Path(folder).rglob("*.class"))
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in classes}


def write_jar(classes: Mapping[str, bytes], jar: Path) -> None:
    """Write the jar with the manifest as its first entry."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {"META-INF/MANIFEST.MF": _MANIFEST, **dict(sorted(classes.items()))}.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path, metavar="FLINK_LIB", help="the lib folder of a Flink 1.19 or later")
    parser.add_argument("--output", type=Path, default=JAR)
    options = parser.parse_args(arguments)
    if not list(options.library.glob("flink-dist-*.jar")):
        print(f"error: {options.library} contains no flink-dist-*.jar: pass the lib folder of a Flink", file=sys.stderr)
        return 2
    try:
        write_jar(compile_source(options.library), options.output)
    except FileNotFoundError as error:
        print(f"error: {error.filename} is not installed: install a JDK 17 (openjdk-17-jdk-headless)", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        return error.returncode
    print(options.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
