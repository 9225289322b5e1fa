PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
COMPILED := $(VENV)/compiled
ENGINES := tests/contract/node_modules/ready
AXE := tests/e2e/console/node_modules/ready
SDK := tests/e2e/node_modules/ready
MEASURES := $(VENV)/measures
SITE := $(VENV)/site
OURS := dueline local tests
SELDOM := aws_cdk|awscli|celery|mypy|mypyc|networkx|pip|setuptools|sympy
MINUTES ?= 10
EXAMPLES ?= 200
RESTORES ?= 20000
MUTATIONS ?=
KILLS ?=
NETWORK_FAULTS ?=
WORKERS ?=
SCHEDULES ?=
ARGS ?=
QUEUES ?= queues.yaml
CONCURRENCY ?= 1
# The CDK can ask nobody while it deploys several stacks at once.
FORCE ?=
APPROVAL ?= $(if $(filter 1,$(CONCURRENCY)),broadening,never)
# `make up` writes it.
PRINT_ENV := cat "$${DUELINE_HOME:-.local}/env" 2>/dev/null || { echo 'it is not up: `make up` starts it' >&2; exit 1; }
CDK := npx --yes aws-cdk@2.1148.1
# Other seeds and examples each time; `runs` tells which.
SEEDS ?= --minutes $(MINUTES) --first $(shell date +%s)
EXAMPLES_ARE ?= random

# The CDK's Node library fills a screen where Node is past its support, which Debian's is; it works on Node 20.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

# Containers often set it. Each process would compile all that it imports, of the CDK for seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: audit lock release help setup run up env down console deploy verify-aws check test test-busy lint docs soak soak-short fuzz pictures bench format schema golden clean

help: ## Show what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

setup: $(READY) ## Make the virtual environment and install what is pinned in requirements.txt, checked by its hashes
	@echo "$(VENV) is ready: make run, make test"

run: $(READY) ## Deploy into a local AWS, watch a worker process a handful of jobs, and stop
	@$(BIN)/python -m local run

up: $(READY) ## Deploy into a local AWS and stay up (QUEUES=your/queues.yaml; DUELINE_PORT=14566: at other ports)
	@$(BIN)/python -m local up --queues $(QUEUES)

env: ## Print what makes a shell use what is up, for eval: docs/tutorial.md
	@$(PRINT_ENV)

down: $(READY) ## End what `make up` started
	@$(BIN)/python -m local down

console: $(READY) ## Open the console of what is up, after `make up`: a page in the browser; OPTIONS=--read-only
	@env=$$($(PRINT_ENV)) && eval "$$env" && exec $(BIN)/python -m dueline console $(OPTIONS)

deploy: $(READY) ## Deploy queues.yaml into your AWS account, if `dueline preflight` has no problem with it, and put its schedules: QUEUES=sandbox.yaml, CONCURRENCY=8 stacks at once, FORCE=1
	@$(BIN)/dueline preflight $(QUEUES) || [ $$? -eq 6 ] || [ -n "$(FORCE)" ]
	$(CDK) deploy --all --app "$(BIN)/python app.py" --context queues=$(QUEUES) --concurrency $(CONCURRENCY) --require-approval $(APPROVAL)
	@$(BIN)/dueline schedules apply $(QUEUES)

# Whatever becomes of the tests, Ctrl-C included, what was deployed is removed; the exit code is that of the tests.
verify-aws: $(READY) ## Deploy a sandbox into your AWS account, run tests/acceptance there, and remove it: docs/verify.md has its ARGS
	@$(BIN)/python -m tests.acceptance $(ARGS)

check: lint $(ENGINES) ## The fast checks: lint, types, unit and contract tests
	$(BIN)/pytest -q -m "not thorough" tests/unit tests/contract dueline local

test: $(SITE) ## Everything: lint, types, the documentation, and all tests, those against the deployed template included; PARTS="unit e2e" for some
	@$(MAKE) --no-print-directory --jobs=2 $(ENGINES) $(AXE) $(SDK) $(COMPILED)
	@$(BIN)/python -m compileall -q -j 0 $(OURS)
	@$(BIN)/python -m tests $(PARTS)

