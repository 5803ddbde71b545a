-- Deduplication by processing time; see cases.sql.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, came AS PROCTIME()
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a deduplication that keeps the first row goes by another key
-- computed: all
--- old
SELECT a, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY came) AS rn FROM orders) WHERE rn = 1;
--- new
SELECT a, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY c ORDER BY came) AS rn FROM orders) WHERE rn = 1;
--- case: another condition lets rows into a deduplication that keeps the first one
-- computed: all
--- old
SELECT a, b FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY came) AS rn FROM orders WHERE b > 6
) WHERE rn = 1;
--- new
SELECT a, b FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY came) AS rn FROM orders WHERE d > 2
) WHERE rn = 1;
--- case: a deduplication that keeps the last row to come stores another column
-- computed: all
--- old
SELECT a, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY came DESC) AS rn FROM orders) WHERE rn = 1;
--- new
SELECT a, b, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY came DESC) AS rn FROM orders) WHERE rn = 1;
--- case: a deduplication that keeps the last row to come goes by another key
-- computed: all
--- old
SELECT a, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY came DESC) AS rn FROM orders) WHERE rn = 1;
--- new
SELECT a, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY c ORDER BY came DESC) AS rn FROM orders) WHERE rn = 1;
