-- An example: orders in files, summed for every ten minutes.
CREATE TABLE orders (
  customer STRING,
  amount BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/orders', 'format' = 'csv', 'source.monitor-interval' = '5 s');

CREATE TABLE orders_totals (
  customer STRING,
  total BIGINT,
  since TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/orders_totals', 'format' = 'csv');

INSERT INTO orders_totals
SELECT customer, SUM(amount), window_start
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
GROUP BY customer, window_start, window_end;
