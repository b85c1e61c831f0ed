SELECT STREAM TUMBLE_END(rowtime, INTERVAL '1' HOUR) AS rowtime, product, SUM(units) AS units
FROM Orders
GROUP BY TUMBLE(rowtime, INTERVAL '1' HOUR), product
