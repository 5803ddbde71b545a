-- area: print sinks: keys, types, names
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed, a primary key on both sides
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a;
--- case: window-key-added
-- about: primary key declared over a window aggregation
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT, PRIMARY KEY (a, w) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: window-key-removed
-- about: primary key dropped over a window aggregation
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT, PRIMARY KEY (a, w) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: group-key-added
-- about: primary key = group key declared
--- old
CREATE TABLE totals (a STRING, total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a;
--- case: group-key-removed
-- about: primary key = group key dropped
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a;
--- new
CREATE TABLE totals (a STRING, total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a;
--- case: renamed
-- about: sink renamed
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE sums (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO sums
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: columns-renamed
-- about: sink columns renamed
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (k STRING, since TIMESTAMP(3), amount BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: column-not-null
-- about: a sink column becomes NOT NULL
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING NOT NULL, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: column-wider
-- about: a sink column BIGINT → DECIMAL(20, 0)
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total DECIMAL(20, 0)) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: column-list-alone
-- about: the INSERT names its columns in another order, above the same aggregates
--- old
CREATE TABLE totals (x BIGINT, y BIGINT) WITH ('connector' = 'print');
INSERT INTO totals (x, y) SELECT SUM(b), SUM(d) FROM orders GROUP BY a;
--- new
CREATE TABLE totals (x BIGINT, y BIGINT) WITH ('connector' = 'print');
INSERT INTO totals (y, x) SELECT SUM(b), SUM(d) FROM orders GROUP BY a;
--- case: column-list-shorter-sink
-- about: the INSERT names another column for its only value
--- old
CREATE TABLE totals (x BIGINT, y BIGINT) WITH ('connector' = 'print');
INSERT INTO totals (x) SELECT SUM(b) FROM orders GROUP BY a;
--- new
CREATE TABLE totals (x BIGINT, y BIGINT) WITH ('connector' = 'print');
INSERT INTO totals (y) SELECT SUM(b) FROM orders GROUP BY a;
--- case: column-list
-- about: the INSERT names its columns in another order
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals (w, a, total)
SELECT window_end, a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: print-option
-- about: standard-error = true
--- old
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
CREATE TABLE totals (a STRING, w TIMESTAMP(3), total BIGINT) WITH ('connector' = 'print', 'standard-error' = 'true');
INSERT INTO totals
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: conflict-own-key-deduplicate
-- about: ON CONFLICT DO DEDUPLICATE added, the key is the query's
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO DEDUPLICATE;
--- case: conflict-own-key-error
-- about: ON CONFLICT DO ERROR added, the key is the query's
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO ERROR;
--- case: conflict-own-key-changed
-- about: ON CONFLICT DO NOTHING to DO DEDUPLICATE, the key is the query's
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO NOTHING;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT a, SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO DEDUPLICATE;
--- case: conflict-nothing-to-error
-- about: ON CONFLICT DO NOTHING to DO ERROR, the key is not the query's
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT UPPER(a), SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO NOTHING;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT UPPER(a), SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO ERROR;
--- case: conflict-error-to-nothing
-- about: ON CONFLICT DO ERROR to DO NOTHING, the key is not the query's
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT UPPER(a), SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO ERROR;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT UPPER(a), SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO NOTHING;
--- case: conflict-nothing-to-deduplicate
-- about: ON CONFLICT DO NOTHING to DO DEDUPLICATE, the key is not the query's
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT UPPER(a), SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO NOTHING;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT UPPER(a), SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO DEDUPLICATE;
--- case: conflict-deduplicate-to-nothing
-- about: ON CONFLICT DO DEDUPLICATE to DO NOTHING, all rows have one key
-- flink: 2.3
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT 'all', SUM(b)
FROM orders
GROUP BY c
ON CONFLICT DO DEDUPLICATE;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT 'all', SUM(b)
FROM orders
GROUP BY c
ON CONFLICT DO NOTHING;
--- case: conflict-deduplicate-added
-- about: ON CONFLICT DO DEDUPLICATE added where the setting asked for no clause
-- flink: 2.3
-- settings-old: table.exec.sink.require-on-conflict=false
--- old
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT UPPER(a), SUM(b)
FROM orders
GROUP BY a;
--- new
CREATE TABLE totals (a STRING, total BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO totals
SELECT UPPER(a), SUM(b)
FROM orders
GROUP BY a
ON CONFLICT DO DEDUPLICATE;
