-- As cases.sql, over two tables.
--- given
CREATE TABLE lefts (id STRING, k STRING, lv BIGINT, lc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_lefts', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE rights (id STRING, k STRING, rv BIGINT, rc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_rights', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a join gets columns
-- computed: all
--- old
SELECT l.id, r.id AS other, lv FROM lefts AS l JOIN rights AS r ON l.k = r.k;
--- new
SELECT l.id, r.id AS other, lv, rv, lc FROM lefts AS l JOIN rights AS r ON l.k = r.k;
--- case: a join goes by another key
-- computed: all
--- old
SELECT l.id, r.id AS other FROM lefts AS l JOIN rights AS r ON l.k = r.k;
--- new
SELECT l.id, r.id AS other, l.k, r.k AS rk FROM lefts AS l JOIN rights AS r ON l.lc = r.rc;
--- case: rows without a match are kept
-- computed: all
--- old
SELECT l.id, r.id AS other FROM lefts AS l JOIN rights AS r ON l.k = r.k;
--- new
SELECT l.id, r.id AS other, rv FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k;
--- case: rows of both sides without a match are kept
-- computed: all
--- old
SELECT l.id, r.id AS other, lc FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k;
--- new
SELECT l.id, r.id AS other, lc FROM lefts AS l FULL JOIN rights AS r ON l.k = r.k;
--- case: a left join has a condition beside its key
-- computed: all
--- old
SELECT l.id, r.id AS other FROM lefts AS l JOIN rights AS r ON l.k = r.k;
--- new
SELECT l.id, r.id AS other, rv FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k AND r.rv > 10 * l.lv;
--- case: the condition of a full join is another
-- computed: all
--- old
SELECT l.id, r.id AS other FROM lefts AS l FULL JOIN rights AS r ON l.k = r.k AND r.rv > 10 * l.lv;
--- new
SELECT l.id, r.id AS other FROM lefts AS l FULL JOIN rights AS r ON l.k = r.k AND r.rv < 10 * l.lv;
