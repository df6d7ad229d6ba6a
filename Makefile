# Every target sets itself up: a virtual environment in .venv, wheels only, versions from constraints.txt.
PYTHON ?= python3
DATA ?= data
INPUTS ?= 20000
# One more than there are cores, as many tests wait for a server.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
BIN := .venv/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all:

# Python keeps what it has compiled: the tests import the package in hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all lint unit fuzz coverage bench experiments experiments-large docs clean

help:
	@echo "make demo         crawl the embedded web, kill and resume the crawl, write a report; no network"
	@echo "make test         required before every commit: lint, types, import layers, tests (about five minutes on two cores)"
	@echo "make test-all     the slow tests: experiments, repeated kills, tutorials, foreign surveys, documentation site"
	@echo "make docs         regenerate the reference pages and build the documentation site in build/site"
	@echo "make fuzz         property tests with new random examples, and a fuzzer per format (INPUTS=20000 each)"
	@echo "make coverage     the tests with the JIT off, so that coverage includes the kernels"
	@echo "make bench        compare with other libraries (about 45 minutes)"
	@echo "make experiments  regenerate the tables of the documentation (several hours; DATA=folder of real graphs)"
	@echo "make experiments-large  domain scores at 89 million domains (two hours, 35 GB of disk)"
	@echo "make clean        remove .venv and everything that is generated"

demo: .venv/ready
	@$(BIN)/surveyor demo --out demo

test: lint unit

lint: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: .venv/ready
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not slow"

test-all: .venv/ready-docs
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m slow

fuzz: .venv/ready
	$(BIN)/python -m pytest -n auto -m hypothesis --hypothesis-profile=search
	$(BIN)/python tests/attacks/fuzz/run.py all --inputs $(INPUTS)

coverage: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest -m "not compiled" -W "ignore:overflow:RuntimeWarning"
	$(BIN)/python -m coverage report

bench: .venv/ready-bench
	$(BIN)/python -m benchmarks

experiments: .venv/ready
	$(BIN)/python -m experiments.synthetic_fit --data $(DATA)
	$(BIN)/python -m experiments.rankmass --data $(DATA)
	$(BIN)/python -m experiments.sharded_crawl --webs 24
	$(BIN)/python -m experiments.opic --out plots
	$(BIN)/python -m experiments.freshness
	$(BIN)/python -m experiments.watching --out plots
	$(BIN)/python -m experiments.watch_freshness
	$(BIN)/python -m experiments.watch_live
	$(BIN)/python -m experiments.no_graph --new 500
	$(BIN)/python -m experiments.no_graph --kills 30
	$(BIN)/python -m experiments.scouting
	$(BIN)/python -m experiments.guarantee
	$(BIN)/python -m experiments.sampled_coverage --part validity --data $(DATA)
	$(BIN)/python -m experiments.sampled_coverage --part adversarial --crawls 900
	$(BIN)/python -m experiments.sampled_coverage --part order --crawls 20
	$(BIN)/python -m experiments.sampled_coverage --part http --crawls 200
	$(BIN)/python -m experiments.sampled_coverage --part tables --data $(DATA)
	$(BIN)/python -m experiments.spam --data $(DATA) --out plots
	$(BIN)/python -m experiments.communities --data $(DATA) --plots plots
	$(BIN)/python -m experiments.estimators --data $(DATA)
	$(BIN)/python -m experiments.uncertainty --data $(DATA) --most 3000
	$(BIN)/python -m experiments.inflow --data $(DATA)
	$(BIN)/python -m experiments.kill --kills 220
	$(BIN)/python -m experiments.cluster_scale
	$(BIN)/python -m experiments.hostile_web
	$(BIN)/python tests/attacks/costs.py
	$(BIN)/python -m experiments.reputation
	$(BIN)/python -m experiments.tse_draws --runs 60
	$(BIN)/python -m experiments.farms --seeds 1,2,3,4,5,6
	$(BIN)/python -m experiments.farms --rerank 1000000
	$(BIN)/python -m experiments.small_communities --data $(DATA) --pages
	$(BIN)/python -m experiments.random_selection --data $(DATA)
	$(BIN)/python -m experiments.influence --data $(DATA) --plots plots
	$(BIN)/python -m experiments.sampled_parts --data $(DATA) --runs 100 --walk-runs 15
	$(BIN)/python -m experiments.communities_live
	$(BIN)/python -m experiments.back_links --data $(DATA)
	$(BIN)/python -m experiments.focused --data $(DATA) --plots plots
	$(BIN)/python -m experiments.calibration --data $(DATA)
	$(BIN)/python -m experiments.focused_live

experiments-large: .venv/ready
	$(BIN)/python -m experiments.reputation --large --pages 89e6

docs: .venv/ready-docs
	$(BIN)/python docs/generate_reference.py
	$(BIN)/python tests/attacks/page.py
	$(BIN)/python -m sphinx -b html -q -W --keep-going docs build/site
	$(BIN)/python docs/check_site.py build/site
	@echo "built build/site/index.html"

clean:
	rm -rf .venv demo build dist .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

.venv/ready: pyproject.toml constraints.txt
	@echo "setting up .venv (once, about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "surveyor needs Python 3.11 or newer; try make PYTHON=python3.12")'
	@$(PYTHON) -m venv .venv
	@$(PIP) -e '.[dev]'
	@touch $@

.venv/ready-bench: .venv/ready
	@$(PIP) -e '.[dev,bench]'
	@touch $@

.venv/ready-docs: .venv/ready
	@$(PIP) -e '.[dev,docs]'
	@touch $@
