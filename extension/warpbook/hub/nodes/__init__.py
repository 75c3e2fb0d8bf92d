"""Nodes whose agents tell who holds their GPUs: registered, counted, shown."""
