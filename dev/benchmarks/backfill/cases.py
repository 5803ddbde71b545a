"""What is computed: one table of orders, and one windowed sum over it in everybody's words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FIRST = "2024-01-01 00:00:00"
HOURS = 4
COLUMNS = "ts TIMESTAMP(3), k BIGINT, v BIGINT"
RESULTS = "k BIGINT, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, total BIGINT, most BIGINT"


@dataclass(frozen=True)
class Case:
    """One query over files of one ``format``; ``slide`` and ``size`` in minutes, ``slide`` 0 for TUMBLE."""

    name: str
    kind: str
    slide: int
    size: int
    rows: int = 20_000_000
    keys: int = 1_000
    ordered: bool = False
    format: str = "parquet"

    @property
    def data(self) -> str:
        """The name of the data set, cases of one share it."""
        return f"{self.rows}-rows-{self.keys}-keys{'-in-order' if self.ordered else ''}-{self.format}"

    @property
    def window(self) -> str:
        """The windowing function as Flink SQL."""
        lengths = [f"INTERVAL '{minutes}' MINUTE" for minutes in (self.slide, self.size) if minutes]
        return f"TABLE({self.kind}(TABLE orders, DESCRIPTOR(ts), {', '.join(lengths)}))"

    def script(self, source: Path, sink: Path) -> str:
        """The Flink SQL script, for Flink and for the backfill."""
        utc = ", 'parquet.utc-timezone' = 'true'" if self.format == "parquet" else ""
        return (
            f"CREATE TABLE orders ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '30' SECOND) "
            f"WITH ('connector' = 'filesystem', 'path' = '{source}', 'format' = '{self.format}'{utc});\n"
            f"CREATE TABLE results ({RESULTS}) WITH ('connector' = 'filesystem', 'path' = '{sink}', "
            "'format' = 'parquet', 'parquet.utc-timezone' = 'true');\n"
            "INSERT INTO results SELECT k, window_start, window_end, COUNT(*), SUM(v), MAX(v) "
            f"FROM {self.window} GROUP BY k, window_start, window_end;\n"
        )

    def relation(self, source: Path) -> str:
        """The rows of a folder in DuckDB's SQL."""
        if self.format == "parquet":
            return f"'{source}/*.parquet'"
        columns = "{'ts': 'TIMESTAMP', 'k': 'BIGINT', 'v': 'BIGINT'}"
        return f"read_csv('{source}/*.csv', columns = {columns}, header = false, auto_detect = false)"

    def duckdb(self, source: Path, sink: Path) -> str:
        """The same as DuckDB computes it best: partial results per slice, then the windows."""
        slice_ = self.slide or self.size
        start = f"time_bucket(INTERVAL {self.size} MINUTE, slice)"
        end = f"{start} + to_minutes((i + 1) * {slice_})"
        partials = (
            f"SELECT k, time_bucket(INTERVAL {slice_} MINUTE, ts) AS slice, count(*) AS n, sum(v) AS total, "
            f"max(v) AS most FROM {self.relation(source)} GROUP BY ALL"
        )
        length = {
            "TUMBLE": f"SELECT k, slice AS s, slice + INTERVAL {self.size} MINUTE AS e, n, total, most FROM p",
            "HOP": (
                f"SELECT k, slice - to_minutes(i * {slice_}) AS s, slice - to_minutes(i * {slice_}) "
                f"+ INTERVAL {self.size} MINUTE AS e, n, total, most "
                f"FROM p, range({self.size // slice_}) AS r(i)"
            ),
            "CUMULATE": (
                f"SELECT k, {start} AS s, {end} AS e, n, total, most "
                f"FROM p, range({self.size // slice_}) AS r(i) WHERE slice < {end}"
            ),
        }[self.kind]
        return (
            f"COPY (WITH p AS ({partials}), w AS ({length}) SELECT k, s AS window_start, e AS window_end, "
            "CAST(sum(n) AS BIGINT) AS n, CAST(sum(total) AS BIGINT) AS total, max(most) AS most FROM w GROUP BY ALL) "
            f"TO '{sink}' (FORMAT parquet, PER_THREAD_OUTPUT)"
        )


CASES = (
    Case("TUMBLE 10 min", "TUMBLE", 0, 10),
    Case("HOP 2/10 min", "HOP", 2, 10),
    Case("CUMULATE 5/60 min", "CUMULATE", 5, 60),
    Case("HOP 2/10 min, sparse", "HOP", 2, 10, keys=1_000_000),
    Case("HOP 2/10 min, rows in order of time", "HOP", 2, 10, ordered=True),
    Case("HOP 2/10 min, 8M rows of csv", "HOP", 2, 10, rows=8_000_000, format="csv"),
)
LARGE = Case("HOP 2/10 min, 100M rows", "HOP", 2, 10, rows=100_000_000)
