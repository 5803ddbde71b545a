-- As cases.sql, of metrics, keys and conditions that are computed: a plan calls what they are computed into as it likes.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), twice AS b * 2, WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE priced (
  a STRING, b BIGINT, c STRING, d DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a metric of a product is added
-- computed: MAX(((b + d) * 3)), SUM((COALESCE(d, 0) * b))
--- old
SELECT a, SUM(b * d) AS s, COUNT(*) AS n FROM orders GROUP BY a;
--- new
SELECT a, SUM(b * d) AS s, COUNT(*) AS n, MAX((b + d) * 3) AS m, SUM(COALESCE(d, 0) * b) AS t FROM orders GROUP BY a;
--- case: metrics that differ in a constant are added
-- computed: SUM(CASE((c = 'q'), b, 0)), COUNT(CASE((b > 3), c, NULL))
--- old
SELECT a, SUM(CASE WHEN c = 'p' THEN b ELSE 0 END) AS p FROM orders GROUP BY a;
--- new
SELECT a, SUM(CASE WHEN c = 'p' THEN b ELSE 0 END) AS p, SUM(CASE WHEN c = 'q' THEN b ELSE 0 END) AS q,
  COUNT(CASE WHEN b > 3 THEN c END) AS n
FROM orders GROUP BY a;
--- case: computed keys behind a condition
-- computed: all
--- old
SELECT c, UPPER(a) AS u, COUNT(*) AS n, SUM(twice) AS s FROM orders WHERE b > 1 GROUP BY UPPER(a), c;
--- new
SELECT c, a || '!' AS u, COUNT(*) AS n, SUM(twice) AS s, AVG(CAST(d AS DOUBLE)) AS v FROM orders WHERE b > 1 GROUP BY a || '!', c;
--- case: windows of computed values
-- computed: SUM((CAST(d AS DECIMAL(12, 2)) / 4)), MIN(LOWER(c))
--- old
SELECT a, window_end, SUM(b * 2 + 1) AS s FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b * 2 + 1) AS s, SUM(CAST(d AS DECIMAL(12, 2)) / 4) AS q, MIN(LOWER(c)) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: distinct computed values with conditions
-- computed: COUNT(DISTINCT (b + d)), SUM(b) FILTER (WHERE ((c LIKE 'p%') AND (d > 2))), distinct values of (b + d)
--- old
SELECT a, SUM(d) AS s FROM orders GROUP BY a;
--- new
SELECT a, SUM(d) AS s, COUNT(DISTINCT b + d) AS n, SUM(b) FILTER (WHERE c LIKE 'p%' AND d > 2) AS f FROM orders GROUP BY a;
--- case: windows of other computed keys
-- computed: all
--- old
SELECT a, window_end, COUNT(*) AS n FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT SUBSTRING(a, 1, 1) AS k, b + 1 AS l, window_end, COUNT(*) AS n, SUM(IF(d > 3, d, b)) AS s
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)) GROUP BY SUBSTRING(a, 1, 1), b + 1, window_start, window_end;
--- case: sums of decimals in windows
-- computed: SUM(d), COUNT(d)
--- old
SELECT a, window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE priced, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, COUNT(*) AS n, SUM(d) AS s, AVG(d) AS v, COUNT(d) AS m FROM TABLE(TUMBLE(TABLE priced, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: distinct decimals
-- computed: COUNT(DISTINCT d), distinct values of d
--- old
SELECT a, COUNT(*) AS n FROM priced GROUP BY a;
--- new
SELECT a, COUNT(*) AS n, COUNT(DISTINCT d) AS v FROM priced GROUP BY a;
--- case: distinct large decimals
-- computed: COUNT(DISTINCT f), distinct values of f
--- old
SELECT a, COUNT(*) AS n FROM (SELECT a, CAST(d * 12345 AS DECIMAL(30, 5)) AS f FROM priced) GROUP BY a;
--- new
SELECT a, COUNT(*) AS n, COUNT(DISTINCT f) AS v FROM (SELECT a, CAST(d * 12345 AS DECIMAL(30, 5)) AS f FROM priced) GROUP BY a;
--- case: the greatest boolean and float
-- computed: MAX(f), MIN(o), MAX(p)
--- old
SELECT a, COUNT(*) AS n FROM (SELECT a, CAST(b AS FLOAT) AS f, b > 3 AS o, d > 2 AS p FROM priced) GROUP BY a;
--- new
SELECT a, COUNT(*) AS n, MAX(f) AS x, MIN(o) AS y, MAX(p) AS z FROM (SELECT a, CAST(b AS FLOAT) AS f, b > 3 AS o, d > 2 AS p FROM priced) GROUP BY a;
