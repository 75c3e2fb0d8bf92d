"""What is done with all of the data: backups, and erasing a person.

Imports `course`, `database`, `leases` and `notices`.
"""
