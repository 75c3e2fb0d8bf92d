"""What is done with all of the data: backups, and erasing a person."""
