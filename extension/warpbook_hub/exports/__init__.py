"""What leaves the hub: grades, records and sources."""
