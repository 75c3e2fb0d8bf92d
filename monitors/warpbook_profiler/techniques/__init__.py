"""One file a technique: its pattern, edit, question, trial, lab and documents.

`technique.py` says what a technique is, `registry.py` lists them and makes the views.
`host/` has those of the host's time, `gpu/` those of the GPU's, `models/` those of
models, `data/` those for what comes to the GPU, `operations/` those that take another
operation. Imports `checklist`, `advice` and what is below; torch in functions of
experiments alone.
"""
