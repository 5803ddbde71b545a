-- area: state migration, windows
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: tumble-added
-- about: TUMBLE: the last metric is added
--- old
SELECT a, window_end, COUNT(*), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(*), SUM(b), MIN(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-added-in-front
-- about: TUMBLE: metrics come in front of and between others
--- old
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(c), SUM(b), COUNT(d), MAX(c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-removed
-- about: TUMBLE: a metric in the middle goes
--- old
SELECT a, window_end, SUM(b), MIN(c), SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-reordered
-- about: TUMBLE: metrics change places
--- old
SELECT a, window_end, SUM(b), SUM(d), MAX(c), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(*), MAX(c), SUM(d), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-replaced
-- about: TUMBLE: a metric becomes another one
--- old
SELECT a, window_end, MAX(d), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(d), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-keys
-- about: TUMBLE: keys change places
--- old
SELECT a, c, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, c, window_start, window_end;
--- new
SELECT c, a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY c, a, window_start, window_end;
--- case: tumble-distinct-added
-- about: TUMBLE: a distinct count comes
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(DISTINCT c), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-distinct-removed
-- about: TUMBLE: one of two distinct counts goes
--- old
SELECT a, window_end, COUNT(DISTINCT d), COUNT(DISTINCT c), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(DISTINCT c), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hop-added
-- about: HOP: the last metric is added
--- old
SELECT a, window_end, COUNT(*), SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(*), SUM(b), MIN(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hop-added-in-front
-- about: HOP: metrics come in front of and between others
--- old
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(c), SUM(b), COUNT(d), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hop-removed
-- about: HOP: a metric in the middle goes
--- old
SELECT a, window_end, SUM(b), MIN(c), SUM(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), SUM(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hop-reordered
-- about: HOP: metrics change places
--- old
SELECT a, window_end, SUM(b), SUM(d), MAX(c), COUNT(*)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(*), MAX(c), SUM(d), SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hop-replaced
-- about: HOP: a metric becomes another one
--- old
SELECT a, window_end, MAX(d), SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(d), SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hop-keys
-- about: HOP: keys change places
--- old
SELECT a, c, window_end, SUM(b), COUNT(*)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, c, window_start, window_end;
--- new
SELECT c, a, window_end, SUM(b), COUNT(*)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY c, a, window_start, window_end;
--- case: hop-distinct-added
-- about: HOP: a distinct count comes
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(DISTINCT c), COUNT(*)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: hop-distinct-removed
-- about: HOP: one of two distinct counts goes
--- old
SELECT a, window_end, COUNT(DISTINCT d), COUNT(DISTINCT c), SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(DISTINCT c), SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: cumulate-added
-- about: CUMULATE: the last metric is added
--- old
SELECT a, window_end, COUNT(*), SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(*), SUM(b), MIN(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: cumulate-added-in-front
-- about: CUMULATE: metrics come in front of and between others
--- old
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(c), SUM(b), COUNT(d), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: cumulate-removed
-- about: CUMULATE: a metric in the middle goes
--- old
SELECT a, window_end, SUM(b), MIN(c), SUM(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), SUM(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: cumulate-reordered
-- about: CUMULATE: metrics change places
--- old
SELECT a, window_end, SUM(b), SUM(d), MAX(c), COUNT(*)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(*), MAX(c), SUM(d), SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: cumulate-replaced
-- about: CUMULATE: a metric becomes another one
--- old
SELECT a, window_end, MAX(d), SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(d), SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: cumulate-keys
-- about: CUMULATE: keys change places
--- old
SELECT a, c, window_end, SUM(b), COUNT(*)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, c, window_start, window_end;
--- new
SELECT c, a, window_end, SUM(b), COUNT(*)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY c, a, window_start, window_end;
--- case: cumulate-distinct-added
-- about: CUMULATE: a distinct count comes
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(DISTINCT c), COUNT(*)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: cumulate-distinct-removed
-- about: CUMULATE: one of two distinct counts goes
--- old
SELECT a, window_end, COUNT(DISTINCT d), COUNT(DISTINCT c), SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(DISTINCT c), SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: session-added
-- about: SESSION: the last metric is added
--- old
SELECT a, window_end, COUNT(*), SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(*), SUM(b), MIN(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- case: session-added-in-front
-- about: SESSION: metrics come in front of and between others
--- old
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(c), SUM(b), COUNT(d), MAX(c)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- case: session-removed
-- about: SESSION: a metric in the middle goes
--- old
SELECT a, window_end, SUM(b), MIN(c), SUM(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), SUM(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- case: session-reordered
-- about: SESSION: metrics change places
--- old
SELECT a, window_end, SUM(b), SUM(d), MAX(c), COUNT(*)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(*), MAX(c), SUM(d), SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- case: session-replaced
-- about: SESSION: a metric becomes another one
--- old
SELECT a, window_end, MAX(d), SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(d), SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, window_start, window_end;
--- case: session-keys
-- about: SESSION: keys change places
--- old
SELECT a, c, window_end, SUM(b), COUNT(*)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a, c), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY a, c, window_start, window_end;
--- new
SELECT c, a, window_end, SUM(b), COUNT(*)
FROM TABLE(SESSION(TABLE orders PARTITION BY (c, a), DESCRIPTOR(ts), INTERVAL '25' SECOND)) GROUP BY c, a, window_start, window_end;
--- case: group-tumble-added
-- about: GROUP BY TUMBLE: the last metric is added
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), COUNT(*), SUM(b) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), COUNT(*), SUM(b), MIN(d) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: group-tumble-added-in-front
-- about: GROUP BY TUMBLE: metrics come in front of and between others
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), MAX(c) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), MIN(c), SUM(b), COUNT(d), MAX(c) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: group-tumble-removed
-- about: GROUP BY TUMBLE: a metric in the middle goes
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), MIN(c), SUM(d) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), SUM(d) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: group-tumble-reordered
-- about: GROUP BY TUMBLE: metrics change places
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), SUM(d), MAX(c), COUNT(*) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), COUNT(*), MAX(c), SUM(d), SUM(b) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: group-tumble-replaced
-- about: GROUP BY TUMBLE: a metric becomes another one
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), MAX(d), SUM(b) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), MIN(d), SUM(b) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: group-tumble-keys
-- about: GROUP BY TUMBLE: keys change places
--- old
SELECT a, c, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), COUNT(*) FROM orders
GROUP BY a, c, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT c, a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), COUNT(*) FROM orders
GROUP BY c, a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: group-tumble-distinct-added
-- about: GROUP BY TUMBLE: a distinct count comes
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), COUNT(*) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), COUNT(DISTINCT c), COUNT(*) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: group-tumble-distinct-removed
-- about: GROUP BY TUMBLE: one of two distinct counts goes
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), COUNT(DISTINCT d), COUNT(DISTINCT c), SUM(b) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), COUNT(DISTINCT c), SUM(b) FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: group-hop-added
-- about: GROUP BY HOP: the last metric is added
--- old
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), COUNT(*), SUM(b) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), COUNT(*), SUM(b), MIN(d) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: group-hop-added-in-front
-- about: GROUP BY HOP: metrics come in front of and between others
--- old
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), SUM(b), MAX(c) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), MIN(c), SUM(b), COUNT(d), MAX(c) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: group-hop-removed
-- about: GROUP BY HOP: a metric in the middle goes
--- old
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), SUM(b), MIN(c), SUM(d) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), SUM(b), SUM(d) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: group-hop-reordered
-- about: GROUP BY HOP: metrics change places
--- old
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), SUM(b), SUM(d), MAX(c), COUNT(*) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), COUNT(*), MAX(c), SUM(d), SUM(b) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: group-hop-replaced
-- about: GROUP BY HOP: a metric becomes another one
--- old
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), MAX(d), SUM(b) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), MIN(d), SUM(b) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: group-hop-keys
-- about: GROUP BY HOP: keys change places
--- old
SELECT a, c, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), SUM(b), COUNT(*) FROM orders
GROUP BY a, c, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT c, a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), SUM(b), COUNT(*) FROM orders
GROUP BY c, a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: group-hop-distinct-added
-- about: GROUP BY HOP: a distinct count comes
--- old
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), SUM(b), COUNT(*) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), SUM(b), COUNT(DISTINCT c), COUNT(*) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: group-hop-distinct-removed
-- about: GROUP BY HOP: one of two distinct counts goes
--- old
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), COUNT(DISTINCT d), COUNT(DISTINCT c), SUM(b) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT a, HOP_END(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), COUNT(DISTINCT c), SUM(b) FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: group-session-added
-- about: GROUP BY SESSION: the last metric is added
--- old
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), COUNT(*), SUM(b) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- new
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), COUNT(*), SUM(b), MIN(d) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- case: group-session-added-in-front
-- about: GROUP BY SESSION: metrics come in front of and between others
--- old
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), SUM(b), MAX(c) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- new
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), MIN(c), SUM(b), COUNT(d), MAX(c) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- case: group-session-removed
-- about: GROUP BY SESSION: a metric in the middle goes
--- old
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), SUM(b), MIN(c), SUM(d) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- new
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), SUM(b), SUM(d) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- case: group-session-reordered
-- about: GROUP BY SESSION: metrics change places
--- old
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), SUM(b), SUM(d), MAX(c), COUNT(*) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- new
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), COUNT(*), MAX(c), SUM(d), SUM(b) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- case: group-session-replaced
-- about: GROUP BY SESSION: a metric becomes another one
--- old
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), MAX(d), SUM(b) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- new
SELECT a, SESSION_END(ts, INTERVAL '25' SECOND), MIN(d), SUM(b) FROM orders
GROUP BY a, SESSION(ts, INTERVAL '25' SECOND);
--- case: group-session-keys
-- about: GROUP BY SESSION: keys change places
--- old
SELECT a, c, SESSION_END(ts, INTERVAL '25' SECOND), SUM(b), COUNT(*) FROM orders
GROUP BY a, c, SESSION(ts, INTERVAL '25' SECOND);
--- new
SELECT c, a, SESSION_END(ts, INTERVAL '25' SECOND), SUM(b), COUNT(*) FROM orders
GROUP BY c, a, SESSION(ts, INTERVAL '25' SECOND);
--- case: tumble-filter-added
-- about: TUMBLE: a metric with a FILTER comes
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*), SUM(d) FILTER (WHERE b > 4)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-filter-kept
-- about: TUMBLE: a metric with a FILTER changes places
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 1), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), SUM(b) FILTER (WHERE d > 1)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-types
-- about: TUMBLE: metrics of many types change places
--- old
SELECT a, window_end, MAX(CAST(b AS DECIMAL(30, 4))), MAX(CAST(ts AS TIMESTAMP(6))), MAX(CAST(b AS DOUBLE)), MAX(c || ' and more than seven bytes')
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MAX(c || ' and more than seven bytes'), MAX(CAST(b AS DOUBLE)), MAX(CAST(ts AS TIMESTAMP(6))), MAX(CAST(b AS DECIMAL(30, 4)))
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-long-keys
-- about: TUMBLE: long keys change places
--- old
SELECT a || ' and more than seven bytes', d, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a || ' and more than seven bytes', d, window_start, window_end;
--- new
SELECT d, a || ' and more than seven bytes', window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY d, a || ' and more than seven bytes', window_start, window_end;
--- case: tumble-max-parallelism
-- about: TUMBLE: 360 key groups, and a metric more
-- settings-new: pipeline.max-parallelism=360
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-one-phase
-- about: TUMBLE: aggregated in one phase, and a metric more
-- settings-new: table.optimizer.agg-phase-strategy=ONE_PHASE
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-two-phases
-- about: TUMBLE: aggregated in two phases, and a metric more
-- settings-old: table.optimizer.agg-phase-strategy=ONE_PHASE
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: tumble-having
-- about: TUMBLE: a metric comes that only HAVING reads
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end HAVING COUNT(*) >= 1 AND SUM(b) > 0;
--- case: nested-added
-- about: a window over a window: a metric is added to both
--- old
CREATE TEMPORARY VIEW parts AS SELECT a, window_time AS at, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s) FROM TABLE(TUMBLE(TABLE parts, DESCRIPTOR(at), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW parts AS SELECT a, window_time AS at, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), MAX(m) FROM TABLE(TUMBLE(TABLE parts, DESCRIPTOR(at), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: nested-reordered
-- about: a window over a window: metrics of both change places
--- old
CREATE TEMPORARY VIEW parts AS SELECT a, window_time AS at, SUM(b) AS s, SUM(d) AS t
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(s), SUM(t) FROM TABLE(TUMBLE(TABLE parts, DESCRIPTOR(at), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TEMPORARY VIEW parts AS SELECT a, window_time AS at, SUM(d) AS t, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end, window_time;
SELECT a, window_end, SUM(t), SUM(s) FROM TABLE(TUMBLE(TABLE parts, DESCRIPTOR(at), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
