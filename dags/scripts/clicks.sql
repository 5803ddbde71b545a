-- An example: clicks in files, summed for every ten minutes.
CREATE TABLE clicks (
  page STRING,
  millis BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/clicks', 'format' = 'csv', 'source.monitor-interval' = '5 s');

CREATE TABLE clicks_totals (
  page STRING,
  total BIGINT,
  since TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/clicks_totals', 'format' = 'csv');

INSERT INTO clicks_totals
SELECT page, SUM(millis), window_start
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
GROUP BY page, window_start, window_end;
