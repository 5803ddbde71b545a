-- area: joins: conditions over both inputs, clocks
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
--- case: interval-unchanged
-- about: nothing changed, a condition over both inputs
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 < k.b;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 < k.b;
--- case: interval-condition-changed
-- about: a condition over both inputs of an interval join asks for the opposite
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 < k.b;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 >= k.b;
--- case: interval-condition-added
-- about: a condition over both inputs of an interval join comes
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE AND o.b * 200 < k.b;
--- case: interval-clock
-- about: an interval join by processing time instead of event time
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a AND o.ts BETWEEN k.ts - INTERVAL '1' MINUTE AND k.ts + INTERVAL '1' MINUTE;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o JOIN clicks AS k ON o.a = k.a AND o.p BETWEEN k.p - INTERVAL '1' MINUTE AND k.p + INTERVAL '1' MINUTE;
--- case: left-condition-changed
-- about: a condition over both inputs of a LEFT JOIN asks for the opposite
--- old
SELECT o.a, o.b, k.b AS kb FROM orders AS o LEFT JOIN clicks AS k ON o.a = k.a AND o.b * 200 >= k.b;
--- new
SELECT o.a, o.b, k.b AS kb FROM orders AS o LEFT JOIN clicks AS k ON o.a = k.a AND o.b * 200 < k.b;
