"""Who holds which GPU of this node, what it did for them, and the way to a hub."""
