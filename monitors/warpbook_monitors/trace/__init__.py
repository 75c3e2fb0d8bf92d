"""What ran inside a cell: captured events as columns, and what they add up to."""
