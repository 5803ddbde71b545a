-- As begun.sql, of moments.
--- given
CREATE TABLE moments (
  a STRING, b BIGINT, c STRING, d BIGINT, ms BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/moments_twice', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: the first row by moments
-- settings: table.local-time-zone=Europe/Berlin
--- sql
SELECT a, b, d, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM moments) WHERE n = 1;
