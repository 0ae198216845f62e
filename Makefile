# Everything a developer or a newcomer runs. Bare `make` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
SOURCES := requirements-tools.lock requirements-dev.lock pyproject.toml package.json package-lock.json build_hooks/assets.py

COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11

.PHONY: help setup run test lint bench mutants house soak sample screenshots site audit lock clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Install everything into .venv (Python packages, front-end assets)

$(STAMP): $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Postroom needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-tools.lock
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

run: $(STAMP) ## Start the product on its sandbox mailbox and print the address
	@exec $(BIN)/postroom demo

lint: $(STAMP) ## ruff, pyright (strict), import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test: $(STAMP) ## Everything that must pass before a change lands: lint and every suite
	@$(BIN)/python tests/suites.py --lint

soak: $(STAMP) ## The big counts: hundreds of kills, thousands of seeds
	@POSTROOM_TEST_SCALE=soak $(BIN)/python tests/suites.py --soak

sample: $(STAMP) ## Checks that want real mail: make sample MAIL=folder
	@test -n "$(MAIL)" || { echo "usage: make sample MAIL=folder-of-eml-files"; exit 2; }
	@POSTROOM_SAMPLE_MAIL="$(MAIL)" $(BIN)/python -m pytest -s tests/sample

mutants: $(STAMP) ## Small wrong changes that no test notices: make mutants [ONLY="core/retry --all"]
	@$(BIN)/python tests/mutants.py $(ONLY)

house: $(STAMP) ## Lines by package, and what is said more than once: make house [WITH="--against COMMIT --list"]
	@$(BIN)/python tests/house.py $(WITH)

screenshots: $(STAMP) ## The pictures of the pages in docs/, made anew from the demo
	@POSTROOM_SCREENSHOTS=1 $(BIN)/python -m pytest -q tests/browser/test_whole_product.py

site: $(STAMP) ## The site of the documentation, into build/site
	@$(BIN)/zensical build --strict

bench: $(STAMP) ## Every speed claim, beside its peers, as one table
	@$(BIN)/python -m bench

audit: $(STAMP) ## A bill of materials into dist/, and known faults of the dependencies
	@$(BIN)/python build_hooks/audit.py

lock: ## Resolve the dependencies anew and write the lock files
	$(COMPILE) requirements-tools.in -o requirements-tools.lock
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) --extra discord pyproject.toml -o requirements-discord.lock
	$(COMPILE) --group dev pyproject.toml -o requirements-dev.lock

clean: ## Remove what was built or installed here
	rm -rf $(VENV) .peers dist build
