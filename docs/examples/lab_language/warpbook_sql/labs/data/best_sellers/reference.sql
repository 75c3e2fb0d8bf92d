SELECT item, SUM(amount) FROM sales GROUP BY item ORDER BY 2 DESC, item
