"""An exam for `%%gpuprof`: cells of everyday work, and the change an expert makes."""
