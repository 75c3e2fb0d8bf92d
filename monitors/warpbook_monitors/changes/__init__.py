"""What a person may change in a profiled cell, and what each change would give."""
