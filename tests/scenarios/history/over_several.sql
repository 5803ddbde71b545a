-- As cases.sql, of aggregations over rows of two tables.
--- given
CREATE TABLE lefts (id STRING, k STRING, lv BIGINT, lc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_lefts', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE rights (id STRING, k STRING, rv BIGINT, rc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_rights', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE clicks (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/clicks', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a metric is added over a join
-- computed: MAX(lv)
--- old
SELECT l.k, COUNT(*) AS n, SUM(l.lv) AS s FROM lefts AS l JOIN rights AS r ON l.k = r.k GROUP BY l.k;
--- new
SELECT l.k, COUNT(*) AS n, SUM(l.lv) AS s, MAX(l.lv) AS m FROM lefts AS l JOIN rights AS r ON l.k = r.k GROUP BY l.k;
--- case: joined rows are grouped by another key
-- computed: all
--- old
SELECT l.id, r.id AS other, COUNT(*) AS n, SUM(l.lv) AS s FROM lefts AS l JOIN rights AS r ON l.k = r.k GROUP BY l.id, r.id;
--- new
SELECT r.id AS other, COUNT(*) AS n, AVG(l.lv) AS s, COUNT(DISTINCT l.id) AS d FROM lefts AS l JOIN rights AS r ON l.k = r.k GROUP BY r.id;
--- case: joined rows have conditions
-- computed: MIN(rv)
--- old
SELECT l.k, SUM(r.rv) FILTER (WHERE l.lv > 0) AS s, COUNT(*) AS n FROM lefts AS l JOIN rights AS r ON l.k = r.k AND l.lv <> r.rv WHERE l.lc IS NOT NULL GROUP BY l.k;
--- new
SELECT l.k, SUM(r.rv) FILTER (WHERE l.lv > 0) AS s, COUNT(*) AS n, MIN(r.rv) AS m FROM lefts AS l JOIN rights AS r ON l.k = r.k AND l.lv <> r.rv WHERE l.lc IS NOT NULL GROUP BY l.k;
--- case: tables follow one another
-- computed: MAX(lv), AVG(lv)
--- old
SELECT k, SUM(v) AS s FROM (SELECT k, lv AS v FROM lefts WHERE lv > 1 UNION ALL SELECT k, rv FROM rights) GROUP BY k;
--- new
SELECT k, SUM(v) AS s, MAX(v) AS m, AVG(v) AS a FROM (SELECT k, lv AS v FROM lefts WHERE lv > 1 UNION ALL SELECT k, rv FROM rights) GROUP BY k;
--- case: tables that follow one another are grouped by another key
-- computed: all
--- old
SELECT k, SUM(v) AS s FROM (SELECT k, id, lv AS v FROM lefts UNION ALL SELECT k, id, rv FROM rights) GROUP BY k;
--- new
SELECT id, COUNT(DISTINCT v) AS d, SUM(v) AS s FROM (SELECT k, id, lv AS v FROM lefts UNION ALL SELECT k, id, rv FROM rights) GROUP BY id;
--- case: a table is joined with itself
-- computed: all; MAX(lv0)
--- old
SELECT l.k, COUNT(*) AS n FROM lefts AS l JOIN lefts AS r ON l.id = r.k GROUP BY l.k;
--- new
SELECT l.k, COUNT(*) AS n, MAX(r.lv) AS m FROM lefts AS l JOIN lefts AS r ON l.id = r.k GROUP BY l.k;
--- case: rows of several tables are put into longer windows
-- computed: all
--- old
CREATE TEMPORARY VIEW visits AS SELECT a, b AS v, ts FROM orders UNION ALL SELECT c, d, ts FROM clicks;
SELECT a, window_end, SUM(v), COUNT(*) FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW visits AS SELECT a, b AS v, ts FROM orders UNION ALL SELECT c, d, ts FROM clicks;
SELECT a, window_end, SUM(v), COUNT(*) FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(ts), INTERVAL '3' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a view of several tables gets metrics
-- computed: MAX(b)
--- old
CREATE TEMPORARY VIEW everything AS SELECT a, b, ts FROM orders WHERE d > 1 UNION ALL SELECT a, b, ts FROM clicks;
SELECT a, window_end, SUM(b) FROM TABLE(HOP(TABLE everything, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)) GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW everything AS SELECT a, b, ts FROM orders WHERE d > 1 UNION ALL SELECT a, b, ts FROM clicks;
SELECT a, window_end, SUM(b), MAX(b) FROM TABLE(HOP(TABLE everything, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)) GROUP BY a, window_start, window_end;
