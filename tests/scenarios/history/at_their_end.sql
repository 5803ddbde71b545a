-- Rankings of what windows hand on when they end; see cases.sql.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: the highest of a window have a metric more
-- computed: MAX(d); all
--- old
SELECT a, s FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n FROM (
    SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end
  )
) WHERE n <= 2;
--- new
SELECT a, s, m FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n FROM (
    SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end
  )
) WHERE n <= 2;
--- case: the highest of a window are of longer windows
-- computed: all; all
--- old
SELECT a, s FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n FROM (
    SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end
  )
) WHERE n <= 2;
--- new
SELECT a, s FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n FROM (
    SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '4' MINUTE))
    GROUP BY a, window_start, window_end
  )
) WHERE n <= 2;
--- case: a ranking comes above windows
-- computed: all
--- old
SELECT a, window_end, SUM(b) AS s
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '3' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, s FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC, a) AS n FROM (
    SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '3' MINUTE))
    GROUP BY a, window_start, window_end
  )
) WHERE n <= 1;
