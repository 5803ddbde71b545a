-- area: from one line of Flink to another: patterns, sorts, pipelines without operators that keep state, sinks
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE clicks (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/clicks', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: match
-- about: MATCH_RECOGNIZE, nothing changed
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
--- case: sort
-- about: a sort by event time, nothing changed
--- old
SELECT a, b, c FROM orders ORDER BY ts;
--- new
SELECT a, b, c FROM orders ORDER BY ts;
--- case: stateless
-- about: a filter, nothing changed
--- old
SELECT a, b FROM orders WHERE b > 2;
--- new
SELECT a, b FROM orders WHERE b > 2;
--- case: filter-changed
-- about: a filter in front of no state changes
--- old
SELECT a, b FROM orders WHERE b > 2;
--- new
SELECT a, b FROM orders WHERE b > 4;
--- case: union
-- about: UNION ALL, nothing changed
--- old
SELECT a, b FROM orders UNION ALL SELECT a, b FROM clicks;
--- new
SELECT a, b FROM orders UNION ALL SELECT a, b FROM clicks;
--- case: statement-set
-- about: two aggregations in one job, nothing changed
--- old
CREATE TABLE totals (a STRING, s BIGINT) WITH ('connector' = 'print');
CREATE TABLE tops (c STRING, m BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO totals SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO tops SELECT c, MAX(b) FROM orders GROUP BY c;
END;
--- new
CREATE TABLE totals (a STRING, s BIGINT) WITH ('connector' = 'print');
CREATE TABLE tops (c STRING, m BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO totals SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO tops SELECT c, MAX(b) FROM orders GROUP BY c;
END;
--- case: other-key
-- about: a sink's PRIMARY KEY is not that of the query, nothing changed
--- old
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, COUNT(*) FROM orders GROUP BY a;
--- new
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, COUNT(*) FROM orders GROUP BY a;
--- case: other-key-kept
-- about: the same with the check for ON CONFLICT off on the new line
-- settings-new: table.exec.sink.require-on-conflict=false
--- old
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, COUNT(*) FROM orders GROUP BY a;
--- new
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, COUNT(*) FROM orders GROUP BY a;
--- case: other-key-deduplicate
-- about: the same with ON CONFLICT DO DEDUPLICATE on the new line
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, COUNT(*) FROM orders GROUP BY a;
--- new
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, COUNT(*) FROM orders GROUP BY a
ON CONFLICT DO DEDUPLICATE;
--- case: one-key-nothing
-- about: a sink's PRIMARY KEY is the same in all rows, ON CONFLICT DO NOTHING on the new line
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT 'all', COUNT(*) FROM orders GROUP BY c;
--- new
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT 'all', COUNT(*) FROM orders GROUP BY c
ON CONFLICT DO NOTHING;
--- case: own-key-clause
-- about: ON CONFLICT DO ERROR on the new line, a sink's PRIMARY KEY is that of the query
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, COUNT(*) FROM orders GROUP BY a;
--- new
CREATE TABLE totals (a STRING, n BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, COUNT(*) FROM orders GROUP BY a
ON CONFLICT DO ERROR;
