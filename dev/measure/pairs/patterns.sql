-- area: MATCH_RECOGNIZE
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed
--- old
SELECT * FROM orders MATCH_RECOGNIZE (
  PARTITION BY a ORDER BY ts
  MEASURES S.b AS sb, LAST(M.b) AS mb, U.b AS ub
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (S M+ U) WITHIN INTERVAL '1' HOUR
  DEFINE S AS S.b >= 5, M AS M.b < 5, U AS U.b >= 5
);
--- new
SELECT * FROM orders MATCH_RECOGNIZE (
  PARTITION BY a ORDER BY ts
  MEASURES S.b AS sb, LAST(M.b) AS mb, U.b AS ub
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (S M+ U) WITHIN INTERVAL '1' HOUR
  DEFINE S AS S.b >= 5, M AS M.b < 5, U AS U.b >= 5
);
--- case: within-shorter
-- about: WITHIN 90 → 60 seconds
--- old
SELECT * FROM orders MATCH_RECOGNIZE (
  PARTITION BY a ORDER BY ts
  MEASURES S.b AS sb, LAST(M.b) AS mb, U.b AS ub
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (S M+ U) WITHIN INTERVAL '90' SECOND
  DEFINE S AS S.b >= 5, M AS M.b < 5, U AS U.b >= 5
);
--- new
SELECT * FROM orders MATCH_RECOGNIZE (
  PARTITION BY a ORDER BY ts
  MEASURES S.b AS sb, LAST(M.b) AS mb, U.b AS ub
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (S M+ U) WITHIN INTERVAL '60' SECOND
  DEFINE S AS S.b >= 5, M AS M.b < 5, U AS U.b >= 5
);
--- case: within-much-shorter
-- about: WITHIN 99 → 20 seconds
--- old
SELECT * FROM orders MATCH_RECOGNIZE (
  PARTITION BY a ORDER BY ts
  MEASURES S.b AS sb, LAST(M.b) AS mb, U.b AS ub
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (S M+ U) WITHIN INTERVAL '99' SECOND
  DEFINE S AS S.b >= 5, M AS M.b < 5, U AS U.b >= 5
);
--- new
SELECT * FROM orders MATCH_RECOGNIZE (
  PARTITION BY a ORDER BY ts
  MEASURES S.b AS sb, LAST(M.b) AS mb, U.b AS ub
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (S M+ U) WITHIN INTERVAL '20' SECOND
  DEFINE S AS S.b >= 5, M AS M.b < 5, U AS U.b >= 5
);
