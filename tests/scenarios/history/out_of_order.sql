-- As cases.sql, of rows that came out of order, none of them late.
--- given
CREATE TABLE orders (  -- the watermark is held back
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '90' SECOND
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/late', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: rows of one table that came out of order are joined by another key
-- computed: all
--- old
SELECT o.a, o.b, p.d FROM orders AS o JOIN orders AS p
ON o.c = p.c AND o.ts BETWEEN p.ts - INTERVAL '50' SECOND AND p.ts - INTERVAL '5' SECOND;
--- new
SELECT o.a, o.b, p.b AS other, p.d, p.ts FROM orders AS o JOIN orders AS p
ON o.a = p.a AND o.ts BETWEEN p.ts - INTERVAL '50' SECOND AND p.ts - INTERVAL '5' SECOND;
