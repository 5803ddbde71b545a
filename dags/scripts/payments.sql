-- An example: payments in files, summed for every ten minutes.
CREATE TABLE payments (
  account STRING,
  paid BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/payments', 'format' = 'csv', 'source.monitor-interval' = '5 s');

CREATE TABLE payments_totals (
  account STRING,
  total BIGINT,
  since TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/payments_totals', 'format' = 'csv');

INSERT INTO payments_totals
SELECT account, SUM(paid), window_start
FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
GROUP BY account, window_start, window_end;
