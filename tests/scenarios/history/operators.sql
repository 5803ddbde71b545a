-- As cases.sql, of operators over operators, of which some take rows back.
--- given
CREATE TABLE lefts (id STRING, k STRING, lv BIGINT, lc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_lefts', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE rights (id STRING, k STRING, rv BIGINT, rc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_rights', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE thirds (id STRING, k STRING, tv BIGINT, tc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_thirds', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a metric is added over rows that may have no match
-- computed: all; all
--- old
SELECT l.k, COUNT(*) AS n, SUM(r.rv) AS s FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k GROUP BY l.k;
--- new
SELECT l.k, COUNT(*) AS n, SUM(r.rv) AS s, AVG(r.rv) AS v, COUNT(DISTINCT r.rc) AS d
FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k GROUP BY l.k;
--- case: rows that may have no match are grouped by another key
-- computed: all
--- old
SELECT l.k, COUNT(*) AS n, SUM(r.rv) AS s FROM lefts AS l FULL JOIN rights AS r ON l.k = r.k AND l.lv < r.rv GROUP BY l.k;
--- new
SELECT r.k, COUNT(*) AS n, SUM(l.lv + 1) AS s FROM lefts AS l FULL JOIN rights AS r ON l.k = r.k AND l.lv < r.rv GROUP BY r.k;
--- case: groups are grouped by another metric
-- computed: all; all
--- old
SELECT n, COUNT(*) AS m, SUM(s) AS t FROM (SELECT k, COUNT(*) AS n, SUM(lv) AS s, MAX(lv) AS h FROM lefts GROUP BY k) GROUP BY n;
--- new
SELECT h, COUNT(*) AS m, SUM(s) AS t, AVG(n) AS v FROM (SELECT k, COUNT(*) AS n, SUM(lv) AS s, MAX(lv) AS h FROM lefts GROUP BY k) GROUP BY h;
--- case: more columns of three joined tables
-- computed: all; all
--- old
SELECT l.id, r.rv FROM lefts AS l JOIN rights AS r ON l.k = r.k JOIN thirds AS o ON r.k = o.k;
--- new
SELECT l.id, l.lv, r.rv, o.tv FROM lefts AS l JOIN rights AS r ON l.k = r.k JOIN thirds AS o ON r.k = o.k;
--- case: a third table is joined by another key, with or without a match
-- computed: all; all
--- old
SELECT l.id, r.rv, o.tv FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k LEFT JOIN thirds AS o ON r.k = o.k;
--- new
SELECT l.id, r.rv, o.tv FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k LEFT JOIN thirds AS o ON l.lc = o.tc;
--- case: groups are joined by another key
-- computed: all; all
--- old
SELECT l.id, g.n FROM lefts AS l JOIN (SELECT k, COUNT(*) AS n FROM rights GROUP BY k) AS g ON l.k = g.k;
--- new
SELECT l.id, g.n FROM lefts AS l JOIN (SELECT rc, COUNT(*) AS n FROM rights GROUP BY rc) AS g ON l.lc = g.rc;
--- case: groups are joined with one another, where each may have none
-- computed: all; MIN(rv); all
--- old
SELECT l.k, l.n, r.n FROM (SELECT k, COUNT(*) AS n FROM lefts GROUP BY k) AS l LEFT JOIN (SELECT k, COUNT(*) AS n FROM rights GROUP BY k) AS r ON l.k = r.k;
--- new
SELECT l.k, l.n, r.n, r.m FROM (SELECT k, COUNT(lc) AS n FROM lefts GROUP BY k) AS l FULL JOIN (SELECT k, COUNT(*) AS n, MIN(rv) AS m FROM rights GROUP BY k) AS r ON l.k = r.k;
--- case: a metric of groups that are joined is added
-- computed: all
--- old
SELECT l.lc, MIN(g.n) AS c FROM lefts AS l LEFT JOIN (SELECT k, COUNT(*) AS n FROM rights GROUP BY k) AS g ON l.k = g.k GROUP BY l.lc;
--- new
SELECT l.lc, MIN(g.n) AS c, SUM(g.n) AS s FROM lefts AS l LEFT JOIN (SELECT k, COUNT(*) AS n FROM rights GROUP BY k) AS g ON l.k = g.k GROUP BY l.lc;
--- case: the last row of each key is grouped by another column
-- computed: all; all
--- old
SELECT c, COUNT(*) AS n, SUM(b) AS s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS rn FROM orders) WHERE rn = 1 GROUP BY c;
--- new
SELECT d, COUNT(*) AS n, AVG(b) AS s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS rn FROM orders) WHERE rn = 1 GROUP BY d;
--- case: a ranking keeps a computed column
-- computed: all
--- old
SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS rn FROM orders) WHERE rn <= 2;
--- new
SELECT u, v, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY v) AS rn FROM (SELECT UPPER(a) AS u, b * 10 AS v, d FROM orders)) WHERE rn <= 2;
--- case: the greatest groups by another metric
-- computed: all; all
--- old
SELECT a, s FROM (SELECT a, s, ROW_NUMBER() OVER (ORDER BY s DESC) AS rn FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a)) WHERE rn <= 2;
--- new
SELECT a, s FROM (SELECT a, s, ROW_NUMBER() OVER (ORDER BY s DESC) AS rn FROM (SELECT a, SUM(b * d) AS s FROM orders GROUP BY a)) WHERE rn <= 3;
--- case: the groups of the highest rows by another column
-- computed: all; all
--- old
SELECT a, n FROM (SELECT a, n, ROW_NUMBER() OVER (ORDER BY n DESC) AS rn FROM (SELECT a, MAX(d) AS n FROM orders GROUP BY a)) WHERE rn <= 2;
--- new
SELECT a, n FROM (SELECT a, n, ROW_NUMBER() OVER (ORDER BY n DESC) AS rn FROM (SELECT a, MAX(b) AS n FROM orders GROUP BY a)) WHERE rn <= 2;
--- case: the greatest of groups is asked for
-- computed: all; all
--- old
SELECT l.lc, COUNT(*) AS n FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k GROUP BY l.lc;
--- new
SELECT l.lc, COUNT(*) AS n, MAX(r.rv) AS h, MIN(r.rc) AS m FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k GROUP BY l.lc;
--- case: what is computed below an outer join is NULL where a row has no match
-- computed: all; all
--- old
SELECT l.k, COUNT(*) AS n FROM lefts AS l LEFT JOIN (SELECT k, COALESCE(rv, 0) + 1 AS v FROM rights) AS r ON l.k = r.k GROUP BY l.k;
--- new
SELECT l.k, COUNT(*) AS n, SUM(r.v) AS s, COUNT(r.v) AS m FROM lefts AS l LEFT JOIN (SELECT k, COALESCE(rv, 0) + 1 AS v FROM rights) AS r ON l.k = r.k GROUP BY l.k;
--- case: the condition of a join below a group is another
-- computed: all; all
--- old
SELECT l.lc, COUNT(*) AS n, SUM(r.rv) AS s FROM lefts AS l JOIN rights AS r ON l.k = r.k AND r.rv > 10 * l.lv GROUP BY l.lc;
--- new
SELECT l.lc, COUNT(*) AS n, SUM(r.rv) AS s FROM lefts AS l JOIN rights AS r ON l.k = r.k AND r.rv <= 10 * l.lv GROUP BY l.lc;
--- case: rows without a match come to a group
-- computed: all; all
--- old
SELECT l.lc, COUNT(*) AS n, SUM(r.rv) AS s FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k GROUP BY l.lc;
--- new
SELECT l.lc, COUNT(*) AS n, SUM(r.rv) AS s FROM lefts AS l RIGHT JOIN rights AS r ON l.k = r.k GROUP BY l.lc;
--- case: more rows of a ranking come to a group
-- computed: all; all
--- old
SELECT c, COUNT(*) AS n, SUM(b) AS s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC, d) AS rn FROM orders) WHERE rn <= 1 GROUP BY c;
--- new
SELECT c, COUNT(*) AS n, SUM(b) AS s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC, d) AS rn FROM orders) WHERE rn <= 3 GROUP BY c;
--- case: more rows of a ranking are joined, or none
-- computed: all; all
--- old
SELECT l.k, l.lv, r.rv FROM (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY lv DESC, id) AS rn FROM lefts) WHERE rn <= 1) AS l FULL JOIN rights AS r ON l.k = r.k;
--- new
SELECT l.k, l.lv, r.rv FROM (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY lv DESC, id) AS rn FROM lefts) WHERE rn <= 2) AS l FULL JOIN rights AS r ON l.k = r.k;
--- case: the greatest of joined rows
-- computed: all
--- old
SELECT k, rv FROM (SELECT l.k, r.rv, ROW_NUMBER() OVER (PARTITION BY l.k ORDER BY r.rv DESC) AS n FROM lefts AS l JOIN rights AS r ON l.k = r.k) WHERE n <= 2;
--- new
SELECT k, id, rv FROM (SELECT l.k, l.id, r.rv, ROW_NUMBER() OVER (PARTITION BY l.k ORDER BY r.rv DESC, l.id) AS n FROM lefts AS l JOIN rights AS r ON l.k = r.k) WHERE n <= 2;
--- case: the greatest of joined rows that may have no match
-- computed: all
--- old
SELECT k, rv FROM (SELECT l.k, r.rv, ROW_NUMBER() OVER (PARTITION BY l.k ORDER BY r.rv DESC) AS n FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k) WHERE n <= 1;
--- new
SELECT k, id, rv FROM (SELECT l.k, l.id, r.rv, ROW_NUMBER() OVER (PARTITION BY l.k ORDER BY r.rv DESC, l.id) AS n FROM lefts AS l LEFT JOIN rights AS r ON l.k = r.k) WHERE n <= 2;
