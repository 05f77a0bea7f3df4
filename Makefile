# Everything happens in .venv, which any target makes for itself on a fresh machine with Python 3.11 or later.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: setup demo test hostile lint bench docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs,vision,export]'
	touch $(READY)

demo: setup
	$(BIN)/pinoise demo

test: setup
	$(BIN)/python -m pytest --numprocesses auto --quiet

# Thousands of bad inputs; HOSTILE="--seed 3 --only data" runs others, HOSTILE="--case data/17" one of them again.
hostile: setup
	$(BIN)/python -m tests.hostile.run $(HOSTILE)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python benchmarks/step_cost.py

# The site in build/docs, with the tutorials run; a broken link or a tutorial that fails stops it.
docs: setup
	PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +
