# Everything runs from a private environment in .venv, built from Python 3.11 and make alone.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Two at once of what does not depend on each other: kernels compile while types are checked.
MAKEFLAGS += --jobs=2
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# Tests that packages bring are not run: torch's are programs, those of others lose their bytecode.
LEAN := rm -rf .venv/lib/python3*/site-packages/torch/test .venv/lib/python3*/site-packages/torch/bin/test_*; \
	find .venv/lib \( -path '*/tests/*' -o -path '*/test/*' \) -name '*.pyc' -delete
# One thread per process: the tests run two processes, and results do not depend on the machine.
# SCIPY_ARRAY_API lets scikit-learn run all of its estimator checks.
# A whole suite takes a lock: two at once on one machine would only slow each other down.
# A file stays in one process: what its tests share is made once. tests/conftest.py says which come first.
RUN := -n 2 --dist loadfile --no-loadscope-reorder
# Compiled test files are kept, also where Python is told to write none: collecting takes half as long.
SINGLE := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 SCIPY_ARRAY_API=1
PYTEST := $(SINGLE) $(BIN)/pytest $(RUN)
SUITE := $(SINGLE) $(BIN)/python tests/locked.py $(BIN)/pytest $(RUN)
FAST := not slow and not paper and not browser and not fault and (not validity or quick_validity)
# Parity tables, where they lie beside the project; tests that need them say so when they skip.
ifneq ($(wildcard ../shared/data),)
export COUNTERMOVE_PARITY_DATA ?= $(abspath ../shared/data)
endif
export MPLBACKEND := Agg
# What the golden set was made with; PYTHONPATH=.cache/frozen/site runs it.
FROZEN := 19d3efb8

# All that compiled kernels are made from.
KERNELS := $(wildcard src/countermove/response/*.py src/countermove/response/exact/*.py \
	src/countermove/training/*.py src/countermove/scores/trees.py src/countermove/*/compilation.py)

.PHONY: help setup setup-develop serm test test-all test-slow test-papers test-validity test-text test-airflow test-mlflow test-models lint types imports docs docs-viz pictures viz bench frozen pins clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: .venv/.kernels ## Build the environment that running and kedro-viz need
setup-develop: .venv/.develop ## Add what tests, types and documentation need

# Every stamp is newer than all that it was made from; a change of pins builds from nothing.
.venv/.runtime: constraints.txt requirements/runtime.txt
	$(PYTHON) -m venv --clear .venv
	$(INSTALL) "$$(grep '^torch==' requirements/runtime.txt)"
	$(INSTALL) "setuptools>=77" -r requirements/runtime.txt
	$(INSTALL) --no-deps --no-build-isolation -e .
	$(BIN)/pip check
	$(LEAN)
	touch $@

# Two processes compile, before the first run or test would; again when a source has changed.
.venv/.kernels: .venv/.runtime $(KERNELS)
	$(BIN)/python -m compileall -q src
	$(BIN)/kedro countermove compile
	touch $@

# Where tests need both, nothing compiles while packages are being installed.
ifneq ($(filter test% bench,$(MAKECMDGOALS)),)
.venv/.kernels: | .venv/.develop
endif

.venv/.develop: .venv/.runtime requirements/develop.txt
	$(INSTALL) -r requirements/develop.txt
	$(BIN)/pip check
	touch $@

serm: setup ## Train, calibrate, evaluate and report on the embedded credit table
	$(BIN)/kedro run --pipeline=serm

lint: setup-develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup-develop
	$(BIN)/mypy

imports: setup-develop
	$(BIN)/lint-imports

docs: setup-develop ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-viz: setup-develop ## The same, with the pipelines and the previews of the last run in site/viz/
	$(BIN)/kedro viz build --include-previews
	NO_MKDOCS_2_WARNING=1 COUNTERMOVE_DOCS_VIZ=build $(BIN)/mkdocs build --strict --quiet

pictures: setup-develop ## Measure and draw the pictures of the documentation again; photograph the last run
	OMP_NUM_THREADS=1 $(BIN)/python docs/pictures/make.py
	OMP_NUM_THREADS=1 $(BIN)/python docs/pictures/screens.py

test: lint types imports docs setup ## Lint, types, import contract, documentation, fast tests
	$(SUITE) -m "$(FAST)"

test-all: lint types imports docs setup ## All of it: also slow, validity, paper, browser and fault checks
	$(SUITE) -m "not long"

# The parts of test-all beyond test, each by itself: together they take hours of two cores.
test-slow: setup-develop setup ## Slow, browser and fault tests
	$(SUITE) -m "(slow or browser or fault) and not validity and not paper"

test-papers: setup-develop setup ## Published figures
	$(SUITE) -m "paper"

test-validity: setup-develop setup ## Monte-Carlo tests that guarantees hold as often as they say
	$(SUITE) -m "validity and not paper and not long"

test-text: setup-develop ## Recourse on texts with its extra
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .cache/text-extra -r requirements/text.txt
	PYTHONPATH=$(CURDIR)/.cache/text-extra HF_HUB_OFFLINE=1 $(PYTEST) tests/experiments/test_recourse_text.py tests/pipelines/test_recourse_text.py

test-airflow: setup-develop ## The Airflow DAG of the retraining, with its extra beside the environment
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .cache/airflow-extra -r requirements/airflow.txt
	PYTHONPATH=$(CURDIR)/.cache/airflow-extra $(PYTEST) tests/pipelines/retrain/test_airflow.py

test-mlflow: setup-develop ## Decisions logged to MLflow, with its extra beside the environment
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .cache/mlflow-extra -r requirements/mlflow.txt
	PYTHONPATH=$(CURDIR)/.cache/mlflow-extra $(PYTEST) tests/pipelines/retrain/test_mlflow_logging.py

test-models: setup-develop ## Models of XGBoost and CatBoost too, beside the environment
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .cache/models-extra -c constraints.txt xgboost catboost six graphviz
	PYTHONPATH=$(CURDIR)/.cache/models-extra $(BIN)/python -c "import catboost, xgboost"
	PYTHONPATH=$(CURDIR)/.cache/models-extra $(PYTEST) tests/scores/adopted

viz: setup ## Look at the pipelines in a browser
	$(BIN)/kedro viz run

bench: setup-develop setup ## Measure speed and memory; writes the tables of docs/benchmarks.md
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

frozen: setup-develop ## The wheel of the frozen commit in .cache/frozen, to compare results and times with
	rm -rf .cache/frozen && mkdir -p .cache/frozen/source
	git archive $(FROZEN) | tar -x -C .cache/frozen/source
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation -w .cache/frozen .cache/frozen/source
	$(BIN)/pip install --quiet --no-deps --target .cache/frozen/site .cache/frozen/*.whl

pins: setup-develop ## Write constraints.txt again from what is installed
	{ head -n 1 constraints.txt; $(BIN)/pip freeze --all --exclude-editable | grep -v '^pip==' | sed 's/+cpu$$//'; } > .constraints.new
	mv .constraints.new constraints.txt

clean: ## Remove the environment and everything a run made
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
