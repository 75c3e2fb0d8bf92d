"""The whole product in a real browser."""
