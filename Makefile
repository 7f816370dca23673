PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: setup demo test test-all speed leaderboards clean

setup: .venv/core          ## the virtual environment with the package and its core dependencies

demo: .venv/demo           ## tune a real model, with a progress bar
	$(BIN)/python examples/demo.py

test: .venv/test           ## lint, types, import contracts and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto -m "not oracle and not slow"

test-all: test .venv/all   ## the same, then oracles (GPyTorch, XGBoost), kills and other long tests
	$(BIN)/pytest -n auto -m "oracle or slow"
	$(BIN)/pytest tests/oracles

speed: .venv/all           ## measure suggestions beside Optuna's GPSampler and BoTorch
	rm -f bench/results/speed.jsonl bench/results/speed.jsonl.gz
	$(BIN)/calibo-bench reproduce speed --runs bench/results/speed.jsonl --out docs/results

leaderboards: .venv/all    ## compare with other optimizers, resuming the stored runs; reads CALIBO_DATA, takes many hours from scratch
	$(BIN)/calibo-bench install-peers optuna botorch hebo smac ax
	$(BIN)/calibo-bench reproduce functions functions-held-out tuning tuning-held-out \
		--jobs 2 --runs bench/results/leaderboards.jsonl --out docs/results
	$(BIN)/python bench/picture.py

clean:
	rm -rf .venv

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/demo: .venv/core
	$(PIP) --editable '.[demo]'
	touch $@

.venv/test: .venv/core bench/pyproject.toml
	$(PIP) --editable '.[test]' --editable ./bench
	touch $@

.venv/all: .venv/test
	$(PIP) --editable '.[oracles]' --editable './bench[papers,rivals,tuning]'
	touch $@
