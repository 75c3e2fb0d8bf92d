SELECT item, amount FROM sales
