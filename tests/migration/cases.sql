-- Changes that a rewritten savepoint keeps the state of, each run on a real Flink by test_on_flink.py.
-- kept: the columns of the new results that go on, from 0; they must equal those of the new SQL over all rows.
-- alone: what Flink makes of the old savepoint as it is.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a metric is added to a tumbling window
-- kept: 0 1 2 3
-- alone: refused_at_restore
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: metrics of a tumbling window change places
-- kept: 0 1 2 3
-- alone: refused_at_submit
--- old
SELECT a, window_end, SUM(b), SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(d), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: keys of a tumbling window change places
-- kept: 0 1 2 3
-- alone: restored_WRONG
--- old
SELECT a, c, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, c, window_start, window_end;
--- new
SELECT c, a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY c, a, window_start, window_end;
--- case: a distinct count is added to hopping windows
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(DISTINCT c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: a metric leaves a cumulating window
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
SELECT a, window_end, MAX(d), SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: a metric is added to sessions
-- kept: 0 1 3
-- alone: refused_at_submit
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MAX(d), SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: metrics come, go and move in a group window
-- kept: 0 1 2
-- alone: restored_WRONG
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(d), SUM(b) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: metrics are added to a group aggregation
-- kept: 0 2
-- alone: refused_at_restore
--- old
SELECT a, SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, COUNT(d), SUM(b), MIN(c), AVG(d) FROM orders GROUP BY a;
--- case: the keys of a group aggregation change places
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, d, SUM(b) FROM orders GROUP BY a, d;
--- new
SELECT d, a, SUM(b) FROM orders GROUP BY d, a;
--- case: a distinct count goes and another stays
-- kept: 0 1
-- alone: refused_at_restore
--- old
SELECT a, COUNT(DISTINCT d), COUNT(DISTINCT c) FROM orders GROUP BY a;
--- new
SELECT a, COUNT(DISTINCT c) FROM orders GROUP BY a;
--- case: a metric leaves an aggregation over results that change
-- kept: 0 1
-- alone: refused_at_submit
--- old
SELECT s, MIN(a), COUNT(*) FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a) GROUP BY s;
--- new
SELECT s, COUNT(*) FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a) GROUP BY s;
--- case: values live for a while from now on
-- settings: table.exec.state.ttl=1 h
-- kept: 0 1
-- alone: refused_at_restore
--- old
SELECT a, SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d) FROM orders GROUP BY a;
--- case: another number of key groups
-- settings: pipeline.max-parallelism=360
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
SELECT a, c, SUM(b) FROM orders GROUP BY a, c;
--- new
SELECT a, c, SUM(b) FROM orders GROUP BY a, c;
--- case: metrics change places in front of files
-- kept: 0
-- alone: refused_at_submit
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), x BIGINT, y BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b), SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), x BIGINT, y BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(d), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a column leaves a deduplication
-- kept: 0 1
-- alone: refused_at_restore
--- old
SELECT a, b, c
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- new
SELECT a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- case: a column comes to a deduplication
-- kept: 0 1
-- alone: refused_at_restore
--- old
SELECT a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- new
SELECT a, b, c
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- case: a column leaves the highest two of a key
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, b, c, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- new
SELECT a, b, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- case: a column comes to the highest two of a key
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, b, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- new
SELECT a, b, place, c
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
