-- As cases.sql, of two tables that are joined within an interval of event time.
--- given
CREATE TABLE lefts (  -- the watermark is held back
  id STRING, k STRING, lv BIGINT, lc STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/lefts', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE rights (
  id STRING, k STRING, rv BIGINT, rc STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/rights', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a join within an interval gets columns
-- computed: all
--- old
SELECT l.id, r.id AS other FROM lefts AS l JOIN rights AS r
ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '10' SECOND AND r.ts + INTERVAL '20' SECOND;
--- new
SELECT l.id, r.id AS other, lv, rv, lc, r.ts FROM lefts AS l JOIN rights AS r
ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '10' SECOND AND r.ts + INTERVAL '20' SECOND;
--- case: a join within an interval goes by another key
-- computed: all
--- old
SELECT l.id, r.id AS other FROM lefts AS l JOIN rights AS r
ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '1' MINUTE AND r.ts + INTERVAL '2' MINUTE;
--- new
SELECT l.id, r.id AS other, rv FROM lefts AS l JOIN rights AS r
ON l.lc = r.rc AND l.ts BETWEEN r.ts - INTERVAL '1' MINUTE AND r.ts + INTERVAL '2' MINUTE;
--- case: a join within an interval has another condition and lets more rows in
-- computed: all
--- old
SELECT l.id, r.id AS other FROM lefts AS l JOIN rights AS r
ON l.k = r.k AND l.ts > r.ts AND l.ts <= r.ts + INTERVAL '30' SECOND AND lv > 30;
--- new
SELECT l.id, r.id AS other, rc FROM lefts AS l JOIN rights AS r
ON l.k = r.k AND l.ts > r.ts AND l.ts <= r.ts + INTERVAL '30' SECOND AND lv > 5 AND lv * 7 < rv;
