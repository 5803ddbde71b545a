-- area: state migration, rows that are kept
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: last-by-time-added
-- about: last-by-time: a column comes
--- old
SELECT a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- new
SELECT a, b, c
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- case: last-by-time-removed
-- about: last-by-time: a column goes
--- old
SELECT a, b, c, d
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- new
SELECT a, d, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- case: last-by-time-reordered
-- about: last-by-time: columns change places
--- old
SELECT a, b, d
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- new
SELECT d, a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS place FROM orders) WHERE place = 1;
--- case: last-by-arrival-added
-- about: last-by-arrival: a column comes
--- old
SELECT a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p DESC) AS place FROM orders) WHERE place = 1;
--- new
SELECT a, b, c
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p DESC) AS place FROM orders) WHERE place = 1;
--- case: last-by-arrival-removed
-- about: last-by-arrival: a column goes
--- old
SELECT a, b, c, d
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p DESC) AS place FROM orders) WHERE place = 1;
--- new
SELECT a, d, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p DESC) AS place FROM orders) WHERE place = 1;
--- case: last-by-arrival-reordered
-- about: last-by-arrival: columns change places
--- old
SELECT a, b, d
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p DESC) AS place FROM orders) WHERE place = 1;
--- new
SELECT d, a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p DESC) AS place FROM orders) WHERE place = 1;
--- case: first-by-time-added
-- about: first-by-time: a column comes
--- old
SELECT a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts ASC) AS place FROM orders) WHERE place = 1;
--- new
SELECT a, b, c
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts ASC) AS place FROM orders) WHERE place = 1;
--- case: first-by-time-removed
-- about: first-by-time: a column goes
--- old
SELECT a, b, c, d
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts ASC) AS place FROM orders) WHERE place = 1;
--- new
SELECT a, d, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts ASC) AS place FROM orders) WHERE place = 1;
--- case: first-by-time-reordered
-- about: first-by-time: columns change places
--- old
SELECT a, b, d
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts ASC) AS place FROM orders) WHERE place = 1;
--- new
SELECT d, a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts ASC) AS place FROM orders) WHERE place = 1;
--- case: top-added
-- about: Top-2: columns come
--- old
SELECT a, b, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- new
SELECT a, b, place, c, d
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- case: top-removed
-- about: Top-2: columns go
--- old
SELECT a, b, c, d, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- new
SELECT a, b, d, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- case: top-by-two
-- about: Top-3 by two columns: a column goes
--- old
SELECT a, b, c, d, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY d, b DESC) AS place FROM orders) WHERE place <= 3;
--- new
SELECT a, b, d, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY d, b DESC) AS place FROM orders) WHERE place <= 3;
--- case: top-unnumbered
-- about: Top-2 without its number: a column comes
--- old
SELECT a, b
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- new
SELECT a, b, c
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM orders) WHERE place <= 2;
--- case: top-strings
-- about: Top-2 by a string: a column goes
--- old
SELECT a, b, c, d, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY c) AS place FROM orders) WHERE place <= 2;
--- new
SELECT a, c, b, place
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY c) AS place FROM orders) WHERE place <= 2;
