-- area: a window over a window (window_time)
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: outer-size
-- about: outer 1 min → 2 min
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: inner-size
-- about: inner 20 s → 30 s
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: inner-sum-to-max
-- about: inner SUM(b) → MAX(b)
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, MAX(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: inner-column
-- about: inner SUM(b) → SUM(d)
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(d) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: inner-call-added
-- about: inner MIN(b) added, unused above
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s, MIN(b) AS l
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: outer-call-added
-- about: outer MIN(s) added
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s), MIN(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: outer-sum-to-max
-- about: outer SUM(s) → MIN(s)
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, MIN(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: outer-key-removed
-- about: outer key a removed
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
--- case: outer-having
-- about: outer HAVING added
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
HAVING SUM(s) > 20;
--- case: outer-to-hop
-- about: outer TUMBLE → HOP
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(HOP(TABLE part, DESCRIPTOR(part_time), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: inner-filter
-- about: inner filter value changed
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
WHERE d > 2
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
WHERE d > 1
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: view-inlined
-- about: the view written as a subquery
--- old
CREATE TEMPORARY VIEW part AS
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE part, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
WITH piece AS (
SELECT a, window_time AS part_time, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time
)
SELECT a, window_end, SUM(s), MAX(s)
FROM TABLE(TUMBLE(TABLE piece, DESCRIPTOR(part_time), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
