-- Changes of which no state is computed, told before anything is read, each planned by a real Flink; see cases.sql.
-- refused: the operator and the reason.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), came AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: an OVER by event time gets other rows
-- refused: over-aggregate: the operator does not store its watermark, so the savepoint does not show which rows the job had emitted. Timers replace the watermark only for an event-time OVER with unchanged input rows and an unchanged event time
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts) FROM orders WHERE d < 5;
--- new
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts) FROM orders WHERE d < 7;
--- case: an OVER by event time takes the place of one by no clock
-- refused: over-aggregate: the operator does not store its watermark, so the savepoint does not show which rows the job had emitted. Timers replace the watermark only for an event-time OVER with unchanged input rows and an unchanged event time
--- old
SELECT a, SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b) OVER (PARTITION BY a ORDER BY ts) FROM orders;
--- case: an OVER by event time goes by processing time now
-- refused: over-aggregate: an OVER by processing time would never emit the rows that still wait for the watermark
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts) FROM orders;
--- new
SELECT a, b, SUM(d) OVER (PARTITION BY a ORDER BY came) FROM orders;
--- case: a first row by event time takes the place of an OVER
-- refused: deduplicate: the operator does not store its watermark, so the savepoint does not show which rows the job had emitted
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts) FROM orders;
--- new
SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM orders) WHERE n = 1;
