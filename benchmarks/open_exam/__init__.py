"""An exam for anything that says what holds a trace of PyTorch back; see README.md."""
