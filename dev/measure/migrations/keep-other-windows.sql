-- area: state migration, other windows
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE late (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/late', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: hop-to-tumble
-- about: HOP becomes TUMBLE of the same size
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hop-to-tumble-late
-- about: HOP becomes TUMBLE of the same size, and rows come late
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE late, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(TUMBLE(TABLE late, DESCRIPTOR(ts), INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hop-to-shorter-tumble
-- about: HOP becomes a shorter TUMBLE, and no metric counts rows
--- old
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '40' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-to-its-slices
-- about: HOP becomes TUMBLE of its slide
--- old
SELECT a, window_end, SUM(b), COUNT(DISTINCT c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(DISTINCT c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-shorter
-- about: HOP becomes shorter
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '80' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '40' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-shorter-late
-- about: HOP becomes shorter, and rows come late
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE late, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE late, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '80' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-slides-further
-- about: HOP slides further
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hop-slides-further-late
-- about: HOP slides further and becomes shorter, and rows come late
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE late, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE late, DESCRIPTOR(ts), INTERVAL '40' SECOND, INTERVAL '80' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-to-cumulate
-- about: HOP becomes CUMULATE
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE late, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(CUMULATE(TABLE late, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hop-to-shorter-cumulate
-- about: HOP becomes a shorter CUMULATE of longer steps
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE late, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(CUMULATE(TABLE late, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: cumulate-steps
-- about: CUMULATE takes longer steps, and rows come late
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(CUMULATE(TABLE late, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(CUMULATE(TABLE late, DESCRIPTOR(ts), INTERVAL '40' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: cumulate-to-tumble
-- about: CUMULATE becomes TUMBLE, and rows come late
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(CUMULATE(TABLE late, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(TUMBLE(TABLE late, DESCRIPTOR(ts), INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hop-offset
-- about: HOP that is shifted becomes TUMBLE that is shifted further
-- flink: 2.3
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE, INTERVAL '10' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '30' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-to-tumble-in-one-phase
-- about: HOP in two phases becomes TUMBLE in one
-- settings-new: table.optimizer.agg-phase-strategy=ONE_PHASE
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c), AVG(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hop-keys-to-tumble
-- about: HOP becomes TUMBLE while keys change places, a metric comes and another goes
--- old
SELECT a, c, window_end, SUM(b), MAX(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, c, window_start, window_end;
--- new
SELECT c, a, window_end, MIN(b), SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, a, window_start, window_end;
