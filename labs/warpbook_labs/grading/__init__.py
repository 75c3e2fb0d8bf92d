"""A submission graded by every engine that is here."""
