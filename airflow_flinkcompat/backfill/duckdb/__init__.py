"""Native partials: DuckDB in Spark's tasks aggregates files into slices; Spark combines and publishes.

Each task receives whole files and returns the result of Spark's own first aggregation (:mod:`slices`), a fraction of
the rows, at a fraction of the work. Only exactly equal values are computed this way: plain columns of types that both
represent alike, sums of whole numbers with Flink's wrap-around, sums of decimals that cannot overflow, counts, minima
and maxima. Anything else is left to Spark's operators, with the reason, and so is any failure of DuckDB.
"""
