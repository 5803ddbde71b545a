-- The same metrics in a different order: the highest price comes first.
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
  'format' = 'csv',
  'csv.ignore-parse-errors' = 'true', 'csv.null-literal' = 'n/a'
);

CREATE TABLE totals (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  item STRING,
  highest BIGINT,
  total BIGINT,
  orders BIGINT,
  average BIGINT
) WITH (
  'connector' = 'filesystem',
  'path' = '${TOTALS_5_MINUTES}',
  'format' = 'csv'
);

INSERT INTO totals
SELECT
  window_start, window_end, item,
  MAX(price) AS highest, SUM(price) AS total, COUNT(*) AS orders, SUM(price) / COUNT(*) AS average
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ordered_at), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, item;
