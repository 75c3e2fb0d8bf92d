"""Labs of a course, as data: nothing here is imported to list them."""
