-- area: from one line of Flink to another: GROUP BY
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: sum-max
-- about: SUM and MAX, nothing changed
--- old
SELECT a, SUM(b) AS s, MAX(c) AS m FROM orders GROUP BY a;
--- new
SELECT a, SUM(b) AS s, MAX(c) AS m FROM orders GROUP BY a;
--- case: avg
-- about: AVG of integers, nothing changed
--- old
SELECT a, AVG(b) AS m FROM orders GROUP BY a;
--- new
SELECT a, AVG(b) AS m FROM orders GROUP BY a;
--- case: distinct
-- about: COUNT(DISTINCT) and SUM(DISTINCT), nothing changed
--- old
SELECT a, COUNT(DISTINCT c) AS n, SUM(DISTINCT d) AS s FROM orders GROUP BY a;
--- new
SELECT a, COUNT(DISTINCT c) AS n, SUM(DISTINCT d) AS s FROM orders GROUP BY a;
--- case: filter
-- about: COUNT and SUM with FILTER, nothing changed
--- old
SELECT a, COUNT(*) AS n, SUM(b) FILTER (WHERE d > 1) AS s FROM orders GROUP BY a;
--- new
SELECT a, COUNT(*) AS n, SUM(b) FILTER (WHERE d > 1) AS s FROM orders GROUP BY a;
--- case: first-last
-- about: FIRST_VALUE, LAST_VALUE and LISTAGG, nothing changed
--- old
SELECT a, FIRST_VALUE(c) AS f, LAST_VALUE(c) AS l, LISTAGG(c) AS g FROM orders GROUP BY a;
--- new
SELECT a, FIRST_VALUE(c) AS f, LAST_VALUE(c) AS l, LISTAGG(c) AS g FROM orders GROUP BY a;
--- case: stddev
-- about: STDDEV_POP, nothing changed
--- old
SELECT a, STDDEV_POP(CAST(b AS DOUBLE)) AS m FROM orders GROUP BY a;
--- new
SELECT a, STDDEV_POP(CAST(b AS DOUBLE)) AS m FROM orders GROUP BY a;
--- case: global
-- about: no keys, nothing changed
--- old
SELECT COUNT(*) AS n, SUM(b) AS s FROM orders;
--- new
SELECT COUNT(*) AS n, SUM(b) AS s FROM orders;
--- case: over-updates
-- about: MAX and MIN over a GROUP BY, nothing changed
--- old
SELECT n, MAX(s) AS h, MIN(s) AS l
FROM (SELECT a, COUNT(*) AS n, SUM(b) AS s FROM orders GROUP BY a)
GROUP BY n;
--- new
SELECT n, MAX(s) AS h, MIN(s) AS l
FROM (SELECT a, COUNT(*) AS n, SUM(b) AS s FROM orders GROUP BY a)
GROUP BY n;
--- case: ttl
-- about: state with a time to live, nothing changed
-- settings-old: table.exec.state.ttl=1 h
-- settings-new: table.exec.state.ttl=1 h
--- old
SELECT a, SUM(b) AS s FROM orders GROUP BY a;
--- new
SELECT a, SUM(b) AS s FROM orders GROUP BY a;
--- case: having
-- about: HAVING, nothing changed
--- old
SELECT a, SUM(b) AS s FROM orders GROUP BY a HAVING SUM(b) > 10;
--- new
SELECT a, SUM(b) AS s FROM orders GROUP BY a HAVING SUM(b) > 10;
--- case: having-changed
-- about: the limit of HAVING changes
--- old
SELECT a, SUM(b) AS s FROM orders GROUP BY a HAVING SUM(b) > 10;
--- new
SELECT a, SUM(b) AS s FROM orders GROUP BY a HAVING SUM(b) > 20;
--- case: metric-added
-- about: a metric comes
--- old
SELECT a, SUM(b) AS s FROM orders GROUP BY a;
--- new
SELECT a, SUM(b) AS s, MAX(d) AS m FROM orders GROUP BY a;
--- case: metric-replaced
-- about: SUM of d instead of b
--- old
SELECT a, SUM(b) AS s FROM orders GROUP BY a;
--- new
SELECT a, SUM(d) AS s FROM orders GROUP BY a;
--- case: alias
-- about: the metric has another name
--- old
SELECT a, SUM(b) AS s, MAX(c) AS m FROM orders GROUP BY a;
--- new
SELECT a, SUM(b) AS total, MAX(c) AS m FROM orders GROUP BY a;
