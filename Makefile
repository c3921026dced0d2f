# Everything the project does is a target here. Each bootstraps uv and the locked environment from plain Python 3.11.
# `make demo` and `make test` are all that a fresh machine needs.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

UV_VERSION := 0.13.8
UV := .tools/uv/bin/uv
PYTHON := .venv/bin/python
ENVIRONMENT := .venv/.made

# Bytecode is compiled once, with the environment; without it importing the CDK takes over a minute each time.
unexport PYTHONDONTWRITEBYTECODE
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

.PHONY: help demo demo-import local dashboard test check audit synth simulate clients faults soak drill e2e permissions bench bench-quick bench-import capacity mutants api openapi pages tutorial contract format clean

help: ## what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 12

demo: $(ENVIRONMENT) ## the main job on real messages, locally: ARGS="--json" for scripts
	@$(PYTHON) -m local.demo $(ARGS)

demo-import: $(ENVIRONMENT) ## a file of 200,000 rows imported while workers are killed: ARGS="--rows 1000000 --json"
	@$(PYTHON) -m local.imports $(ARGS)

local: $(ENVIRONMENT) ## the stack alone, until Ctrl-C: with a URL, a token and lines to try
	@$(PYTHON) -m local.serve

dashboard: $(ENVIRONMENT) ## docs/dashboard.png: the dashboard over the metrics of a real local run; ARGS="--draw" draws the recorded ones
	@$(PYTHON) -m watch $(ARGS)

test: check $(ENVIRONMENT) ## everything that must hold; ARGS="-k name" for a part
	$(PYTHON) -m pytest $(ARGS)

check: $(ENVIRONMENT) ## format, lint, types, import contracts
	.venv/bin/ruff format --check .
	.venv/bin/ruff check --output-format concise .
	.venv/bin/mypy
	.venv/bin/lint-imports

audit: $(ENVIRONMENT) ## every gate over what goes to AWS (docs/security.md): ARGS="--json" for scripts
	@$(PYTHON) -m audit $(ARGS)

synth: $(ENVIRONMENT) ## the cloud assembly of STAGE (dev, staging, prod, local)
	@$(PYTHON) -m infra.assembly $(or $(STAGE),dev)

simulate: $(ENVIRONMENT) ## SEEDS runs of the pipeline in virtual time under seeded faults: SEEDS=20000
	$(PYTHON) -m tests.simulation --seeds $(or $(SEEDS),2000) $(ARGS)

clients: $(ENVIRONMENT) ## SEEDS runs of CLIENTS unreliable clients before the front door, in virtual time
	$(PYTHON) -m tests.clients $(or $(SEEDS),20) $(or $(CLIENTS),500)

faults: $(ENVIRONMENT) ## the whole of tests/faults: MODE=normal, always-granted (a lock keeps nobody out) or redis-gone
	TAHAN_TEST_MODE=$(or $(MODE),normal) $(PYTHON) -m pytest tests/faults $(ARGS)

soak: $(ENVIRONMENT) ## real workers under load and chaos for MINUTES=30, then the books
	$(PYTHON) -m tests.soak --minutes $(or $(MINUTES),30) $(ARGS)

drill: $(ENVIRONMENT) ## a bad day of the operators, played through: ARGS=dead_letters for one of them
	$(PYTHON) -m tests.drills $(ARGS)

e2e: $(ENVIRONMENT) ## the life of a stack on the stand-in: deploy, situations, smoke, update under load, roll back, destroy
	@$(PYTHON) -m tests.e2e $(ARGS)

permissions: $(ENVIRONMENT) ## plays everything on a stand-in that writes down each call of a function; docs/reference/permissions.md
	$(PYTHON) -m tests.permissions

bench: $(ENVIRONMENT) ## beside the peers, a quarter of an hour; fails when something has fallen: ARGS="--only leases", "--keep"
	@$(PYTHON) -m benchmarks $(ARGS)

bench-quick: $(ENVIRONMENT) ## the same with few rounds: a look, no statement
	@$(PYTHON) -m benchmarks --quick $(ARGS)

bench-import: $(ENVIRONMENT) ## memory of an import by the size of its file: ARGS="--rows 10000 1000000"
	@$(PYTHON) -m benchmarks.import_memory $(ARGS)

capacity: $(ENVIRONMENT) ## the model of the deployed stack, its curves and docs/capacity.md: ARGS="--rate 500 --worker payments" plans, --validate checks it
	@$(PYTHON) -m benchmarks.capacity $(ARGS)

mutants: $(ENVIRONMENT) ## take out each guard and see its test turn red
	$(PYTHON) -m tests.mutants $(ARGS)

api: $(ENVIRONMENT) ## Schemathesis at length against the front door: ARGS="--max-examples 1000"
	$(PYTHON) -m tests.api $(ARGS) >/dev/null

openapi: $(ENVIRONMENT) ## docs/reference/openapi.json from the declarations
	$(PYTHON) -m functions.openapi

pages: $(ENVIRONMENT) ## every page of docs/ that follows from the code alone
	@for page in "infra.alarms.page" "tests.mutants.page" "benchmarks.cost --page" "tests.permissions --page" functions.openapi reference; do \
		echo "$$page" && $(PYTHON) -m $$page; done

tutorial: $(ENVIRONMENT) ## docs/tutorial.md replayed: its commands run, its files written, in a copy of this tree
	$(PYTHON) -m tests.tutorial

contract: $(ENVIRONMENT) ## the golden file of each new version of a payload; refuses to change a released one
	@$(PYTHON) -m tests.contracts

format: $(ENVIRONMENT) ## put the code into shape
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix-only .

clean: ## remove what was built and installed
	rm -rf build node_modules .venv .tools audit/tools/.venv benchmarks/peers/.venv local/standin/.venv
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV):
	@echo "Installing uv $(UV_VERSION) ..." >&2
	@python3 -m venv .tools/uv
	@.tools/uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(ENVIRONMENT): $(UV) pyproject.toml uv.lock
	@echo "Installing the locked environment ..." >&2
	@$(UV) sync --frozen --quiet --compile-bytecode
	@touch $@
