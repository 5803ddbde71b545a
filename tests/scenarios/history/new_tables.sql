-- Changes after which a job reads a table that it did not read before; see cases.sql.
--- given
CREATE TABLE lefts (id STRING, k STRING, lv BIGINT, lc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_lefts', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE rights (id STRING, k STRING, rv BIGINT, rc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_rights', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a table is joined
-- computed: all
--- old
SELECT id, lv FROM lefts;
--- new
SELECT l.id, r.id AS other, lv, rv FROM lefts AS l JOIN rights AS r ON l.k = r.k;
--- case: a table is joined below an aggregation
-- computed: all; all
--- old
SELECT k, SUM(lv) FROM lefts GROUP BY k;
--- new
SELECT l.k, SUM(lv), SUM(rv) FROM lefts AS l JOIN rights AS r ON l.k = r.k GROUP BY l.k;
--- case: rows of a table follow those of another one
-- computed: all
--- old
SELECT k, SUM(lv), COUNT(*) FROM lefts GROUP BY k;
--- new
SELECT k, SUM(v), COUNT(*) FROM (SELECT k, lv AS v FROM lefts UNION ALL SELECT k, rv FROM rights) GROUP BY k;
--- case: a table comes third in a join
-- computed: all; all
--- old
SELECT l.id, l.lv, s.lc FROM lefts AS l JOIN lefts AS s ON l.id = s.id;
--- new
SELECT l.id, l.lv, s.lc, r.rv FROM lefts AS l JOIN lefts AS s ON l.id = s.id JOIN rights AS r ON r.k = s.k;
