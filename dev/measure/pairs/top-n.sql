-- area: Window Top-N at parallelism 1
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed
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
--- case: window-keys-reordered
-- about: GROUP BY window_end, window_start, a
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
    SELECT window_end, window_start, a, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY window_end, window_start, a
  )
)
WHERE rk <= 2;
--- case: window-keys-swapped
-- about: GROUP BY a, window_end, window_start
-- settings-old: parallelism.default=1
-- settings-new: parallelism.default=1
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
    SELECT a, window_end, window_start, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_end, window_start
  )
)
WHERE rk <= 2;
