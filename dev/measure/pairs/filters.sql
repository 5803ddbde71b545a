-- area: filters around a window aggregation
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- case: added-no-calc
-- about: filter added where no Calc was
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- case: removed-no-calc
-- about: filter removed where it was the only reason for a Calc
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: added-over-calc
-- about: filter added where a Calc was
--- old
SELECT a, window_end, SUM(b * 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b * 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- case: removed-over-calc
-- about: filter removed where a Calc stays
--- old
SELECT a, window_end, SUM(b * 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b * 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: value-changed
-- about: d > 2 → d > 1
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 1
GROUP BY a, window_start, window_end;
--- case: other-column
-- about: d > 2 → b > 2
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE b > 2
GROUP BY a, window_start, window_end;
--- case: respelled
-- about: d > 2 → 2 < d
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE 2 < d
GROUP BY a, window_start, window_end;
--- case: conjunct-added
-- about: AND b < 50 added
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2 AND b < 50
GROUP BY a, window_start, window_end;
--- case: conjuncts-swapped
-- about: d > 2 AND b < 50 the other way round
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2 AND b < 50
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE b < 50 AND d > 2
GROUP BY a, window_start, window_end;
--- case: having-added
-- about: HAVING SUM(b) > 20 added
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
HAVING SUM(b) > 20;
--- case: having-changed
-- about: HAVING SUM(b) > 20 → > 40
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
HAVING SUM(b) > 20;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
HAVING SUM(b) > 40;
--- case: having-removed
-- about: HAVING SUM(b) > 20 removed
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
HAVING SUM(b) > 20;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: having-new-metric
-- about: HAVING over an aggregate that was not there
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
HAVING MIN(b) > 4;
--- case: having-on-key
-- about: HAVING on the group key: pushed below
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
HAVING a <> 'y';
--- case: outer-where-metric
-- about: outer WHERE over an aggregate
--- old
SELECT *
FROM (
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
);
--- new
SELECT *
FROM (
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
)
WHERE s > 20;
--- case: outer-where-key
-- about: outer WHERE on the group key: pushed below
--- old
SELECT *
FROM (
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
);
--- new
SELECT *
FROM (
SELECT a, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end
)
WHERE a <> 'y';
--- case: window-filter-added
-- about: WHERE window_start > … added
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE window_start > TIMESTAMP '2024-01-01 00:00:00'
GROUP BY a, window_start, window_end;
--- case: window-filter-changed
-- about: WHERE window_end > 00:01 → > 00:02
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE window_end > TIMESTAMP '2024-01-01 00:01:00'
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE window_end > TIMESTAMP '2024-01-01 00:02:00'
GROUP BY a, window_start, window_end;
--- case: window-filter-removed
-- about: WHERE window_start > … removed
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE window_start > TIMESTAMP '2024-01-01 00:00:00'
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
