-- area: state migration, jobs of several queries
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE clicks (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/clicks', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE sums (a STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE most (a STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE counts (a STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE plain (a STRING, n BIGINT) WITH ('connector' = 'print');
--- case: insert-added
-- about: an INSERT comes
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO plain SELECT UPPER(a), b FROM orders WHERE b > 4;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO plain SELECT UPPER(a), b FROM orders WHERE b > 4;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
END;
--- case: insert-added-first
-- about: an INSERT comes first
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO plain SELECT UPPER(a), b FROM orders WHERE b > 4;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO plain SELECT UPPER(a), b FROM orders WHERE b > 4;
END;
--- case: insert-added-other-source
-- about: an INSERT over another source comes
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO plain SELECT UPPER(a), b FROM orders WHERE b > 4;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO plain SELECT UPPER(a), b FROM orders WHERE b > 4;
END;
--- case: insert-removed
-- about: an INSERT goes
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
END;
--- case: insert-removed-first
-- about: the first INSERT goes
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
END;
--- case: inserts-reordered
-- about: INSERTs change places
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
END;
--- case: insert-changed
-- about: one of three INSERTs changes its metric
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MIN(d) FROM orders GROUP BY a;
INSERT INTO counts SELECT a, COUNT(*) FROM clicks GROUP BY a;
END;
--- case: insert-stateless-added
-- about: an INSERT that keeps nothing comes
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO plain SELECT UPPER(a), b FROM orders WHERE b > 4;
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
END;
--- case: insert-stateless-removed
-- about: an INSERT that keeps nothing goes
--- old
EXECUTE STATEMENT SET BEGIN
INSERT INTO plain SELECT UPPER(a), b FROM orders WHERE b > 4;
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
END;
--- new
EXECUTE STATEMENT SET BEGIN
INSERT INTO sums SELECT a, SUM(b) FROM orders GROUP BY a;
INSERT INTO most SELECT a, MAX(d) FROM orders GROUP BY a;
END;
--- case: union-reordered
-- about: tables of a UNION change places
--- old
SELECT a, SUM(b) FROM (SELECT a, b FROM orders UNION ALL SELECT a, b FROM clicks) GROUP BY a;
--- new
SELECT a, SUM(b) FROM (SELECT a, b FROM clicks UNION ALL SELECT a, b FROM orders) GROUP BY a;
--- case: union-metric-added
-- about: a metric is added over a UNION
--- old
SELECT a, SUM(b) FROM (SELECT a, b, d FROM orders UNION ALL SELECT a, b, d FROM clicks) GROUP BY a;
--- new
SELECT a, SUM(b), MAX(d) FROM (SELECT a, b, d FROM orders UNION ALL SELECT a, b, d FROM clicks) GROUP BY a;
--- case: join-below
-- about: a metric is added over a join
--- old
SELECT a, SUM(n) FROM (SELECT o.a, p.b AS n, p.d FROM orders AS o JOIN clicks AS p ON o.a = p.a) GROUP BY a;
--- new
SELECT a, SUM(n), MAX(n) FROM (SELECT o.a, p.b AS n, p.d FROM orders AS o JOIN clicks AS p ON o.a = p.a) GROUP BY a;
