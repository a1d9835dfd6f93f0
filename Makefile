# Everything there is to do in a checkout. `make` alone lists it.
.DEFAULT_GOAL := help
.PHONY: help setup demo up check test test-all test-touched coverage mutants chaos lint screens docs bench proto clean

BIN := .venv/bin
# Without stored bytecode every process compiles its modules again: PyTorch with BoTorch then needs 20 s of CPU to import
# in place of 2 s, and the web process 2.4 s to start in place of 0.8 s.
unexport PYTHONDONTWRITEBYTECODE

help: ## Show this list
	@echo "Trimtab, a tuning service for computer systems. What make can do here:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Each does the set-up that it needs. Python 3.11 or newer and git are all that must be there before;"
	@echo "the demo needs GCC besides."

setup: ## Install what the checkout needs: uv, locked dependencies, generated code, console, documentation
	@deploy/checkout/setup.sh

# Enough to run everything, without what tests need.
.PHONY: installed
installed:
	@deploy/checkout/setup.sh --no-default-groups --group checkout --group docs

demo: installed ## Tune a C program's compiler flags and see the gain; then serve until Ctrl-C (EXIT=1: end then)
	@exec $(BIN)/python -m demo $(if $(EXIT),--exit) $(ARGS)

up: installed ## Run the service on this machine with the data of the demo (ARGS="--port 0 --host ...")
	@exec $(BIN)/trimtab-service up --data-dir data $(ARGS)

check: setup ## Run linters, type checks and all tests that start no server and no program (4 minutes)
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target check-python check-console check-tests

test: setup programs ## Run the tests but the slow cases (15 minutes; ARGS="-k word" for some); installs what they need
	@exec $(BIN)/python -m tests.run --console $(ARGS)

test-all: setup programs ## Run every test (ARGS="tests/sdk" for those of a folder)
	@exec $(BIN)/python -m tests.run --console --all --minutes=240 $(ARGS)

test-touched: setup programs ## Run the slow cases of the parts that commits of the last 24 hours touch (tests/parts.py)
	@exec $(BIN)/python -m tests.parts $(ARGS)

.PHONY: programs checks check-python check-console check-tests
programs:
	@deploy/checkout/test-programs.sh

checks:
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-python check-console

check-python:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python deploy/checkout/check_words.py

check-console:
	@if [ -d web/node_modules ]; then cd web && npm run --silent check; \
	else echo "console: not checked, since Node.js is not installed"; fi

check-tests:
	@exec $(BIN)/python -m tests.run --numprocesses=2 -m "not server and not slow" $(ARGS)

coverage: setup programs ## Measure which lines the tests of `make test` run, and which test runs which (ARGS=tests/unit)
	@exec $(BIN)/python -m tests.power.measure $(ARGS)

mutants: setup ## Make small mistakes in the code and count those that tests find (after `make coverage`; ARGS="--count 300")
	@exec $(BIN)/python -m tests.power $(ARGS)

chaos: setup ## Kill and stop processes of a service at work, and check that nothing is lost (ARGS="--faults 1000")
	@exec $(BIN)/python -m tests.chaos $(ARGS)

lint: setup checks ## Check style, types, import rules, words, known vulnerabilities, and the console's code
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml service sdk/trimtab agents/trimtab_agent agents/trimtab_components demo proto
	@deploy/checkout/audit.sh

screens: setup ## Pictures of every page of the console, from a real service, into screens/ (needs Chromium)
	@exec $(BIN)/python -m tests.screens $(ARGS)

docs: setup ## Build the documentation site into docs/_site, with warnings as errors; the service shows it at /docs
	@$(BIN)/python -m docs._ext.build

bench: setup ## Measure speed and quality next to Optuna, Ax and Vizier; writes bench-results/ (ARGS=--quick)
	@deploy/checkout/setup.sh --group bench
	@exec $(BIN)/python -m tests.benchmarks $(ARGS)

proto: setup ## Generate the gRPC code again
	@rm -rf service/_gen sdk/trimtab/_gen agents/trimtab_agent/_gen
	@$(BIN)/python proto/generate.py

.PHONY: wheels
wheels: setup ## Build the wheels of SDK, agent, service and component reader into dist/, with all that a build makes
	@deploy/checkout/setup.sh --group release
	@deploy/release/wheels.sh dist

.PHONY: images release
images: wheels ## Build the container images with Buildah and start each (BUILDAH, BUILD_OPTIONS, *_IMAGE: deploy/HOSTING.md)
	@deploy/images/build.sh
	@deploy/images/check.sh

release: wheels ## Write a release into dist/: wheels, notes, SBOM, checksums (TAG=v0.1.0; default: the commit's tag)
	@TAG="$(TAG)" $(BIN)/python deploy/release/release.py dist

clean: ## Remove what was generated and installed here; keeps ./data
	rm -rf .venv .cache dist agents/trimtab-agent.1 web/node_modules web/dist docs/_site service/_gen sdk/trimtab/_gen
	rm -rf agents/trimtab_agent/_gen
