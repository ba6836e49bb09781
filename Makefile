# Each target sets up what it needs by itself: virtual environments in this folder.
PYTHON ?= python3
BIN := .venv/bin
OLDEST := .venv-oldest
FLOWERS := 1.40.0 1.41.0
EXTRAS := .venv-extras
SPREAD := --dist loadfile --no-loadscope-reorder --numprocesses
PIP := -m pip install --quiet --disable-pip-version-check --no-compile

# Compiled modules are kept, whatever the environment says: a program starts in half the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-extras test-oldest test-fleet test-flower-versions lint format release bench bench-sweep bench-advise bench-flower bench-fleet bench-scale bench-peers bench-regress fuzz machine signals mutants docs kernels clean

demo: .venv/ready ## three algorithms on the digits: a table and a picture
	rm -rf runs/demo
	$(BIN)/safari compare examples/digits.toml --out runs/demo

test: .venv/ready-dev test-oldest ## everything, on the newest JAX; the core also on the oldest
	$(BIN)/python -m pytest $(SPREAD) 3 --ignore tests/fleet

test-fleet: .venv/ready-dev ## SAFARI on real processes: a SuperLink, SuperNodes, faults, TLS
	$(BIN)/python -m pytest $(SPREAD) 3 tests/fleet

test-extras: $(EXTRAS)/ready ## trackers read back by their own libraries, ONNX by another runtime, a notebook
	$(EXTRAS)/bin/python -m pytest $(SPREAD) 3 tests/experiment/test_tracking.py tests/engine/test_onnx_file.py tests/engine/test_notebooks.py

test-flower-versions: ## SAFARI under the oldest and the newest Flower that it allows, real processes too (an hour)
	for version in $(FLOWERS); do \
	  $(PYTHON) -m venv .venv-flower-$$version && \
	  .venv-flower-$$version/bin/python $(PIP) --editable '.[dev,flower]' torch==2.13.0 "flwr[simulation]==$$version" && \
	  .venv-flower-$$version/bin/python -m pytest tests/flower tests/fleet/test_watching.py || exit 1; \
	done

test-oldest: $(OLDEST)/ready
	XLA_FLAGS=--xla_backend_optimization_level=0 $(OLDEST)/bin/python -m pytest $(SPREAD) 3 tests/test_oracle.py tests/algorithms/test_safari.py

lint: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

release: .venv-release/ready ## sdist and wheel into dist/; the demo from the wheel on every Python that is claimed
	.venv-release/bin/python tools/release.py

bench: .venv/ready-dev ## safari against a plain PyTorch loop, the same job, interleaved (needs MNIST)
	$(BIN)/python benchmarks/peers --jobs a --only safari,pytorch --out runs/bench.json

bench-advise: .venv/ready ## whether the advice of safari advise holds on fresh seeds (needs MNIST)
	$(BIN)/python benchmarks/advise.py

bench-flower: .venv/ready-dev ## what SAFARI costs over stock FedAvg in Flower's simulation
	$(BIN)/python benchmarks/flower.py

bench-fleet: .venv/ready-dev ## a hundred nodes in Flower's simulation, 200 rounds: what a round costs, and that it does not grow
	$(BIN)/python benchmarks/fleet.py

bench-peers: .venv/ready-dev ## the same jobs in safari, FedJAX, pfl, Flower, fluke, PyTorch (needs the data; hours)
	$(BIN)/python benchmarks/peers

bench-regress: .venv/ready-dev ## safari's rounds against the same rounds by hand, as ratios; waste must be noticed
	$(BIN)/python benchmarks/regress
	$(BIN)/python -m pytest benchmarks/regress

bench-scale: .venv/ready ## time per round and memory against the number of clients, to a million
	$(BIN)/python benchmarks/scale.py

bench-sweep: .venv/ready ## 64 MNIST runs as a sweep, and one after another (needs MNIST)
	$(BIN)/python benchmarks/sweep.py

fuzz: .venv/ready-dev ## files of runs and sweeps damaged in every way, then used: no traceback, no other result (10 minutes)
	$(BIN)/python tests/fuzz

signals: .venv/ready-dev ## how every command ends when a signal comes at many moments (needs MNIST; 10 minutes)
	$(BIN)/python benchmarks/signals.py

mutants: .venv/ready-dev ## the code made wrong in many ways: the tests must notice each (an hour on two cores)
	$(BIN)/python tools/mutants

machine: .venv/ready-dev ## full disks, rights, closed streams: every command ends in one line (as root for all of it)
	$(BIN)/python tests/machine

docs: .venv-docs/ready ## the documentation site, in site/: needs no network, open site/index.html
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

kernels: .venv/ready-dev ## the GPU kernels' PTX from their source (needs no GPU)
	$(BIN)/python $(PIP) nvidia-cuda-nvrtc-cu12==12.9.86
	$(BIN)/python -m safari.models.hopper.build

clean:
	rm -rf .venv .venv-* dist runs site .pytest_cache .mypy_cache .ruff_cache

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) --editable .
	touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/python $(PIP) --editable '.[dev,flower,privacy]' torch==2.13.0
	touch $@

$(EXTRAS)/ready: pyproject.toml
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python $(PIP) --editable '.[test,tensorboard,mlflow,wandb,onnx]' tensorboard onnxruntime nbclient ipykernel
	touch $@

.venv-docs/ready: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python $(PIP) --editable '.[docs]'
	touch $@

$(OLDEST)/ready: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP) --constraint tests/oldest.txt --editable '.[test]'
	touch $@

.venv-release/ready:
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python $(PIP) build
	touch $@
