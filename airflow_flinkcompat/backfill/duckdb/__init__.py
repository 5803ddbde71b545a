"""Native partials: DuckDB in Spark's tasks aggregates files into slices; Spark combines and publishes.

Each task receives whole files and returns the result of Spark's own first aggregation (:mod:`slices`) with far fewer
rows and less work. Only exactly equal values are computed this way: plain columns of types that both
represent alike, sums of whole numbers with Flink's wrap-around, sums of decimals that cannot overflow, counts, minima
and maxima. Spark's operators compute anything else, and the rest after any failure of DuckDB; the reason is reported.
"""
