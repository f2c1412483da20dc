# The commands of this project. What they need is set up on the way; see scripts/.
.DEFAULT_GOAL := help
.PHONY: help demo test build bench readme setup install consumers lint format tidy asan tsan mutation fuzz matrix clean distclean

PREFIX ?= $(CURDIR)/out
ARGS ?=
SOURCES = git ls-files -- '*.cpp' '*.h'

help:  ## This list
	@sed -n 's/^\([a-z]*\):.*  ## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
	@echo
	@echo "  TORCH=cpu|cuda  flavour of LibTorch      JOBS=N  parallel jobs"
	@echo "  Torch_DIR=, CMAKE_PREFIX_PATH=  a LibTorch of your own"
	@echo "  CMAKE_ARGS=, BUILD_TYPE=, BUILD_DIR=  the build      ARGS=  for the program that is run"

demo:  ## Train a small model on real text through the offloading optimizer
	@scripts/build offload-train
	@"$$(scripts/build --dir)/offload-train" configs/demo.toml $(ARGS)

test:  ## Build and run all tests (ARGS go to ctest)
	@scripts/test $(ARGS)

build:  ## Build the library and offload-train
	@scripts/build optim_offload offload-train

bench:  ## Build the benchmarks
	@scripts/build --for bench all

readme:  ## Write the README's table and pictures from benchmarks/results/h200.json
	@scripts/bench_to_readme.py $(ARGS)

setup:  ## Only set up packages and LibTorch
	@scripts/setup

install:  ## Install the library to PREFIX (./out)
	@scripts/build optim_offload offload-train
	@cmake --install "$$(scripts/build --dir)" --prefix "$(PREFIX)"

consumers:  ## Build and run a user's program against the package and the sources
	@scripts/consumers

lint:  ## Check formatting and shell scripts
	@scripts/setup lint
	@$(SOURCES) | xargs -r clang-format --dry-run --Werror
	@git grep -lE '^#!/usr/bin/env bash' -- scripts .ci | xargs shellcheck -x scripts/*.sh
	@echo "lint: clean"

format:  ## Format all C++ files
	@scripts/setup lint
	@$(SOURCES) | xargs -r clang-format -i

tidy:  ## Run clang-tidy over the library and the trainer (slow; ARGS: files)
	@scripts/setup tidy
	@scripts/tidy $(ARGS)

asan:  ## Tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/sanitize asan-ubsan $(ARGS)

tsan:  ## Tests of the transfers and steps under ThreadSanitizer
	@scripts/sanitize tsan $(ARGS)

mutation:  ## Take each wait away in turn; a test must notice
	@scripts/build --for test optim_offload_tests
	@scripts/mutation $(ARGS)

matrix:  ## Build and test against every LibTorch from 2.6 on (long; ARGS: versions)
	@scripts/matrix $(ARGS)

fuzz:  ## Fuzz settings, archives and checkpoints (FUZZ_SECONDS or FUZZ_RUNS for each; FUZZ_JOBS)
	@scripts/fuzz $(ARGS)

.PHONY: docs
docs:  ## Check the pages in docs/ and make the API reference in build/docs
	@scripts/setup docs
	@scripts/check_docs
	@mkdir -p build && doxygen docs/Doxyfile
	@echo "docs: build/docs/html/index.html"

clean:  ## Remove builds
	rm -rf build out

distclean: clean  ## Remove builds and the LibTorch that the set-up made
	rm -rf "$${XDG_CACHE_HOME:-$$HOME/.cache}/optim_offload"
