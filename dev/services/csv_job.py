"""A windowed job over csv files that keep arriving, and what its tests ask of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airflow_flinkcompat.model import JobSpec

SETTINGS = {"parallelism.default": "1", "execution.checkpointing.interval": "500 ms"}

_SCRIPT = """\
CREATE TABLE orders (
  customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = '{source}', 'format' = 'csv', 'source.monitor-interval' = '150 ms'
);
CREATE TABLE totals ({columns}) WITH ('connector' = 'filesystem', 'path' = '{sink}', 'format' = 'csv');
INSERT INTO totals
SELECT {select}
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)){where}
GROUP BY {keys};
"""


@dataclass(frozen=True)
class Side(JobSpec):
    """A proposed job, by default on the engine of the stand-in target."""

    settings: Mapping[str, str] = field(default_factory=lambda: dict(SETTINGS))
    engine: str = "flink"
    engine_version: str | None = "2.3.0"
    source: str = "orders.sql"

    @property
    def sha256(self) -> str:
        return self.digest()


@dataclass(frozen=True)
class Files:
    """The job's source and sink folders."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "orders"

    @property
    def sink(self) -> Path:
        return self.root / "totals"

    def arrive(self, name: str, rows: Sequence[tuple[str, int, str]]) -> None:
        """A new source file, complete the moment it is seen. Times are ``MM:SS`` within one hour."""
        self.source.mkdir(parents=True, exist_ok=True)
        hidden = self.source / f".{name}"
        hidden.write_text("".join(f"{who},{amount},2026-01-01 00:{at}\n" for who, amount, at in rows))
        hidden.rename(self.source / name)

    def rows(self) -> list[str]:
        """The rows the sink has committed, sorted."""
        committed = (path for path in self.sink.glob("**/*") if path.is_file() and path.name[0] not in "._")
        return sorted(line for path in committed for line in path.read_text().splitlines())

    def script(
        self,
        select: str = "customer, SUM(amount), window_start",
        columns: str = "customer STRING, total BIGINT, since TIMESTAMP(3)",
        keys: str = "customer, window_start, window_end",
        where: str = "",
        before: str = "",
    ) -> str:
        self.source.mkdir(parents=True, exist_ok=True)
        text = _SCRIPT.format(
            source=self.source.as_uri(), sink=self.sink.as_uri(), select=select, columns=columns, where=where, keys=keys
        )
        return before + text


def wait_for(condition: Callable[[], object], what: str, timeout: float = 300) -> None:
    """Until the condition holds, or the test fails: late, because machines are busy."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.1)
