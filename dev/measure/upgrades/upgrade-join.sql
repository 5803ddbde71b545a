-- area: from one line of Flink to another: joins of two streams
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE clicks (  -- the watermark is held back
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/clicks', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: inner
-- about: INNER, nothing changed
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a;
--- case: full
-- about: FULL OUTER, nothing changed
--- old
SELECT o.a, o.b, k.a AS ka, k.b AS kb FROM orders AS o FULL OUTER JOIN clicks AS k ON o.a = k.a;
--- new
SELECT o.a, o.b, k.a AS ka, k.b AS kb FROM orders AS o FULL OUTER JOIN clicks AS k ON o.a = k.a;
--- case: left-groups
-- about: LEFT of two aggregations, nothing changed
--- old
SELECT o.a, o.s, k.m FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a) AS o
LEFT JOIN (SELECT a, MAX(b) AS m FROM clicks GROUP BY a) AS k ON o.a = k.a;
--- new
SELECT o.a, o.s, k.m FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a) AS o
LEFT JOIN (SELECT a, MAX(b) AS m FROM clicks GROUP BY a) AS k ON o.a = k.a;
--- case: interval
-- about: interval join, nothing changed
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k
ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 < k.b;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k
ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 < k.b;
--- case: interval-condition
-- about: the condition of an interval join asks for the opposite
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k
ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 < k.b;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k
ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 >= k.b;
--- case: inner-to-left
-- about: INNER becomes LEFT
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o LEFT JOIN clicks AS k ON o.a = k.a;
