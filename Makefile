# `make up` and `make test` are all that most people need; `make` lists the rest.
PYTHON ?= python3
# TORCH=no leaves torch out of `make up` and `make hub`
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

# Tests wait as much as they work, so four of them run on two cores, whole files each: two
# in the browser, beside two others. Threads of torch that spin for their turn would only
# be in the way. A page that is not drawn in time fails, so browsers go first. A thousand
# processes import the packages, so bytecode is kept.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# what is no browser's, the longest first: whoever is done takes the next, and so both end
# together
LONG := tests/labs tests/hub tests/extension 'tests/test_*.py'
PARTS = $(LONG) $(filter-out $(LONG) tests/e2e tests/gpu,$(sort \
	$(shell find tests -mindepth 2 -name 'test_*.py' | cut -d/ -f1,2)))

hub: setup-hub  ## set up, then start a class on this machine: JupyterHub, a course, a grader
	$(BIN)/warpbook hub $(ARGS)

test: setup-test check  ## set up for tests, then run every check and every test
	$(JLPM) test
	@rm -rf .cache/parts && mkdir -p .cache/parts; \
	export PATH="$(BIN):$$PATH" OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=; \
	parts() { failed=0; for part in $(PARTS); do \
	  mkdir ".cache/parts/$${part##*/}" 2> /dev/null || continue; \
	  nice -n 5 $(PYTEST) $$part || failed=1; done; return $$failed; }; \
	{ $(PYTEST) tests/e2e; browser=$$?; parts; exit $$(($$? | browser)); } \
	  > .cache/tests.log 2>&1 & first=$$!; \
	parts; others=$$?; wait $$first; first=$$?; cat .cache/tests.log; \
	exit $$((others | first))

test-postgres: setup-test  ## run the hub's tests, those in a browser too, with PostgreSQL
	export PATH="$(BIN):$$PATH"; WARPBOOK_TEST_DATABASE=postgres $(PYTEST) tests/hub/core tests/hub/service

test-ray: setup-test  ## run the tests on a real Ray: grading on a cluster, and what labs show of it
	@$(PYTHON) tools/setup_env.py ray
	$(BIN)/python -m pytest -m ray tests/hub/ray tests/labs/test_on_ray.py

test-slurm: setup-test  ## run the tests of servers as jobs of a Slurm; as root
	@$(PYTHON) tools/setup_env.py slurm
	$(BIN)/python -m pytest -m slurm tests/hub/spawners

test-cheats: setup-test  ## compose 500 attacks around wrong solutions of labs, without a GPU: none may pass
	$(BIN)/python -m tests.cheats.composed --variants 500

test-systemd: setup-test  ## run the tests of servers as units of a real systemd; as root
	export PATH="$(BIN):$$PATH"; python -m pytest -m systemd tests/hub/spawners

setup:  ## what `make up` sets up, without starting anything
	@$(PYTHON) tools/setup_env.py up --torch $(TORCH)

setup-hub:  ## what `make hub` sets up, without starting anything
	@$(PYTHON) tools/setup_env.py hub --torch $(TORCH)

setup-test:  ## what `make test` sets up: also torch, a compiler, Chromium, the hub's proxy
	@$(PYTHON) tools/setup_env.py test

setup-wheel:  ## what `make wheel` sets up
	@$(PYTHON) tools/setup_env.py up --torch no
	@$(BIN)/python -m build --version > /dev/null 2>&1 || $(BIN)/python -m pip install -q build

setup-docs:  ## what `make docs` sets up
	@$(PYTHON) tools/setup_env.py docs

# mypy takes one core for as long as all others do
check:  ## the static checks, cheapest first
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/protocol_types.py --check
	$(BIN)/mypy & types=$$!; \
	{ PYTHONPATH=extension:labs:monitors $(BIN)/lint-imports && $(BIN)/mkdocs build \
	  && ($(JLPM) lint); }; others=$$?; wait $$types && exit $$others

protocol:  ## write the TypeScript types anew from the Python ones
	$(BIN)/python tools/protocol_types.py

docs: setup-docs  ## build the docs as a site, with the API reference
	$(BIN)/mkdocs build
	@echo "The site is in $(CURDIR)/build/site/index.html"

pictures: setup-test  ## take the pictures of the docs anew; takes two minutes
	@PATH="$(BIN):$$PATH" $(BIN)/python tools/pictures.py

recordings: setup-test  ## film the short recordings of the docs anew; takes two minutes
	@PATH="$(BIN):$$PATH" $(BIN)/python tools/recordings.py

wheel: setup-wheel  ## sdists, and wheels built from them, of all distributions, into dist/
	$(BIN)/python tools/wheels.py

.PHONY: help up hub test test-postgres test-ray test-slurm test-cheats test-systemd setup setup-hub setup-test setup-wheel setup-docs check protocol docs pictures recordings wheel
