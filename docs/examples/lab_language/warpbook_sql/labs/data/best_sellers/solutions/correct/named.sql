SELECT item, TOTAL(amount) AS total FROM sales GROUP BY item ORDER BY total DESC, item ASC
