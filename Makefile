# What a user types.  Building is CMake's and Ninja's work; `make help` lists the targets.
JOBS ?= $(shell nproc)
export PYTHONPATH := $(CURDIR)/python
PYTHON := .venv/bin/python
cmake = cmake -S . -B $(1) -G Ninja --log-level=WARNING $(2) >/dev/null && cmake --build $(1) -j $(JOBS)

.DEFAULT_GOAL := all
.PHONY: all setup build browser demo test test-long stress asan bless bench format wheel clean distclean help

all: build ## set up where needed and build: leaves build/stc and .venv

setup: ## install what is missing (SETUP=no: only say so)
	@tools/setup.sh

build: setup
	@$(call cmake,build,)

# Without them the tests that draw report.html or simulate Verilog are skipped.
browser:
	@[ "$(SETUP)" = no ] || tools/setup.sh chromium iverilog || echo "make: no chromium or no iverilog: the tests that draw report.html or simulate Verilog are skipped"

demo: build ## GPT-2 from PyTorch to a design that runs; leaves build/demo
	@$(PYTHON) -m streamtensor demo -o build/demo

test: build browser ## every test but the long ones
	@tests/run.sh

test-long: build browser ## every test
	@tests/run.sh long

stress: setup ## the tests with tiny capacities and every pass round-tripped
	@$(call cmake,build-stress,-DSTC_STRESS=ON)
	@BUILD=build-stress tests/run.sh

asan: setup ## the C tests under AddressSanitizer and UBSan
	@tests/run.sh asan

bless: build ## accept what the golden tests print now; then read git diff
	@tests/golden/run.sh --bless
	@BLESS=1 $(PYTHON) -m pytest -q tests/python/test_design.py -k accepted

bench: build ## how fast the compiler and the emitted designs are
	@$(PYTHON) bench/compile_time.py

format: ## clang-format over the C files, if it is installed
	@tools/format.sh

wheel: setup ## dist/*.whl with the compiled core
	@$(PYTHON) -m pip --disable-pip-version-check wheel --quiet --no-deps -w dist .

clean: ## remove what was built
	rm -rf build build-asan build-stress dist

distclean: clean ## and the virtual environment
	rm -rf .venv

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile
