# Everything a developer or a newcomer runs. Bare `make` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
UV_VERSION := 0.13.7
SOURCES := requirements-dev.lock pyproject.toml package.json package-lock.json build_hooks/assets.py

.PHONY: help setup run test lint bench soak sample lock clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Install everything into .venv (Python packages, front-end assets)

$(STAMP): $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Postroom needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(STAMP)

run: $(STAMP) ## Start the product on its sandbox mailbox and print the address
	@exec $(BIN)/postroom demo

lint: $(STAMP) ## ruff, pyright (strict), import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test: $(STAMP) lint ## Everything that must pass before a change lands
	@$(BIN)/python tests/suites.py

soak: $(STAMP) ## The big counts: hundreds of kills, thousands of seeds
	@POSTROOM_TEST_SCALE=soak $(BIN)/python tests/suites.py --soak

sample: $(STAMP) ## Checks that want real mail: make sample MAIL=folder
	@test -n "$(MAIL)" || { echo "usage: make sample MAIL=folder-of-eml-files"; exit 2; }
	@POSTROOM_SAMPLE_MAIL="$(MAIL)" $(BIN)/python -m pytest -s tests/sample

bench: $(STAMP) ## Every speed claim, beside its peers, as one table
	@$(BIN)/python -m bench

lock: ## Resolve the dependencies anew and write the lock files
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --group dev pyproject.toml -o requirements-dev.lock

clean: ## Remove what was built or installed here
	rm -rf $(VENV) .peers dist build
