-- area: state migration, GROUP BY
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: added
-- about: metrics are added
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), AVG(d) FROM orders GROUP BY a;
--- case: added-in-front
-- about: metrics come in front of and between others
--- old
SELECT a, SUM(b), MAX(c) FROM orders GROUP BY a;
--- new
SELECT a, MIN(c), SUM(b), COUNT(d), MAX(c) FROM orders GROUP BY a;
--- case: removed
-- about: a metric in the middle goes
--- old
SELECT a, SUM(b), MIN(c), SUM(d) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), SUM(d) FROM orders GROUP BY a;
--- case: reordered
-- about: metrics change places
--- old
SELECT a, SUM(b), SUM(d), MAX(c) FROM orders GROUP BY a;
--- new
SELECT a, MAX(c), SUM(d), SUM(b) FROM orders GROUP BY a;
--- case: replaced
-- about: a metric becomes another one
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, MAX(b), COUNT(*) FROM orders GROUP BY a;
--- case: keys
-- about: keys change places
--- old
SELECT a, d, SUM(b) FROM orders GROUP BY a, d;
--- new
SELECT d, a, SUM(b) FROM orders GROUP BY d, a;
--- case: keys-long
-- about: long keys change places and a metric comes
--- old
SELECT a || ' and more than seven bytes', d, SUM(b) FROM orders GROUP BY a || ' and more than seven bytes', d;
--- new
SELECT d, a || ' and more than seven bytes', SUM(b), MAX(c) FROM orders GROUP BY d, a || ' and more than seven bytes';
--- case: keys-three
-- about: three keys change places
--- old
SELECT a, c, d, COUNT(*), SUM(b) FROM orders GROUP BY a, c, d;
--- new
SELECT d, a, c, SUM(b), COUNT(*) FROM orders GROUP BY d, a, c;
--- case: distinct-added
-- about: a distinct count comes beside another
--- old
SELECT a, COUNT(DISTINCT c), SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, COUNT(DISTINCT c), SUM(b), COUNT(DISTINCT d) FROM orders GROUP BY a;
--- case: distinct-removed
-- about: a distinct count goes
--- old
SELECT a, SUM(b), COUNT(DISTINCT d), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- case: distinct-reordered
-- about: distinct counts change places
--- old
SELECT a, COUNT(DISTINCT d), COUNT(DISTINCT c) FROM orders GROUP BY a;
--- new
SELECT a, COUNT(DISTINCT c), COUNT(DISTINCT d) FROM orders GROUP BY a;
--- case: distinct-sum
-- about: a distinct sum stays while a metric comes
--- old
SELECT a, SUM(DISTINCT d) FROM orders GROUP BY a;
--- new
SELECT a, MAX(c), SUM(DISTINCT d) FROM orders GROUP BY a;
--- case: no-keys
-- about: an aggregation without keys gets a metric
--- old
SELECT SUM(b), COUNT(*) FROM orders;
--- new
SELECT SUM(b), COUNT(*), MAX(d) FROM orders;
--- case: types
-- about: metrics of many types move and come
--- old
SELECT a, SUM(CAST(b AS DECIMAL(30, 4))), MAX(CAST(ts AS TIMESTAMP(6))), MAX(c || ' and more than seven bytes') FROM orders GROUP BY a;
--- new
SELECT a, MAX(c || ' and more than seven bytes'), COUNT(*), MAX(CAST(ts AS TIMESTAMP(6))), SUM(CAST(b AS DECIMAL(30, 4))), MIN(CAST(b AS DECIMAL(30, 4))) FROM orders GROUP BY a;
--- case: doubles
-- about: averages and sums of doubles move
--- old
SELECT a, AVG(CAST(b AS DOUBLE)), SUM(CAST(d AS DOUBLE)), MIN(CAST(b AS FLOAT)) FROM orders GROUP BY a;
--- new
SELECT a, MIN(CAST(b AS FLOAT)), AVG(CAST(b AS DOUBLE)), SUM(CAST(d AS DOUBLE)) FROM orders GROUP BY a;
--- case: booleans-and-dates
-- about: dates, times and booleans move
--- old
SELECT a, MAX(CAST(ts AS DATE)), MIN(CAST(ts AS TIME)), MAX(b > 4) FROM orders GROUP BY a;
--- new
SELECT a, MAX(b > 4), MAX(CAST(ts AS DATE)), MIN(CAST(ts AS TIME)), COUNT(*) FROM orders GROUP BY a;
--- case: ttl-added
-- about: a time to live comes, and a metric
-- settings-new: table.exec.state.ttl=1 h
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), AVG(d) FROM orders GROUP BY a;
--- case: ttl-removed
-- about: a time to live goes, and a metric comes
-- settings-old: table.exec.state.ttl=1 h
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), AVG(d) FROM orders GROUP BY a;
--- case: ttl-kept
-- about: a time to live stays, and metrics change places
-- settings-old: table.exec.state.ttl=1 h
-- settings-new: table.exec.state.ttl=1 h
--- old
SELECT a, SUM(b), SUM(d) FROM orders GROUP BY a;
--- new
SELECT a, SUM(d), SUM(b) FROM orders GROUP BY a;
--- case: ttl-changed
-- about: another time to live, and a metric more
-- settings-old: table.exec.state.ttl=1 h
-- settings-new: table.exec.state.ttl=2 h
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), AVG(d) FROM orders GROUP BY a;
--- case: mini-batch-on
-- about: mini-batches come, and metrics
-- settings-new: table.exec.mini-batch.enabled=true
-- settings-new: table.exec.mini-batch.allow-latency=100 ms
-- settings-new: table.exec.mini-batch.size=1000
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), AVG(d) FROM orders GROUP BY a;
--- case: mini-batch-off
-- about: mini-batches go, and metrics come
-- settings-old: table.exec.mini-batch.enabled=true
-- settings-old: table.exec.mini-batch.allow-latency=100 ms
-- settings-old: table.exec.mini-batch.size=1000
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), AVG(d) FROM orders GROUP BY a;
--- case: mini-batch-kept
-- about: metrics come under mini-batches
-- settings-old: table.exec.mini-batch.enabled=true
-- settings-old: table.exec.mini-batch.allow-latency=100 ms
-- settings-old: table.exec.mini-batch.size=1000
-- settings-new: table.exec.mini-batch.enabled=true
-- settings-new: table.exec.mini-batch.allow-latency=100 ms
-- settings-new: table.exec.mini-batch.size=1000
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), AVG(d) FROM orders GROUP BY a;
--- case: mini-batch-distinct
-- about: a distinct count moves under mini-batches
-- settings-old: table.exec.mini-batch.enabled=true
-- settings-old: table.exec.mini-batch.allow-latency=100 ms
-- settings-old: table.exec.mini-batch.size=1000
-- settings-new: table.exec.mini-batch.enabled=true
-- settings-new: table.exec.mini-batch.allow-latency=100 ms
-- settings-new: table.exec.mini-batch.size=1000
--- old
SELECT a, COUNT(DISTINCT c), SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(DISTINCT c) FROM orders GROUP BY a;
--- case: max-parallelism
-- about: 360 key groups, and a metric more
-- settings-new: pipeline.max-parallelism=360
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), AVG(d) FROM orders GROUP BY a;
--- case: retract-removed
-- about: a metric goes over rows that are taken back
--- old
SELECT a, SUM(s), MAX(m), MIN(m)
FROM (SELECT a, c, SUM(b) AS s, MAX(d) AS m FROM orders GROUP BY a, c) GROUP BY a;
--- new
SELECT a, MIN(m), SUM(s)
FROM (SELECT a, c, SUM(b) AS s, MAX(d) AS m FROM orders GROUP BY a, c) GROUP BY a;
--- case: retract-reordered
-- about: metrics move over rows that are taken back
--- old
SELECT a, SUM(s), MAX(m), MIN(m), COUNT(*)
FROM (SELECT a, c, SUM(b) AS s, MAX(d) AS m FROM orders GROUP BY a, c) GROUP BY a;
--- new
SELECT a, MIN(m), COUNT(*), MAX(m), SUM(s)
FROM (SELECT a, c, SUM(b) AS s, MAX(d) AS m FROM orders GROUP BY a, c) GROUP BY a;
--- case: two-levels-reordered
-- about: metrics of the lower of two aggregations move
--- old
SELECT a, SUM(s), MAX(m)
FROM (SELECT a, c, SUM(b) AS s, MAX(d) AS m FROM orders GROUP BY a, c) GROUP BY a;
--- new
SELECT a, SUM(s), MAX(m)
FROM (SELECT a, c, MAX(d) AS m, SUM(b) AS s FROM orders GROUP BY a, c) GROUP BY a;
--- case: filter-added
-- about: metrics with a FILTER come
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*), SUM(d) FILTER (WHERE b > 4) FROM orders GROUP BY a;
--- case: filter-reordered
-- about: metrics with a FILTER move
--- old
SELECT a, SUM(b) FILTER (WHERE d > 1), SUM(b), COUNT(*) FILTER (WHERE d > 2) FROM orders GROUP BY a;
--- new
SELECT a, COUNT(*) FILTER (WHERE d > 2), SUM(b), SUM(b) FILTER (WHERE d > 1) FROM orders GROUP BY a;
--- case: expressions
-- about: metrics of expressions move and come
--- old
SELECT a, SUM(b + d), MAX(UPPER(c)) FROM orders GROUP BY a;
--- new
SELECT a, MAX(UPPER(c)), MIN(b * 2), SUM(b + d) FROM orders GROUP BY a;
--- case: first-and-last
-- about: the first value goes, the last one stays
--- old
SELECT a, FIRST_VALUE(b), LAST_VALUE(d), SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, LAST_VALUE(d), SUM(b) FROM orders GROUP BY a;
--- case: dedup-below
-- about: a metric is added over a deduplication, one that rows which it drops do not decide
--- old
SELECT a, SUM(b)
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a, c ORDER BY p ASC) AS place FROM orders) WHERE place = 1 GROUP BY a;
--- new
SELECT a, SUM(b), MIN(b)
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a, c ORDER BY p ASC) AS place FROM orders) WHERE place = 1 GROUP BY a;
--- case: filter-below-kept
-- about: a metric is added behind a filter
--- old
SELECT a, SUM(b) FROM orders WHERE d > 1 GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*) FROM orders WHERE d > 1 GROUP BY a;
--- case: having-added
-- about: HAVING comes
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a HAVING SUM(b) > 10;
