# The front doors of paritrace. Each target makes its own environment in .venv first.
#   make demo    the main job: two small trainings that differ by one mistake, captured and compared
#   make test    the fast tests          make test-slow   the slow ones
#   make check   format, lint, types, layers, generated documents
#   make bench   the measurements        make docs        the generated reference pages
#   make golden  rewrite the golden files after a meant change; read the diff before you commit it

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
WORKERS ?= 2
SLOW_WORKERS ?= 3
BIN := .venv/bin
CONSTRAINTS := requirements/constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: demo test test-slow check check-format check-lint check-types check-mypy check-pyright check-layers check-docs
.PHONY: format bench docs golden hooks clean
.DELETE_ON_ERROR:

demo: .venv/.ready
	$(BIN)/paritrace demo

# Neighbours stay in one worker, which makes what their module shares once.
test: .venv/.ready
	$(PYTEST) -n $(WORKERS) --dist worksteal

# One worker more than cores: many of these tests wait for processes, for signals, for a bound to pass.
test-slow: .venv/.ready .venv/.slow
	$(PYTEST) -n $(SLOW_WORKERS) --dist worksteal -m slow --durations=15

# `make -k check` goes on after the first part that fails; `make -j 2 check` runs the two type checkers side by side.
check: check-mypy check-pyright check-format check-lint check-layers check-docs

check-format: .venv/.ready
	$(BIN)/ruff format --check .

check-lint: .venv/.ready
	$(BIN)/ruff check .

check-types: check-mypy check-pyright

check-mypy: .venv/.ready .venv/.slow
	$(BIN)/mypy

check-pyright: .venv/.ready .venv/.slow
	$(BIN)/pyright --pythonpath $(BIN)/python

check-layers: .venv/.ready
	$(BIN)/lint-imports

check-docs: .venv/.ready
	$(BIN)/python -m docs.generate --check

format: .venv/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/.ready
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m docs.generate

docs: .venv/.ready
	$(BIN)/python -m docs.generate

golden: .venv/.ready
	PARITRACE_UPDATE_GOLDEN=1 $(PYTEST) -n $(WORKERS) -m "slow or not slow"
	$(BIN)/python -m docs.generate

hooks:
	git config core.hooksPath .githooks

clean:
	rm -rf .venv demo-out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Nothing is compiled ahead: of some twenty thousand modules that are installed, a fraction is ever imported.
# torch first and alone: any build of this release that the package index offers will do, and nothing later may replace it.
.venv/.ready: pyproject.toml requirements/dev.txt $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "paritrace needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile $(TORCH) -c $(CONSTRAINTS)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -e . -r requirements/dev.txt -c $(CONSTRAINTS)
	@touch $@

.venv/.slow: .venv/.ready requirements/slow.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -r requirements/slow.txt -c $(CONSTRAINTS)
	@touch $@
