# Everything a developer or a newcomer runs. Bare `make` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two states of one environment: everything for development, or only what running needs. Running takes the first if it is there.
READY := $(VENV)/.ready
RUNS := $(VENV)/.runs
SOURCES := requirements-tools.lock pyproject.toml package.json package-lock.json build_hooks/assets.py

COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11

.PHONY: help setup run test lint bench mutants house soak sample screenshots site audit dist release lock clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Install everything for development into .venv (Python packages, front-end assets)

# The tools that build the package come with hashes too. Node is among them only if the front-end assets changed; those who
# only run Postroom do not keep its 200 MB in their cache.
define install
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Postroom needs Python 3.11 or newer: install it, or name it with PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }
	@rm -f $(READY) $(RUNS)
	@echo "Installing $(1) into $(VENV)"
	@{ $(BIN)/python -m pip install --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-tools.lock && \
	  $(BIN)/uv pip sync --python $(BIN)/python --require-hashes $(1) && \
	  $(BIN)/uv pip install $(2) --python $(BIN)/python --no-deps --build-constraints requirements-dev.lock --editable . ; \
	} >$(VENV)/install.log 2>&1 || { tail -n 3 $(VENV)/install.log; \
	  echo "Postroom could not be installed: check the network connection and try again (all output: $(VENV)/install.log)"; exit 1; }
	@touch $@
endef

$(READY): requirements-dev.lock $(SOURCES)
	$(call install,requirements-dev.lock)

$(RUNS): requirements.lock $(SOURCES)
	$(call install,requirements.lock,--no-cache)
	@$(BIN)/uv pip uninstall --quiet --python $(BIN)/python uv setuptools

run: $(or $(wildcard $(READY)),$(RUNS)) ## Start the product on its sandbox mailbox and print the address
	@exec $(BIN)/postroom demo

lint: $(READY) ## ruff, pyright (strict), import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test: $(READY) ## Everything that must pass before a change lands: lint and every suite
	@$(BIN)/python tests/suites.py --lint

soak: $(READY) ## The big counts: hundreds of kills, thousands of seeds
	@POSTROOM_TEST_SCALE=soak $(BIN)/python tests/suites.py --soak

sample: $(READY) ## Checks that want real mail: make sample MAIL=folder
	@test -n "$(MAIL)" || { echo "usage: make sample MAIL=folder-of-eml-files"; exit 2; }
	@POSTROOM_SAMPLE_MAIL="$(MAIL)" $(BIN)/python -m pytest -s tests/sample

mutants: $(READY) ## Small wrong changes that no test notices: make mutants [ONLY="core/retry --all"]
	@$(BIN)/python tests/mutants.py $(ONLY)

house: $(READY) ## Lines by package, and what is said more than once: make house [WITH="--against COMMIT --list"]
	@$(BIN)/python tests/house.py $(WITH)

screenshots: $(READY) ## The pictures of the pages in docs/, made anew from the demo
	@POSTROOM_SCREENSHOTS=1 $(BIN)/python -m pytest -q tests/browser/test_whole_product.py

site: $(READY) ## The site of the documentation, into build/site
	@$(BIN)/zensical build --strict

bench: $(READY) ## Every speed claim, beside its peers, as one table
	@$(BIN)/python -m bench

audit: $(READY) ## A bill of materials into dist/, and known faults of the dependencies
	@$(BIN)/python build_hooks/audit.py

dist: $(or $(wildcard $(READY)),$(RUNS)) ## Wheel, sdist and constraints of this clone, into dist/: install it from there
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-tools.lock
	@rm -rf dist
	@$(BIN)/uv build --quiet --require-hashes --build-constraints requirements-dev.lock --no-create-gitignore --out-dir dist .
	@$(BIN)/python build_hooks/constraints.py >dist/constraints.txt
	@echo "dist/ has what to install: docs/how-to/install.md says how"

release: $(READY) ## Wheel, sdist, bills of materials, audit and checksums of the last commit, into dist/
	@$(BIN)/python build_hooks/release.py

lock: ## Resolve the dependencies anew and write the lock files
	$(COMPILE) requirements-tools.in -o requirements-tools.lock
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) --extra discord pyproject.toml -o requirements-discord.lock
	$(COMPILE) --group dev pyproject.toml -o requirements-dev.lock

clean: ## Remove what was built or installed here
	rm -rf $(VENV) .peers dist build
