"""Tests of all three packages; a package itself, so that they share their parts."""
