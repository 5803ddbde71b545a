-- area: settings outside the plan
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: group-unchanged
-- about: a plain group aggregation, nothing changed
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: parallelism-up
-- about: parallelism 1 → 2
-- settings-old: table.exec.source.idle-timeout=300 ms
-- settings-old: parallelism.default=1
-- settings-new: table.exec.source.idle-timeout=300 ms
-- settings-new: parallelism.default=2
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: parallelism-down
-- about: parallelism 2 → 1
-- settings-old: table.exec.source.idle-timeout=300 ms
-- settings-old: parallelism.default=2
-- settings-new: table.exec.source.idle-timeout=300 ms
-- settings-new: parallelism.default=1
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: parallelism-up-group
-- about: parallelism 1 → 2 under a plain group aggregation
-- settings-old: table.exec.source.idle-timeout=300 ms
-- settings-old: parallelism.default=1
-- settings-new: table.exec.source.idle-timeout=300 ms
-- settings-new: parallelism.default=2
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: backend-rocksdb
-- about: state backend hashmap → rocksdb, canonical savepoint
-- settings-new: state.backend.type=rocksdb
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: backend-hashmap
-- about: state backend rocksdb → hashmap, canonical savepoint
-- settings-old: state.backend.type=rocksdb
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: backend-rocksdb-group
-- about: state backend hashmap → rocksdb under a plain group aggregation
-- settings-new: state.backend.type=rocksdb
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: object-reuse
-- about: object reuse switched on
-- settings-new: pipeline.object-reuse=true
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: object-reuse-off
-- about: object reuse switched off
-- settings-old: pipeline.object-reuse=true
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: ttl-window-added
-- about: TTL added to a window aggregation
-- settings-new: table.exec.state.ttl=1 h
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: ttl-window-removed
-- about: TTL removed from a window aggregation
-- settings-old: table.exec.state.ttl=1 h
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: ttl-group-added
-- about: TTL added to a plain group aggregation
-- settings-new: table.exec.state.ttl=1 h
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: ttl-group-removed
-- about: TTL removed from a plain group aggregation
-- settings-old: table.exec.state.ttl=1 h
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: ttl-group-longer
-- about: TTL 1 h → 2 h on a plain group aggregation
-- settings-old: table.exec.state.ttl=1 h
-- settings-new: table.exec.state.ttl=2 h
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: time-zone-windows
-- about: session time zone changed, windows over a TIMESTAMP_LTZ, whole windows away
-- settings-old: table.local-time-zone=UTC
-- settings-new: table.local-time-zone=Asia/Tokyo
--- old
CREATE TABLE moments (
  a STRING, b BIGINT, c STRING, d BIGINT, e BIGINT, x STRING, ts AS TO_TIMESTAMP_LTZ(e, 3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/moments', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE moments, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE moments (
  a STRING, b BIGINT, c STRING, d BIGINT, e BIGINT, x STRING, ts AS TO_TIMESTAMP_LTZ(e, 3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/moments', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE moments, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY a, window_start, window_end;
--- case: time-zone-windows-half
-- about: session time zone changed, windows over a TIMESTAMP_LTZ, half a window away
-- settings-old: table.local-time-zone=UTC
-- settings-new: table.local-time-zone=Asia/Kolkata
--- old
CREATE TABLE moments (
  a STRING, b BIGINT, c STRING, d BIGINT, e BIGINT, x STRING, ts AS TO_TIMESTAMP_LTZ(e, 3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/moments', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE moments, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE moments (
  a STRING, b BIGINT, c STRING, d BIGINT, e BIGINT, x STRING, ts AS TO_TIMESTAMP_LTZ(e, 3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/moments', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE moments, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY a, window_start, window_end;
--- case: time-zone
-- about: session time zone changed
-- settings-new: table.local-time-zone=Asia/Tokyo
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: mini-batch-window
-- about: mini-batch switched on over a window aggregation
-- settings-new: table.exec.mini-batch.enabled=true
-- settings-new: table.exec.mini-batch.allow-latency=100 ms
-- settings-new: table.exec.mini-batch.size=100
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: mini-batch-latency
-- about: mini-batch latency 100 ms → 200 ms
-- settings-old: table.exec.mini-batch.enabled=true
-- settings-old: table.exec.mini-batch.allow-latency=100 ms
-- settings-old: table.exec.mini-batch.size=100
-- settings-new: table.exec.mini-batch.enabled=true
-- settings-new: table.exec.mini-batch.allow-latency=200 ms
-- settings-new: table.exec.mini-batch.size=100
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: chaining-off
-- about: operator chaining switched off
-- settings-new: pipeline.operator-chaining.enabled=false
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: one-phase-group
-- about: ONE_PHASE on a plain group aggregation without mini-batch
-- settings-new: table.optimizer.agg-phase-strategy=ONE_PHASE
--- old
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d)
FROM orders
GROUP BY a;
--- case: unaligned
-- about: unaligned checkpoints switched on
-- settings-new: execution.checkpointing.unaligned.enabled=true
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: watermark-interval
-- about: watermark interval 20 ms → 50 ms
-- settings-new: pipeline.auto-watermark-interval=50 ms
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: restart-strategy
-- about: the job is restarted after failures
-- settings-new: restart-strategy.type=fixed-delay
-- settings-new: restart-strategy.fixed-delay.attempts=3
-- settings-new: restart-strategy.fixed-delay.delay=1 s
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: checkpointing
-- about: interval, minimum pause, timeout and tolerated failures of checkpoints
-- settings-new: execution.checkpointing.interval=2 h
-- settings-new: execution.checkpointing.min-pause=1 min
-- settings-new: execution.checkpointing.timeout=5 min
-- settings-new: execution.checkpointing.tolerable-failed-checkpoints=3
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
