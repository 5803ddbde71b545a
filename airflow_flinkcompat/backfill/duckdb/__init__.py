"""Native partials: DuckDB aggregates files to slices inside Spark's tasks; Spark combines the slices.

Each task receives whole files and returns the result of Spark's first aggregation, with far fewer rows and less work.
DuckDB computes only values that are exactly equal in Spark. These are plain columns of types that both store alike,
integer sums with Flink's overflow, decimal sums that cannot overflow, counts, minima and maxima. Spark's operators
compute all other values. Spark's operators also compute the rest if DuckDB fails; the reason is reported.
"""
