-- Changes that a rewritten savepoint keeps the state of, each run on a real Flink by test_on_flink.py.
-- kept: the columns of the new results that go on, from 0; they must equal those of the new SQL over all rows.
-- alone: what Flink makes of the old savepoint as it is.
-- refused: why no savepoint is written, in place of both.
-- accept: what has to be asked for. Where another condition lets rows through, all rows that are stored meet both.
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
--- case: a spread of another column comes beside a sum and its count
-- kept: 0 1 2 3
-- alone: refused_at_restore
--- old
SELECT a, window_end, SUM(b), COUNT(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(b), STDDEV_POP(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a spread goes and the sum beside it stays
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, SUM(b), COUNT(b), STDDEV_POP(d) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(b) FROM orders GROUP BY a;
--- case: an average comes beside a sum of the same values
-- kept: 0 1 2 3
-- alone: refused_at_restore
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d), AVG(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: an average becomes its sum and its count
-- kept: 0 1 2 3 4
-- alone: restored_right
--- old
SELECT a, window_end, AVG(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a sum and its count become an average beside others
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, SUM(b), COUNT(b), MIN(c) FROM orders GROUP BY a;
--- new
SELECT a, AVG(b), MIN(c), MAX(c) FROM orders GROUP BY a;
--- case: a metric is added beside one that is computed of two
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, window_end, SUM(b) * 100 / COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b) * 100 / COUNT(*), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a spread comes to a sum without a count
-- refused: a metric is computed of SUM(b), which would go on, and COUNT(b), which would begin now
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), STDDEV_POP(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a share of what is kept and what is new
-- refused: a metric is computed of SUM(b), which would go on, and COUNT(d), which would begin now
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), SUM(b) / COUNT(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a new count decides which results go on
-- refused: COUNT(d), which would start empty, decides which results continue
--- old
SELECT a, SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b) FROM orders GROUP BY a HAVING COUNT(d) > 1;
--- case: a key leaves a tumbling window
-- kept: 0 1 2 3 4 5 6
-- alone: refused_at_submit
--- old
SELECT a, c, window_end, SUM(b), COUNT(*), MAX(d), MIN(b), AVG(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, c, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*), MAX(d), MIN(b), AVG(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a key leaves hopping windows and a metric moves
-- kept: 0 1 2 3
-- alone: refused_at_restore
--- old
SELECT a, c, window_end, SUM(b), MIN(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, c, window_start, window_end;
--- new
SELECT c, window_end, MIN(d), SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
--- case: every key leaves cumulating windows
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT window_end, SUM(b), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
--- case: a key leaves a group window
-- kept: 0 1 2 3
-- alone: refused_at_restore
--- old
SELECT a, c, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d) FROM orders GROUP BY a, c, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: a key leaves a group aggregation
-- kept: 0 1 2 3 4 5
-- alone: refused_at_restore
--- old
SELECT a, c, SUM(b), COUNT(*), MAX(d), MIN(b), AVG(b) FROM orders GROUP BY a, c;
--- new
SELECT a, SUM(b), COUNT(*), MAX(d), MIN(b), AVG(b) FROM orders GROUP BY a;
--- case: a key leaves an aggregation over results that change
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT s, t, COUNT(*), SUM(s) FROM (SELECT a, SUM(b) AS s, COUNT(*) AS t FROM orders GROUP BY a) GROUP BY s, t;
--- new
SELECT t, COUNT(*), SUM(s) FROM (SELECT a, SUM(b) AS s, COUNT(*) AS t FROM orders GROUP BY a) GROUP BY t;
--- case: a key leaves sessions
-- refused: sessions of several keys would be one with sessions that have ended, of which nothing is stored
--- old
SELECT a, c, SESSION_END(ts, INTERVAL '20' SECOND), SUM(b) FROM orders GROUP BY a, c, SESSION(ts, INTERVAL '20' SECOND);
--- new
SELECT a, SESSION_END(ts, INTERVAL '20' SECOND), SUM(b) FROM orders GROUP BY a, SESSION(ts, INTERVAL '20' SECOND);
--- case: a key leaves a count of distinct values
-- refused: several COUNT(DISTINCT c) of one key each do not say that of all their keys
--- old
SELECT a, d, COUNT(DISTINCT c) FROM orders GROUP BY a, d;
--- new
SELECT a, COUNT(DISTINCT c) FROM orders GROUP BY a;
--- case: a key comes to a group aggregation
-- refused: c is a key now, by which stored values cannot be separated
--- old
SELECT a, SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, c, SUM(b) FROM orders GROUP BY a, c;
--- case: keys and numbers of a window become longer
-- kept: 0 1 2 3 4 5 6
-- alone: refused_at_restore
--- old
CREATE TABLE typed (
  a VARCHAR(1), b INT, c VARCHAR(3), d SMALLINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, d, window_end, SUM(b), MAX(b), MIN(c), COUNT(*)
FROM TABLE(TUMBLE(TABLE typed, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, d, window_start, window_end;
--- new
CREATE TABLE typed (
  a STRING, b BIGINT, c STRING, d INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, d, window_end, SUM(b), MAX(b), MIN(c), COUNT(*)
FROM TABLE(TUMBLE(TABLE typed, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, d, window_start, window_end;
--- case: decimals get more digits
-- kept: 0 1 2 3 4
-- alone: refused_at_restore
--- old
CREATE TABLE typed (
  a STRING, b DECIMAL(10, 2), c STRING, d DECIMAL(6, 1) NOT NULL, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT d, SUM(b), MAX(b), MIN(b), AVG(b) FROM typed GROUP BY d;
--- new
CREATE TABLE typed (
  a STRING, b DECIMAL(20, 2), c STRING, d DECIMAL(30, 1) NOT NULL, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT d, SUM(b), MAX(b), MIN(b), AVG(b) FROM typed GROUP BY d;
--- case: a float that is a key becomes a double
-- refused: the values of b are none of its type now
--- old
CREATE TABLE typed (
  a STRING, b FLOAT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT b, SUM(d) FROM typed GROUP BY b;
--- new
CREATE TABLE typed (
  a STRING, b DOUBLE, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT b, SUM(d) FROM typed GROUP BY b;
--- case: a condition comes below a window
-- refused: its condition changed, and the stored state comes from rows by the former one
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE b > 2 GROUP BY a, window_start, window_end;
--- case: a condition comes below a window on request
-- accept: filter
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE b > 2 GROUP BY a, window_start, window_end;
--- case: a condition changes below a group aggregation on request
-- accept: filter
-- kept: 0 1
-- alone: restored_right
--- old
SELECT a, COUNT(*) FROM orders WHERE b > 0 GROUP BY a;
--- new
SELECT a, COUNT(*) FROM orders WHERE b < 150 GROUP BY a;
--- case: a key leaves a group aggregation whose values live for a while
-- settings: table.exec.state.ttl=1 h
-- old-settings: table.exec.state.ttl=1 h
-- refused: what was stored of keys that were not used for a while is gone, and their new key may have been
--- old
SELECT a, c, SUM(b) FROM orders GROUP BY a, c;
--- new
SELECT a, SUM(b) FROM orders GROUP BY a;
--- case: a column leaves a join and rows become equal
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT o.a, o.b, p.c, o.d FROM orders AS o JOIN orders AS p ON o.a = p.a;
--- new
SELECT o.a, o.b, p.c FROM orders AS o JOIN orders AS p ON o.a = p.a;
--- case: columns come to both sides of a join
-- kept: 0 1
-- alone: refused_at_submit
--- old
SELECT o.a, o.b FROM orders AS o JOIN orders AS p ON o.a = p.a;
--- new
SELECT o.a, o.b, o.c, p.d FROM orders AS o JOIN orders AS p ON o.a = p.a;
--- case: a column leaves a join whose rows hold instants
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
SELECT o.a, o.z, p.y, o.d FROM (SELECT a, d, CAST(ts AS TIMESTAMP_LTZ(3)) AS z FROM orders) AS o
JOIN (SELECT a, CAST(ts AS TIMESTAMP_LTZ(6)) AS y FROM orders) AS p ON o.a = p.a;
--- new
SELECT o.a, o.z, p.y FROM (SELECT a, d, CAST(ts AS TIMESTAMP_LTZ(3)) AS z FROM orders) AS o
JOIN (SELECT a, CAST(ts AS TIMESTAMP_LTZ(6)) AS y FROM orders) AS p ON o.a = p.a;
--- case: a column leaves the rows of a left join that are matched and become equal
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
SELECT o.a, o.b, g.s, o.d FROM orders AS o LEFT JOIN (SELECT a, SUM(b) AS s FROM orders GROUP BY a) AS g ON o.a = g.a;
--- new
SELECT o.a, o.b, g.s FROM orders AS o LEFT JOIN (SELECT a, SUM(b) AS s FROM orders GROUP BY a) AS g ON o.a = g.a;
--- case: a column comes to the rows of a left join
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
SELECT o.a, o.b, g.s FROM orders AS o LEFT JOIN (SELECT a, SUM(b) AS s FROM orders GROUP BY a) AS g ON o.a = g.a;
--- new
SELECT o.a, o.b, g.s, o.d FROM orders AS o LEFT JOIN (SELECT a, SUM(b) AS s FROM orders GROUP BY a) AS g ON o.a = g.a;
--- case: a metric below a full join of keyed rows goes
-- kept: 0 1
-- alone: refused_at_submit
--- old
SELECT l.a, r.a AS ra, l.s FROM (SELECT a, SUM(b) AS s, COUNT(*) AS n FROM orders GROUP BY a) AS l
FULL JOIN (SELECT a, COUNT(*) AS n FROM orders GROUP BY a) AS r ON l.n = r.n;
--- new
SELECT l.a, r.a AS ra FROM (SELECT a, COUNT(*) AS n FROM orders GROUP BY a) AS l
FULL JOIN (SELECT a, COUNT(*) AS n FROM orders GROUP BY a) AS r ON l.n = r.n;
--- case: the rows of a right join lose their unique key
-- kept: 0 1
-- alone: refused_at_submit
--- old
SELECT o.a, g.n, g.d FROM (SELECT c, d, COUNT(*) AS n FROM orders GROUP BY c, d) AS g RIGHT JOIN orders AS o ON o.a = g.c;
--- new
SELECT o.a, g.n FROM (SELECT c, d, COUNT(*) AS n FROM orders GROUP BY c, d) AS g RIGHT JOIN orders AS o ON o.a = g.c;
--- case: a column comes to a side of a join whose rows are taken back
-- refused: rows that are taken back have right.m, which the stored ones have not
--- old
SELECT o.a, g.s FROM orders AS o JOIN (SELECT a, SUM(b) AS s, MAX(d) AS m FROM orders GROUP BY a) AS g ON o.a = g.a;
--- new
SELECT o.a, g.s, g.m FROM orders AS o JOIN (SELECT a, SUM(b) AS s, MAX(d) AS m FROM orders GROUP BY a) AS g ON o.a = g.a;
--- case: the rows of a join get a unique key
-- refused: what it stores is laid out otherwise
--- old
SELECT o.a, g.n FROM (SELECT c, d, COUNT(*) AS n FROM orders GROUP BY c, d) AS g JOIN orders AS o ON o.a = g.c;
--- new
SELECT o.a, g.n, g.d FROM (SELECT c, d, COUNT(*) AS n FROM orders GROUP BY c, d) AS g JOIN orders AS o ON o.a = g.c;
--- case: a sum comes to the frame of a minute and another goes
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, b, SUM(b) OVER w, SUM(d) OVER w FROM (SELECT a, b, d, ts FROM orders)
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w, COUNT(c) OVER w FROM (SELECT a, b, c, ts FROM orders)
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW);
--- case: an average comes to the frame of three rows
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, b, SUM(b) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w, AVG(d) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);
--- case: a sum comes to all rows up to the time of each
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, b, MAX(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts);
--- new
SELECT a, b, MAX(b) OVER w, SUM(d) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts);
--- case: a maximum comes to all rows as they are processed
-- kept: 0 1
-- alone: refused_at_restore
--- old
SELECT a, SUM(b) OVER w FROM (SELECT *, PROCTIME() AS p FROM orders) WINDOW w AS (PARTITION BY a ORDER BY p);
--- new
SELECT a, SUM(b) OVER w, MAX(d) OVER w FROM (SELECT *, PROCTIME() AS p FROM orders)
WINDOW w AS (PARTITION BY a ORDER BY p);
--- case: a maximum comes to the frame of a minute
-- refused: the initial value of MAX(d) was not measured
--- old
SELECT a, SUM(b) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW);
--- new
SELECT a, SUM(b) OVER w, MAX(d) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW);
--- case: a sum of a stored column comes to the frame of a minute
-- refused: COUNT(d) never counted the rows that leave the frame, and they would be taken from it
--- old
SELECT a, d, SUM(b) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW);
--- new
SELECT a, d, SUM(b) OVER w, SUM(d) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW);
--- case: a deviation comes beside a sum of the same column
-- refused: COUNT($3) never counted the rows that leave the frame, and they would be taken from it
--- old
SELECT a, SUM(b) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);
--- new
SELECT a, SUM(b) OVER w, STDDEV_POP(b) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);
--- case: columns come to and leave the sides of an interval join
-- kept: 0 1
-- alone: refused_at_submit
--- old
SELECT o.a, p.d, o.c FROM orders AS o JOIN orders AS p
ON o.a = p.a AND o.ts BETWEEN p.ts - INTERVAL '1' MINUTE
  AND /* -- the watermark is held back */ p.ts + INTERVAL '1' MINUTE;
--- new
SELECT o.a, p.d, p.b FROM orders AS o JOIN orders AS p
ON o.a = p.a AND o.ts BETWEEN p.ts - INTERVAL '1' MINUTE
  AND /* -- the watermark is held back */ p.ts + INTERVAL '1' MINUTE;
--- case: columns come to and leave the sides of a window join
-- kept: 0 1
-- alone: refused_at_submit
--- old
SELECT l.a, l.b, r.d FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS l
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS r
ON l.a = r.a AND l.window_start = r.window_start AND l.window_end = r.window_end;
--- new
SELECT l.a, l.b, l.c FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS l
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS r
ON l.a = r.a AND l.window_start = r.window_start AND l.window_end = r.window_end;
--- case: a column comes to both sides of a temporal join
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
CREATE TEMPORARY VIEW versions AS
SELECT a, d, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
SELECT o.a, o.b, v.d FROM orders AS o JOIN versions FOR SYSTEM_TIME AS OF o.ts AS v ON o.a = v.a;
--- new
CREATE TEMPORARY VIEW versions AS
SELECT a, d, c, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
SELECT o.a, o.b, v.d, o.d AS e, v.c FROM orders AS o JOIN versions FOR SYSTEM_TIME AS OF o.ts AS v ON o.a = v.a;
--- case: a column leaves the highest two of a window and another comes
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, b, window_end, d FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY b DESC) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) WHERE n <= 2;
--- new
SELECT a, b, window_end, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY b DESC) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) WHERE n <= 2;
--- case: a column leaves the first row of a key and a window
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, b, window_end, d FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a, window_start, window_end ORDER BY ts) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) WHERE n = 1;
--- new
SELECT a, b, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a, window_start, window_end ORDER BY ts) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) WHERE n = 1;
--- case: an aggregation comes above one that goes on
-- refused: it would begin empty, and never see what group-aggregate handed on before
--- old
SELECT a, COUNT(*) AS n FROM orders GROUP BY a;
--- new
SELECT n, COUNT(*) AS keys FROM (SELECT a, COUNT(*) AS n FROM orders GROUP BY a) GROUP BY n;
--- case: hopping windows become tumbling ones
-- kept: 0 1 2 3 4 5
-- alone: refused_at_restore
--- old
SELECT a, window_start, window_end, SUM(b), MIN(d), AVG(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), MIN(d), AVG(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hopping windows become shorter beside a distinct count
-- kept: 0 1 2 3
-- alone: restored_right
--- old
SELECT a, window_end, SUM(b), COUNT(DISTINCT c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '80' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(DISTINCT c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '40' SECOND))
GROUP BY a, window_start, window_end;
--- case: hopping windows slide further and a metric begins
-- kept: 0 1 3
-- alone: refused_at_submit
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MAX(d), SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '40' SECOND, INTERVAL '80' SECOND))
GROUP BY a, window_start, window_end;
--- case: cumulating windows take longer steps
-- kept: 0 1 2 3
-- alone: restored_WRONG
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '40' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hopping windows cumulate
-- kept: 0 1 2
-- alone: refused_at_restore
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: tumbling windows become longer
-- refused: its windows are longer, and nothing is left of those that ended
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hopping windows begin between those that were
-- refused: its windows begin or end where what is stored cannot be split
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' SECOND))
GROUP BY a, window_start, window_end;
--- case: distinct counts of several slices would have to be one
-- refused: several COUNT(DISTINCT c) of one slice each do not say that of all their slices
--- old
SELECT a, window_end, COUNT(DISTINCT c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(DISTINCT c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hopping windows become tumbling ones by the time of a zone
-- refused: it is over other rows, windows or conditions
--- old
CREATE TABLE zoned (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE zoned, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE zoned (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE zoned, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: other windows below the highest of each
-- refused: it is over other rows, windows or conditions
--- old
SELECT a, window_end, s FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n FROM (
    SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
) WHERE n <= 2;
--- new
SELECT a, window_end, s FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n FROM (
    SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
  )
) WHERE n <= 2;
--- case: other windows below sums of their results
-- refused: it is over other rows, windows or conditions
--- old
SELECT s, COUNT(*) FROM (
  SELECT a, SUM(b) AS s
  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
  GROUP BY a, window_start, window_end
) GROUP BY s;
--- new
SELECT s, COUNT(*) FROM (
  SELECT a, SUM(b) AS s
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end
) GROUP BY s;
--- case: two queries of one aggregation part
-- kept: 0 1 2
-- alone: refused_at_submit
--- old
CREATE TABLE s1 (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
CREATE TABLE s2 (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1 SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
INSERT INTO s2 SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
END;
--- new
CREATE TABLE s1 (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
CREATE TABLE s2 (a STRING, w TIMESTAMP(3), total BIGINT, most BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1 SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
INSERT INTO s2 SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
END;
--- case: two queries of one aggregation that changes part
-- kept: 0 1
-- alone: refused_at_submit
--- old
CREATE TABLE s1 (a STRING, total BIGINT) WITH ('connector' = 'print');
CREATE TABLE s2 (a STRING, total BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1 SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO s2 SELECT a, SUM(b) FROM orders GROUP BY a;
END;
--- new
CREATE TABLE s1 (a STRING, total BIGINT, most BIGINT) WITH ('connector' = 'print');
CREATE TABLE s2 (a STRING, total BIGINT, n BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1 SELECT a, SUM(b), MAX(d) FROM orders GROUP BY a;
INSERT INTO s2 SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
END;
--- case: two queries of one aggregation take a metric each
-- kept: 0 1
-- alone: refused_at_submit
--- old
CREATE TABLE s1 (a STRING, total BIGINT, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE s2 (a STRING, n BIGINT, total BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1 SELECT a, SUM(b), COUNT(d) FROM orders GROUP BY a;
INSERT INTO s2 SELECT a, COUNT(d), SUM(b) FROM orders GROUP BY a;
END;
--- new
CREATE TABLE s1 (a STRING, total BIGINT) WITH ('connector' = 'print');
CREATE TABLE s2 (a STRING, n BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1 SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO s2 SELECT a, COUNT(d) FROM orders GROUP BY a;
END;
--- case: another column takes the place of one that OVER by no time stores
-- refused: it can only be carried as it is: no rewriting of such state was measured
--- old
SELECT SUM(d) OVER (ORDER BY d), a FROM orders;
--- new
SELECT SUM(d) OVER (ORDER BY d), c FROM orders;
--- case: a column comes to the rows that OVER by no time stores
-- refused: it can only be carried as it is: no rewriting of such state was measured
--- old
SELECT d, b, SUM(b) OVER (PARTITION BY d ORDER BY b ROWS UNBOUNDED PRECEDING), a FROM orders;
--- new
SELECT d, b, SUM(b) OVER (PARTITION BY d ORDER BY b ROWS UNBOUNDED PRECEDING), a, c FROM orders;
