-- Orders per item and minute, with the average price: one more output column.
SET 'parallelism.default' = '1';
SET 'execution.checkpointing.interval' = '1 s';

CREATE TABLE orders (
  item STRING,
  price BIGINT,
  ordered_at TIMESTAMP(3),
  WATERMARK FOR ordered_at AS ordered_at - INTERVAL '30' SECOND
) WITH (
  'connector' = 'filesystem',
  'path' = '${LIVE}',
  'source.monitor-interval' = '300 ms',
  'format' = 'csv'
);

CREATE TABLE totals (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  item STRING,
  total BIGINT,
  orders BIGINT,
  average BIGINT
) WITH (
  'connector' = 'filesystem',
  'path' = '${TOTALS}',
  'format' = 'csv'
);

INSERT INTO totals
SELECT window_start, window_end, item, SUM(price) AS total, COUNT(*) AS orders, SUM(price) / COUNT(*) AS average
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ordered_at), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, item;
