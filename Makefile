# Everything there is to do in a checkout. `make` alone lists it.
.DEFAULT_GOAL := help
.PHONY: help setup demo up test lint screens bench proto clean

BIN := .venv/bin

help: ## Show this list
	@echo "Trimtab, a tuning service for computer systems. What make can do here:"
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Each does the set-up that it needs. Python 3.11 or newer and git are all that must be there before;"
	@echo "the demo needs GCC besides."

setup: ## Install what the checkout needs: uv, locked dependencies, generated code, the console
	@deploy/checkout/setup.sh

demo: setup ## Tune a C program's compiler flags and see the gain; then serve until Ctrl-C (EXIT=1: end then)
	@exec $(BIN)/python -m demo $(if $(EXIT),--exit) $(ARGS)

up: setup ## Run the service on this machine with the data of the demo (ARGS="--port 0 --host ...")
	@exec $(BIN)/trimtab-service up --data-dir data $(ARGS)

test: setup ## Run all tests (ARGS="-k word" for some); installs what they need where it may
	@deploy/checkout/test-programs.sh
	@if [ -d web/node_modules ]; then cd web && npm run --silent test; else echo "console: not tested, since Node.js is not installed"; fi
	@exec $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: setup ## Check style, types, import rules, known vulnerabilities, and the console's code
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy service sdk/trimtab agents/trimtab_agent tests proto demo
	$(BIN)/lint-imports
	$(BIN)/python deploy/checkout/check_words.py
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml service sdk/trimtab agents/trimtab_agent demo proto
	@deploy/checkout/audit.sh
	@if [ -d web/node_modules ]; then cd web && npm run --silent typecheck && npm run --silent lint; \
	else echo "console: not checked, since Node.js is not installed"; fi

screens: setup ## Pictures of every page of the console, from a real service, into screens/ (needs Chromium)
	@exec $(BIN)/python -m tests.screens $(ARGS)

bench: setup ## Measure what is promised beside Optuna, Ax and Vizier; writes bench-results/ (ARGS=--quick)
	@deploy/checkout/setup.sh --group bench
	@exec $(BIN)/python -m tests.benchmarks $(ARGS)

proto: setup ## Generate the gRPC code anew
	@rm -rf service/_gen sdk/trimtab/_gen agents/trimtab_agent/_gen
	@$(BIN)/python proto/generate.py

clean: ## Remove what was generated and installed here; keeps ./data
	rm -rf .venv .cache web/node_modules web/dist service/_gen sdk/trimtab/_gen agents/trimtab_agent/_gen
