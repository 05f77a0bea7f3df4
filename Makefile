# Everything happens in .venv, which any target makes for itself on a fresh machine with Python 3.11 or later.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: setup demo check test hostile faults lint bench docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs,vision,export,ray]'
	touch $(READY)

demo: setup
	$(BIN)/pinoise demo

# What a change needs before it is shown: no slow test, no other process, no hostile input.
check: setup
	$(BIN)/python -m pytest --numprocesses auto --quiet -m 'not (slow or processes or hostile)'

test: setup
	$(BIN)/python -m pytest --numprocesses auto --quiet

# Thousands of bad inputs; HOSTILE="--seed 3 --only data" runs others, HOSTILE="--case data/17" one of them again.
hostile: setup
	$(BIN)/python -m tests.hostile.run $(HOSTILE)

# Hundreds of kills at random instants; FAULTS="--seed 3 --only images" runs others, FAULTS="--case images/2" one again.
faults: setup
	$(BIN)/python -m tests.faults.run $(FAULTS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Ratios of speed and memory against their aims, in about eight minutes; BENCH="--only steps fits" measures some.
bench: setup
	$(BIN)/python benchmarks/bench.py $(BENCH)

# The site in build/docs, with the tutorials run; a broken link or a tutorial that fails stops it.
docs: setup
	PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +
