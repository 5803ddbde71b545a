-- area: filesystem sinks: projections in front of them
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed, a window aggregation into files
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: column-computed
-- about: one more column, computed of the metrics
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT, n BIGINT, average BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b), COUNT(*), SUM(b) / COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: column-computed-removed
-- about: one column less, computed of the metrics
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT, n BIGINT, average BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b), COUNT(*), SUM(b) / COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: window-start
-- about: another field of the window comes out
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_start, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: columns-swapped
-- about: columns in another order
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (w TIMESTAMP(3), a STRING, total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT window_end, a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: metric-computed
-- about: a metric is computed further
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b) * 10
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: columns-renamed
-- about: columns of the table renamed
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), everything BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: renamed
-- about: the table renamed, the path kept
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE sums (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO sums
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: having
-- about: a condition on a metric comes
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
HAVING SUM(b) > 6;
--- case: stateless-unchanged
-- about: nothing changed, columns of the source into files
--- old
CREATE TABLE totals (a STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, b
FROM orders;
--- new
CREATE TABLE totals (a STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, b
FROM orders;
--- case: stateless-column-computed
-- about: one more column, computed of the source's
--- old
CREATE TABLE totals (a STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, b
FROM orders;
--- new
CREATE TABLE totals (a STRING, b BIGINT, c STRING) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, b, UPPER(c)
FROM orders;
--- case: stateless-filter-added
-- about: a condition comes
--- old
CREATE TABLE totals (a STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, b
FROM orders;
--- new
CREATE TABLE totals (a STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = 'file://OUT/totals', 'format' = 'csv');
INSERT INTO totals
SELECT a, b
FROM orders WHERE b > 6;
