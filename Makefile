# `make up` and `make test` are all that most people need; `make` lists the rest.
PYTHON ?= python3
# TORCH=no leaves torch out of `make up`
TORCH ?= auto
# options of `warpbook up`, such as ARGS="--port 9999"
ARGS ?=
BIN := $(CURDIR)/.venv/bin
JLPM := cd frontend && PATH="$(BIN):$$PATH" $(BIN)/jlpm
.DEFAULT_GOAL := help
.NOTPARALLEL:

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

up: setup  ## set up, then start JupyterLab with the dashboard and the tour
	$(BIN)/warpbook up $(ARGS)

test: setup-test check  ## set up for tests, then run every check and every test
	$(JLPM) test
	@# the browser's tests wait much: beside all others they take no time of their own
	@export PATH="$(BIN):$$PATH"; \
	$(BIN)/python -m pytest tests/e2e > .cache/browser-tests.log 2>&1 & browser=$$!; \
	$(BIN)/python -m pytest --ignore=tests/e2e; others=$$?; \
	wait $$browser; browser=$$?; cat .cache/browser-tests.log; \
	exit $$((others | browser))

setup:  ## what `make up` sets up, without starting anything
	@$(PYTHON) tools/setup_env.py up --torch $(TORCH)

setup-test:  ## what `make test` sets up: also torch, a compiler, Chromium, the hub's proxy
	@$(PYTHON) tools/setup_env.py test

check:  ## the static checks, cheapest first
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/protocol_types.py --check
	PYTHONPATH=extension:labs:monitors $(BIN)/lint-imports
	$(BIN)/mypy
	$(JLPM) lint

protocol:  ## write the TypeScript types anew from the Python ones
	$(BIN)/python tools/protocol_types.py

wheel:  ## sdist, and a wheel built from that sdist, into dist/
	$(BIN)/python -m build

.PHONY: help up test setup setup-test check protocol wheel
