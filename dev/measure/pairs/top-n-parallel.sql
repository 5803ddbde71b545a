-- area: Window Top-N at parallelism 2
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/busy', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: n-raised
-- about: N 2 → 3
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 3;
--- case: n-lowered
-- about: N 2 → 1
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 1;
--- case: n-respelled
-- about: rk <= 2 → rk < 3
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk < 3;
--- case: direction
-- about: ORDER BY s DESC → ASC
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s ASC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: order-column
-- about: ORDER BY s → m, both BIGINT
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY m DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: rank-column-removed
-- about: the rank no longer in the output
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: rank-column-added
-- about: the rank in the output
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: partition-reordered
-- about: PARTITION BY window_end, window_start
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end, window_start ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: window-keys-reordered
-- about: GROUP BY window_end, window_start, a
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY window_end, window_start, a
  )
)
WHERE rk <= 2;
--- case: window-start-out
-- about: window_start in the output
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_start, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: metric-added
-- about: MIN(d) added to what is ranked
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m, MIN(d) AS l
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: sum-to-max
-- about: SUM(b) → MAX(b) below the rank
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, MAX(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: size-longer
-- about: window 1 min → 2 min
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: metrics-swapped
-- about: SUM(b), MAX(d) swapped in what is ranked
-- settings-old: parallelism.default=2
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, MAX(d) AS m, SUM(b) AS s
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- case: from-one
-- about: parallelism 1 → 2
-- settings-old: parallelism.default=1
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
--- new
SELECT a, window_end, s, m, rk
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rk
  FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
)
WHERE rk <= 2;
