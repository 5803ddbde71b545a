-- area: several INSERTs
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE clicks (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/clicks', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE s1 (a STRING, total BIGINT) WITH ('connector' = 'print');
CREATE TABLE s2 (a STRING, total BIGINT) WITH ('connector' = 'print');
CREATE TABLE s3 (a STRING, total BIGINT) WITH ('connector' = 'print');
--- case: unchanged
-- about: two windowed queries
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- case: added-last
-- about: a third windowed query, last
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
INSERT INTO s3
SELECT a, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: added-first
-- about: a third windowed query, first
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s3
SELECT a, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- case: added-stateless
-- about: a stateless query of the same source
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
INSERT INTO s3
SELECT a, b
FROM orders
WHERE b > 4;
END;
--- case: removed-first
-- about: the first of three is gone
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s3
SELECT a, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- case: removed-last
-- about: the last of three is gone
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
INSERT INTO s3
SELECT a, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- case: reordered-equal-shape
-- about: two windowed queries of equal types change places
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT a, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s2
SELECT a, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: reordered-other-calc
-- about: two windowed queries over other columns change places
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: reordered-stateless
-- about: a windowed and a stateless query change places
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s3
SELECT a, b
FROM orders
WHERE b > 4;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s3
SELECT a, b
FROM orders
WHERE b > 4;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: reordered-two-sources
-- about: windowed queries of two sources change places
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s2
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: two-sources-unchanged
-- about: windowed queries of two sources
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: two-sources-other-spelling
-- about: BEGIN STATEMENT SET for EXECUTE STATEMENT SET BEGIN
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
BEGIN STATEMENT SET;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: second-call-changed
-- about: SUM(d) → MAX(d) in the second of two
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, SUM(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT c, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY c, window_start, window_end;
END;
--- case: stateless-value-changed
-- about: the filter of the stateless query changed its value
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s3
SELECT a, b
FROM orders
WHERE b > 4;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s3
SELECT a, b
FROM orders
WHERE b > 2;
END;
--- case: one-sink-unchanged
-- about: two queries into one sink
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: one-sink-reordered
-- about: two queries into one sink change places
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: one-sink-reordered-same-source
-- about: two queries of one source into one sink change places
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: one-sink-added
-- about: a second query into the same sink
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: one-sink-removed
-- about: the second query into the same sink is gone
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: one-sink-split
-- about: the second query goes into a sink of its own
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
INSERT INTO s2
SELECT a, SUM(b)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
END;
--- case: view-unchanged
-- about: two readers of one aggregation
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- new
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- case: view-reader-filter
-- about: the filter of one reader over the aggregate changed its value
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- new
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 40;
END;
--- case: view-reader-filter-added
-- about: one reader filters the aggregate
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums;
END;
--- new
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- case: view-reader-added
-- about: a third reader of one aggregation
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- new
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
INSERT INTO s3
SELECT a, s
FROM sums;
END;
--- case: view-reader-removed
-- about: one of two readers is gone
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- new
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
END;
--- case: view-other-columns
-- about: one reader reads another column: two aggregations
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums;
END;
--- new
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, m
FROM sums;
END;
--- case: view-readers-reordered
-- about: two readers of one aggregation change places
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- new
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
INSERT INTO s1
SELECT a, s
FROM sums;
END;
--- case: view-call-changed
-- about: SUM(b) → MAX(b) in the shared view
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- new
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, MAX(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- case: view-inlined
-- about: the shared view written into both readers
--- old
CREATE TEMPORARY VIEW sums AS
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM sums;
INSERT INTO s2
SELECT a, s
FROM sums
WHERE s > 20;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1
SELECT a, s
FROM (
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
);
INSERT INTO s2
SELECT a, s
FROM (
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
)
WHERE s > 20;
END;
