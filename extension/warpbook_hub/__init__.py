"""A class on one machine: its roster, its submissions, its queue and its marks."""
