PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: setup demo test speed choices spaces calibration clean

setup: .venv/core          ## the virtual environment with the package and its core dependencies

demo: .venv/demo           ## tune a real model, with a progress bar
	$(BIN)/python examples/demo.py

test: .venv/test           ## everything that must hold
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

speed: .venv/test          ## measure suggestions beside Optuna's GPSampler and BoTorch
	$(BIN)/python benchmarks/speed.py

choices: .venv/test        ## compare values of the engine's defaults; resumable
	$(BIN)/python benchmarks/choices.py run
	$(BIN)/python benchmarks/choices.py table

spaces: .venv/test         ## conditions, mixed kinds and constraints beside Optuna's samplers; resumable
	$(BIN)/python benchmarks/spaces.py run
	$(BIN)/python benchmarks/spaces.py table

calibration: .venv/test    ## recalibrators on made-up streams, what calibration costs, Forrester; resumable
	$(BIN)/python benchmarks/calibration.py streams
	$(BIN)/python benchmarks/calibration.py cost
	$(BIN)/python benchmarks/forrester.py run
	$(BIN)/python benchmarks/forrester.py table

clean:
	rm -rf .venv

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/demo: .venv/core
	$(PIP) --editable '.[demo]'
	touch $@

.venv/test: .venv/core
	$(PIP) --editable '.[test]'
	touch $@
