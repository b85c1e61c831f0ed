CREATE STREAM Sales (sold TIMESTAMP, shop VARCHAR, paid DECIMAL(10, 2), pieces INT);

CREATE AGGREGATION SalesByShop AS
SELECT shop, sum(paid) AS paid, sum(pieces) AS pieces, avg(paid) FILTER (WHERE pieces > 1) AS averageOfMany
FROM Sales
GROUP BY shop, ROLLUP TIME sold EVERY MINUTE TO YEAR WITH (zone = 'Europe/Berlin', late = 'correct');
