# Two commands: `make demo` and `make test`. Both make .venv here; neither needs Node, a GPU, a
# compiler or a database. What a test needs and does not find is left out with one line.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input
SILENCE := about a minute, and not a word until it is done…
ENVIRONMENT = [ -x $(BIN)/python ] || { \
	[ -n '$(PYTHON)' ] || { echo 'jupyter_gpupool needs Python 3.11, 3.12 or 3.13, and there is none here.'; exit 1; }; \
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo 'This Python cannot make virtual environments: install python3-venv.'; exit 1; }; }
NOT_INSTALLED = echo 'Nothing is installed, for the reason that pip gives above; mend it and run the same command again.'; exit 1
SYSTEM_PACKAGES := chromium gcc libc6-dev make python3-venv
# Each takes whole files, whose tests share a pool, in the usual order: what takes longest is not last.
TEST_PROCESSES ?= 2
BENCHMARKS := claim_latency overhead api_throughput idle_cost notebook scheduling_pass replay_philly replay_openb idle_day reclaim reclaim_pool

.PHONY: demo test test-system system-packages check benchmarks docs clean

demo: $(VENV)/demo.stamp
	@$(BIN)/jupyter gpupool demo

test: $(VENV)/test.stamp check
	@$(BIN)/python -c 'import shutil; shutil.which("cc") or print("Left out: what needs the stub NVML and CUDA libraries, for there is no C compiler (make test-system installs one).")'
	@$(BIN)/python -c 'import shutil; shutil.which("chromium") or print("Left out: what needs a browser, for there is no chromium (make test-system installs it).")'
	@$(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

check: $(VENV)/test.stamp
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy && $(BIN)/lint-imports --no-logo

test-system: system-packages
	@$(MAKE) --no-print-directory test

system-packages:
	@command -v apt-get >/dev/null || { echo 'Left out: system packages, for this is no Debian.'; exit 0; }; \
	as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	echo 'Installing system packages: $(SYSTEM_PACKAGES)'; \
	$$as_root apt-get update -qq && \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(SYSTEM_PACKAGES) >/dev/null

benchmarks: $(VENV)/test.stamp
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python tests/benchmarks/$$name.py --json || exit 1; done

docs: $(VENV)/test.stamp
	@$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) build

# What happens is said before the silence begins, of which making the environment is a part.
$(VENV)/demo.stamp: pyproject.toml
	@echo 'Installing jupyter_gpupool with all it needs into $(VENV): $(SILENCE)'
	@$(ENVIRONMENT)
	@$(PIP) -e '.[all]' || { $(NOT_INSTALLED); }
	@touch $@

$(VENV)/test.stamp: pyproject.toml
	@echo 'Installing jupyter_gpupool and what its tests need into $(VENV): $(SILENCE)'
	@$(ENVIRONMENT)
	@$(PIP) -e '.[test]' || { $(NOT_INSTALLED); }
	@touch $@ $(VENV)/demo.stamp
