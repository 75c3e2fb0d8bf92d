"""One module for each kind of change: what shows it, and what it does to a program."""