test-busy: $(SITE) ## The same beside two busy loops: on a machine that has other things to do
	@$(MAKE) --no-print-directory --jobs=2 $(ENGINES) $(AXE) $(SDK) $(COMPILED)
	@$(BIN)/python -m compileall -q -j 0 $(OURS)
	@$(BIN)/python -m tests --busy 2 $(PARTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

docs: $(SITE) ## Build docs/ and the API reference as a site with search, into .local/docs/site; a broken link fails
	@$(BIN)/python -m docs.build

soak: $(READY) $(ENGINES) $(AXE) ## Look for a broken promise: MINUTES=10 of simulated runs, all mutations and models, and every chaos scenario in full
	$(BIN)/python -m tests.simulation runs $(SEEDS)
	$(BIN)/python -m tests.simulation mutations $(MUTATIONS)
	$(BIN)/python -m tests.simulation.model $(MODEL)
	$(BIN)/pytest -q tests/simulation tests/unit/test_bundle.py tests/unit/test_rule_by_brute_force.py -m thorough
	$(BIN)/pytest -q tests/template
	HYPOTHESIS_PROFILE=$(EXAMPLES_ARE) RESTORES=$(RESTORES) $(BIN)/pytest -q tests/unit/test_restore.py
	HYPOTHESIS_PROFILE=$(EXAMPLES_ARE) $(BIN)/pytest -q tests/unit/test_floors.py
	FUZZ_EXAMPLES=5 $(BIN)/pytest -q tests/e2e/test_*.py -m thorough
	$(BIN)/python -m tests.e2e.chaos kills $(KILLS)
	$(BIN)/python -m tests.e2e.chaos network-faults $(NETWORK_FAULTS)
	$(BIN)/python -m tests.e2e.chaos schedules $(SCHEDULES)
	$(BIN)/python -m tests.e2e.chaos workers $(WORKERS)

soak-short: ## The same in twenty minutes, with the same seeds and examples each time: fewer of them, worlds of the model, kills and jobs, and mutations first at the seeds that caught them
	@$(MAKE) --no-print-directory soak SEEDS="--number 3000" EXAMPLES_ARE=repeated RESTORES=1000 MUTATIONS=--again MODEL="--most 1300000" KILLS="--kills 40 --jobs 1000 --seconds 60" NETWORK_FAULTS="--jobs 150" WORKERS="--jobs 1500" SCHEDULES="--schedules 20 --changes 60 --kills 24 --seconds 40 --tail 20"

release: $(READY) ## Build the wheel and the source distribution into dist, and deploy an app into a local AWS with the wheel alone
	@rm -rf dist dueline.egg-info
	@$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist
	@DUELINE_DIST=dist $(BIN)/pytest -q tests/e2e/test_wheel.py

pictures: $(READY) ## Fill a local AWS with life, and take the pictures of the console that README and docs/console.md show
	$(BIN)/python -m tests.e2e.console.pictures

fuzz: $(READY) ## Ask the API for whatever docs/openapi.json allows and forbids, EXAMPLES=200 times an operation
	FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -q tests/e2e/test_openapi.py -m thorough

bench: $(MEASURES) $(ENGINES) $(COMPILED) ## Measure cost, lateness, CPU, growth, scale, overload and schedules (10 to 20 minutes), and write docs/benchmarks.md
	@$(BIN)/python -m bench run

format: $(READY) ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## Write the hashes of what is pinned: requirements.lock of each requirements.txt, without changing a version
	@for folder in . docs bench; do \
		$(BIN)/uv pip compile --quiet --no-deps --universal --python-version 3.11.5 --generate-hashes --no-annotate \
			--custom-compile-command "make lock" --output-file $$folder/requirements.lock $$folder/requirements.txt || exit 1; \
	done
	@$(BIN)/uv pip compile --quiet --constraints requirements.txt --python-version 3.13 --python-platform aarch64-manylinux2014 \
		--only-binary :all: --generate-hashes --no-annotate --custom-compile-command "make lock" \
		--output-file dueline/functions/requirements.lock dueline/functions/requirements.txt

audit: $(READY) ## Ask PyPI and npm for known vulnerabilities of what is pinned, and look the workflows over
	$(BIN)/uv tool run pip-audit==2.10.1 --require-hashes --disable-pip --requirement requirements.lock
	npm audit --prefix tests/contract
	npm audit --prefix tests/e2e/console
	npm audit --prefix tests/e2e
	$(BIN)/uv tool run zizmor==1.32.0 --offline .github/workflows

schema: $(READY) ## Write docs/openapi.json, docs/queues.schema.json, docs/queues.md and docs/licences.md from the code
	$(BIN)/python -m docs.licences
	$(BIN)/python -m docs.queues_schema
	$(BIN)/python -m dueline.functions.http.openapi

golden: $(READY) ## Write again the templates that tests/template compares: read their diff before you commit it
	$(BIN)/python -m tests.template.test_golden

clean: ## Remove the virtual environment and all that was made
	rm -rf $(VENV) $(dir $(ENGINES) $(AXE) $(SDK)) .local cdk.out .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

# Marked as ready only at its end, so that an install that was cut off is begun again. uv is four times as fast as pip,
# but does not read pip's configuration: where it finds no package index, pip does.
$(READY): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or later is needed: name one with make PYTHON=...")'
	@echo "making the virtual environment in $(VENV), once (under a minute)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\]$$/p' requirements.lock > $(VENV)/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(VENV)/uv.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements.lock || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --config-settings editable_mode=compat --editable .
	@touch $@

# Else processes of tests would each compile what they import. Of the CDK, by far the largest, a sixth is imported,
# and what is left out, another third, is imported by one process or none.
$(COMPILED): $(READY)
	@$(BIN)/python -m compileall -q -j 0 -x '/($(SELDOM))/' $(VENV)/lib >/dev/null
	@$(BIN)/python -c 'import dueline.cdk.stacks'
	@touch $@

$(MEASURES): $(READY) bench/requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement bench/requirements.lock
	@touch $@

$(SITE): $(READY) docs/requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps --requirement docs/requirements.lock || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement docs/requirements.lock
	@touch $@

# What tests need of npm, marked like the above: a DynamoDB on Node, dynalite; axe, which looks a page over; and AWS's
# SDK, with which an example of the documentation runs.
$(ENGINES) $(AXE) $(SDK): %/node_modules/ready: %/package.json %/package-lock.json
	@command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || \
		{ echo "the tests need Node 20 or later, with npm: https://nodejs.org" >&2; exit 1; }
	@npm ci --prefix $* --loglevel=error --no-audit --no-fund >/dev/null
	@touch $@
