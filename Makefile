# Two commands for a newcomer: `make demo` and `make test`. Both set themselves up in .venv; the rest is for people who build.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements/constraints.txt
JOBS ?= 2
export PYTHONUTF8 = 1

.DEFAULT_GOAL := help
.PHONY: help demo test check format lint types floors pytest soak bench clean

help: ## say what the targets do
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("error: gyrecheck needs Python 3.10 or newer, $(PYTHON) is %d.%d (hint: make PYTHON=python3.11 ...)" % sys.version_info[:2] if sys.version_info < (3, 10) else 0)'
	@$(PYTHON) -c 'import ensurepip' || { echo "error: this Python has no ensurepip (hint: install the python3-venv package)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-loop: pyproject.toml requirements/constraints.txt | $(BIN)/python
	@echo "setting up $(VENV) (once; torch is the large one)"
	$(PIP) --editable '.[loop]'
	@touch $@

$(VENV)/.ready-test: pyproject.toml requirements/constraints.txt | $(VENV)/.ready-loop
	$(PIP) --editable '.[test]'
	@touch $@

demo: $(VENV)/.ready-loop ## a healthy loop balanced, then a broken one named; about a minute
	@$(BIN)/gyrecheck demo

test: $(VENV)/.ready-test ## everything CI checks: lint, types, floors, tests
	@$(MAKE) --no-print-directory lint types floors pytest

lint: $(VENV)/.ready-test ## ruff, all rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .

types: $(VENV)/.ready-test ## mypy --strict over gyrecheck and reference_loop
	@$(BIN)/mypy

floors: $(VENV)/.ready-test ## import-linter: imports go down the floors only
	@$(BIN)/lint-imports --no-cache

pytest: $(VENV)/.ready-test ## the tests alone
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

soak: $(VENV)/.ready-test ## long repetitions: kills, seeds, rotations
	@$(BIN)/python -m pytest -q -m soak

bench: $(VENV)/.ready-test ## ratios against what a user has today; see bench/README.md
	@for script in bench/hook.py bench/lint.py bench/ledger.py bench/handoff.py bench/loop.py; do \
		echo "== $$script"; $(BIN)/python $$script || exit 1; done

format: $(VENV)/.ready-test ## rewrite to the house style
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

clean: ## remove everything that is not source
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
