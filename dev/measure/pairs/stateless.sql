-- area: queries without state
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed
--- old
SELECT a, b FROM orders;
--- new
SELECT a, b FROM orders;
--- case: column-added
-- about: one more column
--- old
SELECT a, b FROM orders;
--- new
SELECT a, b, d FROM orders;
--- case: column-computed
-- about: a column is computed
--- old
SELECT a, b FROM orders;
--- new
SELECT a, b * 2 FROM orders;
--- case: filter-added
-- about: a filter comes
--- old
SELECT a, b FROM orders;
--- new
SELECT a, b FROM orders WHERE b > 4;
--- case: filter-changed
-- about: the filter asks for less
--- old
SELECT a, b FROM orders WHERE b > 4;
--- new
SELECT a, b FROM orders WHERE b > 1;
--- case: filter-removed
-- about: the filter goes
--- old
SELECT a, b FROM orders WHERE b > 4;
--- new
SELECT a, b FROM orders;
