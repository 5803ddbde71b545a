-- Jobs whose tables of state are compared with the rows that Flink emits; dev/measure/state_jobs.py explains the sections.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE lefts (id STRING, k STRING, lv BIGINT, lc STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/lefts', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE rights (id STRING, k STRING, rv BIGINT, rc STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/rights', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE untimed (a STRING, b BIGINT, c STRING, d BIGINT) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE untimed_clicks (k STRING, tv BIGINT, tc STRING, tw BIGINT) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_clicks', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE untimed_lefts (id STRING, k STRING, lv BIGINT, lc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_lefts', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE untimed_rights (id STRING, k STRING, rv BIGINT, rc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_rights', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE untimed_thirds (id STRING, k STRING, tv BIGINT, tc STRING) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/untimed_thirds', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TEMPORARY VIEW typed AS SELECT *, CAST(d AS INT) AS i, b > 4 AS big, CAST(ts AS DATE) AS day_of,
  CAST(b AS DECIMAL(10, 2)) AS e, CAST(d AS DOUBLE) AS x FROM orders;
--- case: tumble
-- about: TUMBLE
-- compare: closing
--- state
SELECT a, window_end, sum_b, count_all, avg_d, max_c FROM printed
--- case: tumble-metrics
-- about: TUMBLE with metrics of many types
-- compare: closing
--- sql
SELECT a, window_start, window_end, MIN(b), MAX(d), AVG(CAST(b AS DOUBLE)), COUNT(DISTINCT c), SUM(CAST(d AS DECIMAL(10, 2)))
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- state
SELECT a, window_start, window_end, min_b, max_d, avg_f5, count_distinct_c, sum_f7 FROM printed
--- case: tumble-all
-- about: TUMBLE without a key
-- compare: closing
--- sql
SELECT window_end, COUNT(*), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
--- state
SELECT window_end, count_all, sum_b FROM printed
--- case: tumble-rocksdb
-- about: TUMBLE on RocksDB
-- compare: closing
-- settings: state.backend.type=rocksdb
--- sql
SELECT a, window_end, SUM(b), AVG(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, sum_b, avg_d FROM printed
--- case: tumble-parallel
-- about: TUMBLE in two subtasks
-- compare: closing
-- settings: parallelism.default=2
--- sql
CREATE TABLE many (a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/busy', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE many, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, sum_b, count_all FROM printed
--- case: tumble-spread
-- about: TUMBLE with a standard deviation
-- compare: closing
-- flink: 2.3
--- sql
SELECT a, window_end, STDDEV_POP(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, trunc(sqrt(welford_m2_d / count_d))::BIGINT FROM printed
--- case: tumble-spread-of-squares
-- about: TUMBLE with a standard deviation out of a sum of squares
-- compare: closing
-- flink: 1.20
--- sql
SELECT a, window_end, STDDEV_POP(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, trunc(sqrt((sum_f4 - sum_d * sum_d // count_d) // count_d))::BIGINT FROM printed
--- case: tumble-composed-keys
-- about: TUMBLE with a key of five types
-- compare: closing
--- sql
SELECT a, i, big, day_of, e, window_end, SUM(b) FROM TABLE(TUMBLE(TABLE typed, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, i, big, day_of, e, window_start, window_end;
--- state
SELECT a, i, big, day_of, e, window_end, sum_b FROM printed
--- case: tumble-one-phase
-- about: TUMBLE in one phase
-- compare: closing
-- settings: table.optimizer.agg-phase-strategy=ONE_PHASE
--- sql
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, sum_b, max_c FROM printed
--- case: tumble-filters
-- about: TUMBLE with FILTER
-- compare: closing
--- sql
SELECT a, window_end, COUNT(*) FILTER (WHERE d > 2), SUM(b) FILTER (WHERE d > 1)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, count_all_filter_where_f3, sum_b_filter_where_f5 FROM printed
--- case: hop-distinct
-- about: HOP with a distinct count
-- compare: closing
--- state
WITH sums AS (
  SELECT a, window_end + to_seconds(later) AS w, SUM(sum_b) AS s FROM printed, unnest([0, 30]) AS u(later) GROUP BY ALL
), counts AS (
  SELECT a, window_end + to_seconds(later) AS w, COUNT(DISTINCT distinct_values_of_c) AS n
  FROM printed__distinctacc_0, unnest([0, 30]) AS u(later) GROUP BY ALL
) SELECT a, w, s, n FROM sums JOIN counts USING (a, w) WHERE w >= (SELECT MIN(t.window_end) FROM printed__timers AS t)
--- case: hop-average
-- about: HOP with an average
-- compare: closing
--- sql
SELECT a, window_end, AVG(b), MIN(d), MAX(c), COUNT(*)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end + to_seconds(later) AS w, SUM(avg_b_sum) // SUM(avg_b_count), MIN(min_d), MAX(max_c), SUM(count_all)
FROM printed, unnest([0, 20, 40]) AS u(later) WHERE w >= (SELECT MIN(t.window_end) FROM printed__timers AS t) GROUP BY ALL
--- case: hop-rocksdb-parallel
-- about: HOP on RocksDB in two subtasks
-- compare: closing
-- settings: state.backend.type=rocksdb
-- settings: parallelism.default=2
--- sql
CREATE TABLE many (a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/busy', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, window_end, AVG(b), MIN(d), MAX(c), COUNT(*)
FROM TABLE(HOP(TABLE many, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end + to_seconds(later) AS w, SUM(avg_b_sum) // SUM(avg_b_count), MIN(min_d), MAX(max_c), SUM(count_all)
FROM printed, unnest([0, 20, 40]) AS u(later) WHERE w >= (SELECT MIN(t.window_end) FROM printed__timers AS t) GROUP BY ALL
--- case: cumulate
-- about: CUMULATE
-- compare: closing
--- state
SELECT a, window_start + INTERVAL 1 MINUTE, SUM(sum_b), SUM(count_all) FROM printed
GROUP BY ALL
--- case: cumulate-average
-- about: CUMULATE with an average, and several open windows
-- compare: closing
--- sql
SELECT a, window_end, AVG(b), MIN(d), COUNT(*) FROM TABLE(
  CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '3' MINUTE)
) GROUP BY a, window_start, window_end;
--- state
SELECT a, w, SUM(avg_b_sum) // SUM(avg_b_count), MIN(min_d), SUM(count_all)
FROM printed, generate_series((SELECT MIN(t.window_end) FROM printed__timers AS t), TIMESTAMP '2024-01-01 00:03:00', INTERVAL 20 SECOND) AS ends(w)
WHERE window_end <= w GROUP BY ALL
--- case: session
-- about: SESSION
-- compare: closing
--- state
SELECT a, window_end, sum_b, max_d FROM printed NATURAL JOIN printed__session_window_mapping
--- case: session-average
-- about: SESSION with an average
-- compare: closing
--- sql
SELECT a, window_start, window_end, AVG(b), COUNT(*)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- state
SELECT a, window_start, window_end, avg_b, count_all FROM printed NATURAL JOIN printed__session_window_mapping
--- case: session-distinct
-- about: SESSION with a distinct count
-- compare: closing
--- sql
SELECT a, window_end, COUNT(DISTINCT c), SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, count_distinct_c, sum_b FROM printed NATURAL JOIN printed__session_window_mapping
--- case: session-parallel
-- about: SESSION in two subtasks
-- compare: closing
-- settings: parallelism.default=2
--- sql
CREATE TABLE many (a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/busy', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, window_end, SUM(b)
FROM TABLE(SESSION(TABLE many PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, sum_b FROM printed NATURAL JOIN printed__session_window_mapping
--- case: session-keys
-- about: SESSION with two keys, on RocksDB
-- compare: closing
-- settings: state.backend.type=rocksdb
-- flink: 2.3
--- sql
SELECT a, c, window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a, c), DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, c, window_start, window_end;
--- state
SELECT a, c, window_end, sum_b FROM printed NATURAL JOIN printed__session_window_mapping
--- case: group-window
-- about: TUMBLE as a legacy group window
-- compare: closing
--- state
SELECT a, window_end, sum_b FROM printed
--- case: group-session
-- about: SESSION as a legacy group window
-- compare: closing
--- state
SELECT a, window_end, sum_b FROM printed NATURAL JOIN printed__session_window_mapping
--- case: group-session-keys
-- about: SESSION as a legacy group window with two keys, on RocksDB
-- compare: closing
-- settings: state.backend.type=rocksdb
--- sql
SELECT a, c, SESSION_END(ts, INTERVAL '20' SECOND), SUM(b) FROM orders GROUP BY a, c, SESSION(ts, INTERVAL '20' SECOND);
--- state
SELECT a, c, window_end, sum_b FROM printed NATURAL JOIN printed__session_window_mapping
--- case: group-hop
-- about: HOP as a legacy group window
-- compare: closing
--- sql
SELECT a, HOP_END(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE), SUM(b)
FROM orders GROUP BY a, HOP(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE);
--- state
SELECT a, window_end + to_seconds(later) AS w, SUM(sum_b) FROM printed, unnest([0, 30]) AS u(later)
WHERE w >= (SELECT MIN(t.window_end) FROM printed__timers AS t) GROUP BY ALL
--- case: window-top-n
-- about: ROW_NUMBER over windows
-- compare: closing
--- state
SELECT a, b, window_end FROM printed QUALIFY row_number() OVER (PARTITION BY window_end ORDER BY b DESC) <= 2
--- case: window-top-n-of-sums
-- about: ROW_NUMBER over sums of windows
-- compare: closing
--- sql
SELECT a, window_end, s FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n FROM (
    SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end
  )
) WHERE n <= 2;
--- state
SELECT a, window_end, sum_b FROM printed QUALIFY row_number() OVER (PARTITION BY window_end ORDER BY sum_b DESC) <= 2
--- case: window-first-row
-- about: deduplication in windows
-- compare: closing
--- state
SELECT a, b, window_end FROM printed
--- case: window-join
-- about: join of windows
-- compare: closing
--- state
SELECT left_a, left_b, right_d FROM printed__left_records AS l JOIN printed__right_records AS r USING (a, window_end)
--- case: window-left-join
-- about: LEFT JOIN of windows
-- compare: closing
--- sql
SELECT l.id, r.id FROM (
  SELECT * FROM TABLE(TUMBLE(TABLE lefts, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) AS l LEFT JOIN (
  SELECT * FROM TABLE(TUMBLE(TABLE rights, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
--- state
SELECT left_id, right_id FROM printed__left_records AS l LEFT JOIN printed__right_records AS r USING (k, window_end)
--- case: tumble-timers
-- about: timers of TUMBLE
-- compare: batch
--- sql
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- state
SELECT a, window_end, time FROM printed__timers
--- batch
SELECT DISTINCT a, TIMESTAMP '2024-01-01 00:02:00', TIMESTAMP '2024-01-01 00:01:59.999' FROM orders WHERE ts >= TIMESTAMP '2024-01-01 00:01:00';
--- case: session-timers
-- about: timers of SESSION
-- compare: closing
--- sql
SELECT a, window_start, window_end
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- state
SELECT a, window_start, window_end FROM printed__timers
--- case: group
-- about: GROUP BY with a metric of every kind
-- flink: 2.3
--- state
SELECT a, sum_b, count_d, sum_b // count_b, min_c, first_value_d, listagg_c_list, trunc(sqrt(welford_m2_d / count_d))::BIGINT FROM printed
--- case: group-distinct
-- about: GROUP BY with distinct metrics
--- state
SELECT a, count_distinct_c, sum_distinct_d, count_distinct_c_filter_where_f3 FROM printed
--- case: group-retracting
-- about: MIN and MAX over retractions
--- state
SELECT s, min_a, max_n, count_all FROM printed
--- case: group-ttl
-- about: GROUP BY with a state TTL
--- state
SELECT a, sum_b FROM printed
--- case: group-mini-batch
-- about: GROUP BY in mini-batches
--- state
SELECT a, sum_b, count_all FROM printed
--- case: group-compressed
-- about: GROUP BY, compressed
--- state
SELECT a, sum_b, max_c FROM printed
--- case: group-rocksdb
-- about: GROUP BY on RocksDB
--- state
SELECT a, sum_b, max_c FROM printed
--- case: group-max-parallelism
-- about: GROUP BY with 360 key groups
--- state
SELECT a, c, sum_b, max_c FROM printed
--- case: group-in-files
-- about: GROUP BY with state in files
--- state
SELECT a, sum_b, max_c FROM printed
--- case: group-parallel
-- about: GROUP BY in two subtasks
--- state
SELECT a, sum_b, max_c FROM printed
--- case: group-types
-- about: GROUP BY with a key of a decimal, a time and bytes
-- compare: batch
-- flink: 2.3
--- state
SELECT k, t, u, max_f, min_x, sum_h FROM printed
--- batch
SELECT k, t, u, MAX(f), MIN(x), SUM(h) FROM (
  SELECT CAST(b AS DECIMAL(30, 4)) AS k, CAST(ts AS TIMESTAMP(9)) AS t, CAST(a AS BINARY(3)) AS u, CAST(d AS DOUBLE) AS f,
    CAST(ts AS DATE) AS x, CAST(d AS DECIMAL(10, 2)) AS h FROM orders
) GROUP BY k, t, u;
--- case: group-numbers
-- about: sums, extremes and averages of every numeric type
--- state
SELECT a, sum_e, max_e, avg_f2, avg_f3, avg_f4, avg_f, sum_f2, sum_f4, min_ts, count_c, max_f8, max_f9, min_f10, sum_f11 FROM printed
--- case: group-all
-- about: aggregation without a key
--- state
SELECT count_all, sum_b FROM printed
--- case: retracting-numbers
-- about: sums and averages over retractions
--- state
SELECT n, sum_s_sum, avg_f2, count_m, sum_f4_sum, avg_f5 FROM printed_2
--- case: retracting-sum
-- about: SUM over retractions
--- state
SELECT n, sum_s_sum FROM printed_2
--- case: retracting-first-and-last
-- about: FIRST_VALUE and LAST_VALUE over retractions
--- sql
SELECT n, LAST_VALUE(a), FIRST_VALUE(s), COUNT(DISTINCT a) FROM (SELECT a, SUM(b) AS s, MIN(d) AS m, COUNT(*) AS n FROM orders GROUP BY a) GROUP BY n;
--- state
SELECT n, last_value_a, first_value_s, count_distinct_a FROM printed
--- case: retracting-extremes-rocksdb
-- about: MIN and MAX over retractions on RocksDB in two subtasks
-- settings: state.backend.type=rocksdb
-- settings: parallelism.default=2
--- sql
SELECT n, MIN(a), MAX(s), MIN(m) FROM (SELECT a, SUM(b) AS s, MIN(d) AS m, COUNT(*) AS n FROM untimed GROUP BY a) GROUP BY n;
--- state
SELECT n, min_a, max_s, min_m FROM printed_2
--- case: retracting-extremes-mini-batch
-- about: MIN and MAX over retractions in mini-batches
-- settings: table.exec.mini-batch.enabled=true
-- settings: table.exec.mini-batch.allow-latency=100 ms
-- settings: table.exec.mini-batch.size=10
--- sql
SELECT n, MIN(a), MAX(s) FROM (SELECT a, SUM(b) AS s, MIN(d) AS m, COUNT(*) AS n FROM orders GROUP BY a) GROUP BY n;
--- state
SELECT n, min_a, max_s FROM printed
--- case: retracting-extremes-ttl
-- about: MIN and MAX of times and decimals over retractions, with a state TTL
-- settings: table.exec.state.ttl=1 h
--- sql
SELECT n, MIN(t), MAX(e) FROM (
  SELECT a, MAX(ts) AS t, MAX(CAST(b AS DECIMAL(30, 4))) AS e, COUNT(*) AS n FROM orders GROUP BY a
) GROUP BY n;
--- state
SELECT n, min_t, max_e FROM printed_2
--- case: retracting-list
-- about: LISTAGG over retractions
--- sql
SELECT n, LISTAGG(a) FROM (SELECT a, SUM(b) AS s, MIN(d) AS m, COUNT(*) AS n FROM orders GROUP BY a) GROUP BY n;
--- state
SELECT n, string_agg(value, ',' ORDER BY position) FROM printed__agg0_list GROUP BY n
--- case: retracting-average
-- about: averages over retractions
--- sql
SELECT n, AVG(s), AVG(m) FROM (SELECT a, SUM(b) AS s, MIN(d) AS m, COUNT(*) AS n FROM orders GROUP BY a) GROUP BY n;
--- state
SELECT n, avg_s, avg_m FROM printed_2
--- case: retracting-spread
-- about: standard deviation over retractions
-- flink: 2.3
--- sql
SELECT n, STDDEV_POP(s) FROM (SELECT a, SUM(b) AS s, MIN(d) AS m, COUNT(*) AS n FROM orders GROUP BY a) GROUP BY n;
--- state
SELECT n, trunc(sqrt(welford_m2_s / count_s))::BIGINT FROM printed_2
--- case: group-composed-keys
-- about: GROUP BY with a key of five types
--- sql
SELECT a, i, big, day_of, e, SUM(b) FROM typed GROUP BY a, i, big, day_of, e;
--- state
SELECT a, i, big, day_of, e, sum_b FROM printed
--- case: group-by-time
-- about: GROUP BY with times as the key
--- sql
SELECT t, ts, SUM(b) FROM (SELECT CAST(ts AS TIMESTAMP(6)) AS t, CAST(ts AS TIMESTAMP(3)) AS ts, b FROM orders) GROUP BY t, ts;
--- state
SELECT t, ts, sum_b FROM printed
--- case: group-by-integer
-- about: GROUP BY with an INT as the key
--- sql
SELECT i, COUNT(*), MAX(a) FROM typed GROUP BY i;
--- state
SELECT i, count_all, max_a FROM printed
--- case: group-by-boolean-and-date
-- about: GROUP BY with a BOOLEAN and a DATE as the key
--- sql
SELECT big, day_of, SUM(b), AVG(b) FROM typed GROUP BY big, day_of;
--- state
SELECT big, day_of, sum_b, avg_b FROM printed
--- case: group-by-decimal
-- about: GROUP BY with a DECIMAL as the key
--- sql
SELECT e, MIN(c), COUNT(*) FROM typed GROUP BY e;
--- state
SELECT e, min_c, count_all FROM printed
--- case: group-by-long-text
-- about: GROUP BY with a long text as the key
--- sql
SELECT t, SUM(b), MAX(u) FROM (
  SELECT a || ' and more than seven bytes' AS t, c || ' and more than seven bytes' AS u, b FROM orders
) GROUP BY t;
--- state
SELECT t, sum_b, max_u FROM printed
--- case: group-of-nulls
-- about: GROUP BY with NULL as a key and as values
--- sql
SELECT k, SUM(v), COUNT(v), MIN(v), COUNT(*) FROM (SELECT NULLIF(a, 'x') AS k, NULLIF(b, 13) AS v FROM orders) GROUP BY k;
--- state
SELECT k, sum_v, count_v, min_v, count_all FROM printed
--- case: group-filters
-- about: metrics with FILTER
--- sql
SELECT a, SUM(b) FILTER (WHERE d > 1), SUM(b), COUNT(*) FROM orders GROUP BY a;
--- state
SELECT a, sum_b_filter_where_f2, sum_b, count_all FROM printed
--- case: group-averages
-- about: averages of every numeric type
--- sql
SELECT a, AVG(b), AVG(i), AVG(x), AVG(e) FROM typed GROUP BY a;
--- state
SELECT a, avg_b, avg_i, avg_x, avg_e FROM printed
--- case: group-spread
-- about: standard deviations and variances
-- flink: 2.3
--- sql
SELECT a, STDDEV_POP(d), STDDEV_SAMP(d), VAR_POP(d) FROM orders GROUP BY a;
--- state
SELECT a, trunc(sqrt(welford_m2_d / count_d))::BIGINT, CASE WHEN count_d > 1 THEN trunc(sqrt(welford_m2_d / (count_d - 1)))::BIGINT END,
  trunc(welford_m2_d / count_d)::BIGINT FROM printed
--- case: group-spread-of-squares
-- about: standard deviations and variances out of a sum of squares
-- flink: 1.20
--- sql
SELECT a, STDDEV_POP(d), VAR_POP(d) FROM orders GROUP BY a;
--- state
SELECT a, trunc(sqrt((sum_f2 - sum_d * sum_d // count_d) // count_d))::BIGINT, (sum_f2 - sum_d * sum_d // count_d) // count_d FROM printed
--- case: group-spread-of-doubles
-- about: standard deviation of doubles
-- flink: 2.3
--- sql
SELECT a, STDDEV_POP(x) FROM typed GROUP BY a;
--- state
SELECT a, sqrt(welford_m2_x / count_x) FROM printed
--- case: group-first-and-last
-- about: FIRST_VALUE and LAST_VALUE of several types
--- sql
SELECT a, FIRST_VALUE(c), LAST_VALUE(b), LAST_VALUE(e), FIRST_VALUE(x), LAST_VALUE(big) FROM typed GROUP BY a;
--- state
SELECT a, first_value_c, last_value_b, last_value_e, first_value_x, last_value_big FROM printed
--- case: group-last-time
-- about: LAST_VALUE of times
-- flink: 2.3
--- sql
SELECT a, LAST_VALUE(t), LAST_VALUE(day_of)
FROM (SELECT *, CAST(ts AS TIMESTAMP(6)) AS t FROM typed) GROUP BY a;
--- state
SELECT a, last_value_t, last_value_day_of FROM printed
--- case: group-distinct-mini-batch
-- about: distinct metrics in mini-batches
-- settings: table.exec.mini-batch.enabled=true
-- settings: table.exec.mini-batch.allow-latency=100 ms
-- settings: table.exec.mini-batch.size=10
--- sql
SELECT a, COUNT(DISTINCT c), SUM(DISTINCT d), SUM(b) FROM orders GROUP BY a;
--- state
SELECT a, count_distinct_c, sum_distinct_d, sum_b FROM printed
--- case: group-distinct-split
-- about: distinct metrics split in two aggregations
-- settings: table.exec.mini-batch.enabled=true
-- settings: table.exec.mini-batch.allow-latency=100 ms
-- settings: table.exec.mini-batch.size=10
-- settings: table.optimizer.distinct-agg.split.enabled=true
--- sql
SELECT a, COUNT(DISTINCT c), SUM(b) FROM orders GROUP BY a;
--- state
SELECT a, sum_sum_1, sum_all FROM printed
--- case: group-distinct-values
-- about: distinct values of a key
-- settings: state.backend.type=rocksdb
--- sql
SELECT a, COUNT(DISTINCT c) FROM orders GROUP BY a;
--- state
SELECT a, COUNT(*) FROM printed__distinctacc_0 GROUP BY a
--- case: distinct
-- about: SELECT DISTINCT
--- sql
SELECT DISTINCT a, c FROM orders;
--- state
SELECT a, c FROM printed
--- case: grouping-sets
-- about: GROUPING SETS
--- sql
SELECT a, c, SUM(b) FROM orders GROUP BY GROUPING SETS ((a), (c));
--- state
SELECT a, c, sum_b FROM printed
--- case: union
-- about: GROUP BY over UNION ALL
--- sql
SELECT k, SUM(v) FROM (SELECT a AS k, b AS v FROM untimed UNION ALL SELECT k, tv AS v FROM untimed_clicks) GROUP BY k;
--- state
SELECT a, sum_b FROM printed
--- case: having
-- about: HAVING
--- sql
SELECT a, SUM(b) FROM orders GROUP BY a HAVING SUM(b) > 12;
--- state
SELECT a, sum_b FROM printed WHERE sum_b > 12
--- case: left-join
-- about: LEFT JOIN with sums
--- state
SELECT left_a, left_b, right_s FROM printed__left_records AS l LEFT JOIN printed__right_records AS r USING (a), unnest(range(l.count))
--- case: inner-join
-- about: JOIN
--- state
SELECT left_a, left_b, right_d FROM printed__left_records AS l JOIN printed__right_records AS r USING (a), unnest(range(l.count * r.count))
--- case: join-types
-- about: JOIN with columns of many types
-- compare: batch
--- state
SELECT left_a, left_z, left_y, left_x, left_s, left_q, left_p FROM printed__left_records, unnest(range(count))
--- batch
SELECT a, CAST(ts AS TIMESTAMP_LTZ(3)), CAST(ts AS TIME), CAST(ts AS DATE), CAST(a AS VARBINARY(5)), CAST(d AS SMALLINT),
  CAST(a AS CHAR(3)) FROM orders;
--- case: join-of-keyed
-- about: FULL JOIN of aggregations
--- state
SELECT left_a, right_a, left_s FROM printed__left_records AS l FULL JOIN printed__right_records AS r USING (n)
--- case: semi-join
-- about: IN
--- state
SELECT left_a, left_b FROM printed__left_records, unnest(range(count)) WHERE matches > 0
--- case: anti-join
-- about: NOT EXISTS, on RocksDB
-- settings: state.backend.type=rocksdb
--- sql
SELECT id, lv FROM untimed_lefts AS l WHERE NOT EXISTS (SELECT 1 FROM untimed_rights AS r WHERE r.k = l.k);
--- state
SELECT left_id, left_lv FROM printed__left_records, unnest(range(count)) WHERE matches = 0
--- case: kept-for-an-hour
-- about: LEFT JOIN of an aggregation and a deduplication, with a state TTL
--- state
SELECT left_n, left_x, left_y, right_d FROM printed__left_records AS l LEFT JOIN printed__right_records AS r USING (n)
--- case: inner-join-rocksdb
-- about: JOIN on RocksDB in two subtasks
-- settings: state.backend.type=rocksdb
-- settings: parallelism.default=2
--- sql
SELECT l.id, l.lv, r.id AS rid, r.rv FROM untimed_lefts AS l INNER JOIN untimed_rights AS r ON l.k = r.k;
--- state
SELECT left_id, left_lv, right_id, right_rv FROM printed__left_records AS l INNER JOIN printed__right_records AS r USING (k)
--- case: full-join
-- about: FULL JOIN
--- sql
SELECT l.id, l.lv, r.id AS rid, r.rv FROM untimed_lefts AS l FULL JOIN untimed_rights AS r ON l.k = r.k;
--- state
SELECT left_id, left_lv, right_id, right_rv FROM printed__left_records AS l FULL JOIN printed__right_records AS r USING (k)
--- case: right-join-ttl
-- about: RIGHT JOIN with a state TTL
-- settings: table.exec.state.ttl=1 h
--- sql
SELECT l.id, l.lv, r.id AS rid, r.rv FROM untimed_lefts AS l RIGHT JOIN untimed_rights AS r ON l.k = r.k;
--- state
SELECT left_id, left_lv, right_id, right_rv FROM printed__left_records AS l RIGHT JOIN printed__right_records AS r USING (k)
--- case: left-join-mini-batch
-- about: LEFT JOIN in mini-batches
-- settings: table.exec.mini-batch.enabled=true
-- settings: table.exec.mini-batch.allow-latency=100 ms
-- settings: table.exec.mini-batch.size=10
--- sql
SELECT l.id, l.lv, r.id AS rid, r.rv FROM untimed_lefts AS l LEFT JOIN untimed_rights AS r ON l.k = r.k;
--- state
SELECT left_id, left_lv, right_id, right_rv FROM printed__left_records AS l LEFT JOIN printed__right_records AS r USING (k)
--- case: join-matches
-- about: rows of a FULL JOIN without a partner
-- compare: batch
--- sql
SELECT l.id, l.lv, r.id AS rid, r.rv FROM untimed_lefts AS l FULL JOIN untimed_rights AS r ON l.k = r.k;
--- state
SELECT left_id, NULL FROM printed__left_records WHERE matches = 0 UNION ALL SELECT NULL, right_id FROM printed__right_records WHERE matches = 0
--- batch
SELECT l.id, r.id FROM untimed_lefts AS l FULL JOIN untimed_rights AS r ON l.k = r.k WHERE l.id IS NULL OR r.id IS NULL;
--- case: join-three
-- about: JOIN of three tables
--- sql
SELECT l.id, r.id AS rid, t.id AS tid FROM untimed_lefts AS l JOIN untimed_rights AS r ON l.k = r.k
JOIN untimed_thirds AS t ON r.k = t.k;
--- state
SELECT left_id, left_id0, right_id FROM printed__left_records AS l JOIN printed__right_records AS r USING (k0)
--- case: join-by-types
-- about: JOIN with a key of a DECIMAL, a DATE and a BOOLEAN
--- sql
SELECT l.a, l.b, r.a AS ra FROM typed AS l JOIN typed AS r ON l.e = r.e AND l.day_of = r.day_of AND l.big = r.big;
--- state
SELECT left_a, left_b, right_a FROM printed__left_records AS l JOIN printed__right_records AS r USING (e, day_of, big), unnest(range(l.count * r.count))
--- case: join-of-sums
-- about: JOIN of aggregations with the same key
--- sql
SELECT l.a, l.s, r.n FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a) AS l
JOIN (SELECT a, COUNT(*) AS n FROM orders GROUP BY a) AS r ON l.a = r.a;
--- state
SELECT left_a, left_s, right_n FROM printed__left_records AS l JOIN printed__right_records AS r USING (a)
--- case: interval-join
-- about: interval join
-- compare: batch
--- state
SELECT left_a, left_b, left_ts FROM printed__intervaljoinleftcache WHERE left_ts >= TIMESTAMP '2024-01-01 00:00:40'
--- batch
SELECT a, b, ts FROM orders WHERE ts >= TIMESTAMP '2024-01-01 00:00:40';
--- case: late-interval-join
-- about: LEFT interval join
-- compare: closing
--- state
SELECT left_a, left_b, NULL::BIGINT FROM printed__intervaljoinleftcache WHERE NOT flag
--- case: temporal-join
-- about: temporal join
-- compare: batch
--- state
SELECT right_a, right_d, right_ts FROM printed__right
--- batch
SELECT a, d, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
--- case: temporal-join-expiring
-- about: temporal join with a state TTL
-- compare: batch
--- state
SELECT right_a, right_d, right_ts FROM printed__right
--- batch
SELECT a, d, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
--- case: top-n
-- about: Top-N over rows that are only added
--- state
SELECT a, b, d FROM printed
--- case: top-1
-- about: Top-1 over rows that are only added
--- state
SELECT a, b, d FROM printed
--- case: top-n-updating
-- about: Top-N over sums
--- state
SELECT c, s FROM printed QUALIFY row_number() OVER (PARTITION BY c ORDER BY s DESC) <= 2
--- case: top-n-counted
-- about: Top-N over counts that only grow
--- state
SELECT c, a, n FROM printed
--- case: top-1-counted
-- about: Top-1 over counts that only grow
--- state
SELECT c, a FROM printed
--- case: top-n-ranks
-- about: Top-N with the rank as a column
--- sql
SELECT a, b, r FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS r FROM orders
) WHERE r <= 2;
--- state
SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b DESC, position) AS r FROM printed QUALIFY r <= 2
--- case: top-n-all
-- about: Top-N without a key
--- sql
SELECT a, b FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY b DESC, d) AS r FROM orders
) WHERE r <= 4;
--- state
SELECT a, b FROM printed
--- case: top-n-rocksdb
-- about: Top-N on RocksDB in two subtasks
-- settings: state.backend.type=rocksdb
-- settings: parallelism.default=2
--- sql
SELECT a, b, d FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS r FROM untimed
) WHERE r <= 3;
--- state
SELECT a, b, d FROM printed
--- case: top-n-ttl
-- about: Top-N with a state TTL
-- settings: table.exec.state.ttl=1 h
--- sql
SELECT a, b, d FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY d DESC) AS r FROM orders
) WHERE r <= 2;
--- state
SELECT a, b, d FROM printed
--- case: top-n-mini-batch
-- about: Top-N over sums in mini-batches
-- settings: table.exec.mini-batch.enabled=true
-- settings: table.exec.mini-batch.allow-latency=100 ms
-- settings: table.exec.mini-batch.size=10
--- sql
SELECT a, s FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY s DESC) AS r FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a)
) WHERE r <= 3;
--- state
SELECT a, s FROM printed_2 ORDER BY s DESC LIMIT 3
--- case: top-n-retracting
-- about: Top-N over a FULL JOIN
--- sql
SELECT id, lv FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY lv DESC) AS r FROM (
  SELECT l.id, l.k, l.lv FROM untimed_lefts AS l LEFT JOIN untimed_rights AS r ON l.k = r.k AND r.rv > 100 WHERE r.id IS NULL
)
) WHERE r <= 1;
--- state
SELECT id, lv FROM printed QUALIFY row_number() OVER (PARTITION BY k ORDER BY lv DESC) <= 1
--- case: top-n-of-times
-- about: Top-N ordered by a time and a decimal
--- sql
SELECT a, e, t FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY t DESC, e) AS r FROM (SELECT a, e, CAST(ts AS TIMESTAMP(6)) AS t FROM typed)
) WHERE r <= 2;
--- state
SELECT a, field_1, field_2 FROM printed
--- case: sorted-limit
-- about: ORDER BY with LIMIT
--- state
SELECT a, b FROM printed
--- case: limited
-- about: LIMIT
--- state
SELECT a, b FROM printed
--- case: deduplicated
-- about: last row by event time
--- state
SELECT a, b, d FROM printed
--- case: last-row-of-processing
-- about: last row by processing time
--- state
SELECT a, b, d FROM printed
--- case: first-row
-- about: keys of first rows by event time
-- compare: batch
-- flink: 2.3
--- state
SELECT a FROM printed__already_emitted_state_boolean WHERE value
--- batch
SELECT DISTINCT a FROM orders;
--- case: first-row-expiring
-- about: keys of first rows by event time, with a state TTL
-- compare: batch
-- flink: 2.3
--- state
SELECT a FROM printed__already_emitted_state_boolean WHERE value
--- batch
SELECT DISTINCT a FROM orders;
--- case: first-row-kept
-- about: first row by event time
-- flink: 1.20
--- sql
SELECT a, b, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM orders) WHERE n = 1;
--- state
SELECT a, b, d FROM printed
--- case: first-row-mini-batch
-- about: first row by event time in mini-batches
-- settings: table.exec.mini-batch.enabled=true
-- settings: table.exec.mini-batch.allow-latency=100 ms
-- settings: table.exec.mini-batch.size=10
--- sql
SELECT a, b, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM orders) WHERE n = 1;
--- state
SELECT a, b, d FROM printed
--- case: last-row-mini-batch
-- about: last row by event time in mini-batches, on RocksDB
-- settings: table.exec.mini-batch.enabled=true
-- settings: table.exec.mini-batch.allow-latency=100 ms
-- settings: table.exec.mini-batch.size=10
-- settings: state.backend.type=rocksdb
--- sql
SELECT a, b, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
--- state
SELECT a, b, d FROM printed
--- case: last-row-keys
-- about: last row of two keys, with a state TTL
-- settings: table.exec.state.ttl=1 h
--- sql
SELECT i, big, a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY i, big ORDER BY ts DESC) AS n FROM typed) WHERE n = 1;
--- state
SELECT key_0, key_1, a, b FROM printed
--- case: first-row-of-processing
-- about: keys of first rows by processing time
-- compare: batch
--- state
SELECT a FROM printed__deduplicate_state WHERE value
--- batch
SELECT DISTINCT a FROM orders;
--- case: first-two-of-processing
-- about: number of first rows by processing time
-- compare: batch
--- state
SELECT a, value FROM printed__counterstate
--- batch
SELECT a, LEAST(COUNT(*), 2) FROM orders GROUP BY a;
--- case: materialized
-- about: sink that orders changes by key
-- compare: batch
-- flink: 2.3
--- state
SELECT c, n FROM sinkmaterializer
--- batch
SELECT MAX(c), COUNT(*) FROM orders GROUP BY a;
--- case: materialized-unnamed
-- about: sink that orders changes by key
-- compare: batch
-- settings: table.exec.sink.upsert-materialize=FORCE
-- flink: 1.20
--- sql
CREATE TABLE keyed (c STRING, n BIGINT, PRIMARY KEY (c) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO keyed SELECT c, n FROM (SELECT a, MAX(c) AS c, COUNT(*) AS n FROM orders GROUP BY a);
--- state
SELECT c, n FROM default_catalog_default_database_keyed
--- batch
SELECT MAX(c), COUNT(*) FROM orders GROUP BY a;
--- case: over
-- about: OVER a range of time
-- compare: batch
--- state
SELECT a, b, ts FROM printed__inputstate
--- batch
SELECT a, b, ts FROM (SELECT *, MAX(ts) OVER (PARTITION BY a) AS m FROM orders) WHERE ts >= m - INTERVAL '1' MINUTE;
--- case: over-last-sum
-- about: sum OVER a range of time
-- compare: batch
--- sql
SELECT a, SUM(b) OVER w, COUNT(*) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW);
--- state
SELECT a, sum_b, count_all FROM printed__accstate
--- batch
SELECT a, SUM(b), COUNT(*) FROM (SELECT *, MAX(ts) OVER (PARTITION BY a) AS m FROM orders)
WHERE ts >= m - INTERVAL '1' MINUTE GROUP BY a;
--- case: over-rows
-- about: OVER three rows
-- compare: batch
--- state
SELECT a, b FROM printed__inputstate
--- batch
SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n <= 3;
--- case: over-unbounded
-- about: OVER all rows before
-- compare: batch
--- state
SELECT a, sum_b, max_d FROM printed__accstate
--- batch
SELECT a, SUM(b), MAX(d) FROM orders GROUP BY a;
--- case: over-of-processing
-- about: OVER all rows before, by processing time
-- compare: batch
--- state
SELECT a, sum_b FROM printed
--- batch
SELECT a, SUM(b) FROM orders GROUP BY a;
--- case: over-by-value
-- about: OVER values that are not times
-- flink: 2.3
--- state
SELECT a, sum_b, c FROM printed__accmapstate JOIN printed__valuemapstate USING (a, d)
--- case: over-frames-of-processing
-- about: OVER three rows by processing time
-- compare: batch
--- state
SELECT a, b FROM printed__inputstate
--- batch
SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n <= 3;
