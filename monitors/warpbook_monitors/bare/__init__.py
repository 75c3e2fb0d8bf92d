"""The bare run of a profiled cell: its trace replayed without the profiler's part."""
