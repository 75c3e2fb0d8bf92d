"""Changes to a cell that are tried on copies of its state, and measured."""
