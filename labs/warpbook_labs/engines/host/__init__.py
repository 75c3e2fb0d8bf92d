"""Host code on a GPU, beside a process that owns buffers, clock and verdict."""
