"""Native partials: DuckDB aggregates files to slices inside Spark's tasks; Spark combines the slices.

Each task receives whole files and returns the result of Spark's first aggregation, with far fewer rows and less work.
DuckDB computes only values that are exactly equal in Spark. Such values are plain columns of types that DuckDB and
Spark store in the same way, integer sums with Flink's overflow, decimal sums that cannot overflow, counts, minima and
maxima. Spark's operators compute all other values. If DuckDB fails, Spark's operators aggregate all rows, and the
reason is reported.
"""
