-- An example: sessions in files, summed for every ten minutes.
CREATE TABLE sessions (
  visitor STRING,
  seconds BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/sessions', 'format' = 'csv', 'source.monitor-interval' = '5 s');

CREATE TABLE sessions_totals (
  visitor STRING,
  total BIGINT,
  since TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/sessions_totals', 'format' = 'csv');

INSERT INTO sessions_totals
SELECT visitor, SUM(seconds), window_start
FROM TABLE(TUMBLE(TABLE sessions, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
GROUP BY visitor, window_start, window_end;
