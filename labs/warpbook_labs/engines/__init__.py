"""Ways to run a submission; none knows another."""
