-- area: early and late fire on legacy group windows
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
--- case: early-unchanged
-- about: early fire on both sides
-- settings-old: table.exec.emit.early-fire.enabled=true
-- settings-old: table.exec.emit.early-fire.delay=100 ms
-- settings-new: table.exec.emit.early-fire.enabled=true
-- settings-new: table.exec.emit.early-fire.delay=100 ms
-- rows-before: 6
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: early-added
-- about: early fire added
-- settings-new: table.exec.emit.early-fire.enabled=true
-- settings-new: table.exec.emit.early-fire.delay=100 ms
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: early-removed
-- about: early fire removed
-- settings-old: table.exec.emit.early-fire.enabled=true
-- settings-old: table.exec.emit.early-fire.delay=100 ms
-- rows-before: 6
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: early-delay
-- about: early fire every 100 ms → 200 ms
-- settings-old: table.exec.emit.early-fire.enabled=true
-- settings-old: table.exec.emit.early-fire.delay=100 ms
-- settings-new: table.exec.emit.early-fire.enabled=true
-- settings-new: table.exec.emit.early-fire.delay=200 ms
-- rows-before: 6
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: early-call-added
-- about: MIN(d) added under early fire
-- settings-old: table.exec.emit.early-fire.enabled=true
-- settings-old: table.exec.emit.early-fire.delay=100 ms
-- settings-new: table.exec.emit.early-fire.enabled=true
-- settings-new: table.exec.emit.early-fire.delay=100 ms
-- rows-before: 6
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d), MIN(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: early-size
-- about: size 1 min → 2 min under early fire
-- settings-old: table.exec.emit.early-fire.enabled=true
-- settings-old: table.exec.emit.early-fire.delay=100 ms
-- settings-new: table.exec.emit.early-fire.enabled=true
-- settings-new: table.exec.emit.early-fire.delay=100 ms
-- rows-before: 6
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a, TUMBLE(ts, INTERVAL '2' MINUTE);
--- case: early-added-hop
-- about: early fire added to HOP
-- settings-new: table.exec.emit.early-fire.enabled=true
-- settings-new: table.exec.emit.early-fire.delay=100 ms
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a, HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE);
--- case: session-unchanged
-- about: SESSION, nothing changed
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a, SESSION(ts, INTERVAL '20' SECOND);
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a, SESSION(ts, INTERVAL '20' SECOND);
--- case: late-unchanged
-- about: late fire on both sides, late rows after the savepoint
-- settings-old: table.exec.emit.late-fire.enabled=true
-- settings-old: table.exec.emit.late-fire.delay=0 s
-- settings-old: table.exec.emit.allow-lateness=5 min
-- settings-new: table.exec.emit.late-fire.enabled=true
-- settings-new: table.exec.emit.late-fire.delay=0 s
-- settings-new: table.exec.emit.allow-lateness=5 min
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: late-added
-- about: late fire and lateness added, late rows after the savepoint
-- settings-new: table.exec.emit.late-fire.enabled=true
-- settings-new: table.exec.emit.late-fire.delay=0 s
-- settings-new: table.exec.emit.allow-lateness=5 min
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: late-removed
-- about: late fire and lateness removed, late rows after the savepoint
-- settings-old: table.exec.emit.late-fire.enabled=true
-- settings-old: table.exec.emit.late-fire.delay=0 s
-- settings-old: table.exec.emit.allow-lateness=5 min
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: lateness-longer
-- about: lateness 5 min → 10 min, late rows after the savepoint
-- settings-old: table.exec.emit.late-fire.enabled=true
-- settings-old: table.exec.emit.late-fire.delay=0 s
-- settings-old: table.exec.emit.allow-lateness=5 min
-- settings-new: table.exec.emit.late-fire.enabled=true
-- settings-new: table.exec.emit.late-fire.delay=0 s
-- settings-new: table.exec.emit.allow-lateness=10 min
-- on-this-data: windows that ended more than 5 minutes before the savepoint are gone; a row that late begins them anew
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: late-call-added
-- about: MIN(d) added under late fire
-- settings-old: table.exec.emit.late-fire.enabled=true
-- settings-old: table.exec.emit.late-fire.delay=0 s
-- settings-old: table.exec.emit.allow-lateness=5 min
-- settings-new: table.exec.emit.late-fire.enabled=true
-- settings-new: table.exec.emit.late-fire.delay=0 s
-- settings-new: table.exec.emit.allow-lateness=5 min
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE), SUM(b), MAX(d), MIN(d)
FROM late
GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
