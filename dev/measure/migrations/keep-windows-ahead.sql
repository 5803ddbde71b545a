-- area: state migration, other windows over rows that are ahead of the watermark and behind it
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '35' SECOND
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/late', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: hop-to-tumble
-- about: HOP becomes TUMBLE of the same size
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hop-to-shorter-tumble
-- about: HOP becomes a shorter TUMBLE
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-slides-further
-- about: HOP slides further and becomes shorter
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '90' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-shorter
-- about: HOP becomes shorter
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-to-cumulate
-- about: HOP becomes CUMULATE
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '40' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: cumulate-steps
-- about: CUMULATE takes longer steps
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: cumulate-to-tumble
-- about: CUMULATE becomes TUMBLE
--- old
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*), MIN(d), MAX(c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
