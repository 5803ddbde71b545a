CREATE TABLE orders (
  customer STRING, amount BIGINT, item STRING, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time
) WITH ('connector' = 'kafka', 'topic' = 'orders');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
INSERT INTO totals
SELECT customer, SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' MINUTE))
GROUP BY customer, window_start, window_end;
