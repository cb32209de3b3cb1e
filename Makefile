# Everything starts here; README.md lists the same commands without make.
#   make book        build the book and serve it
#   make quick       lint, and some of the tests, in less than three minutes
#   make test        lint, tests, every notebook re-run and compared, strict book build
#   make test-all    the same, and what needs more than requirements.txt: two CUDA
#                    toolchains and MXNet, 3 GB in benchmarks/envs
#   make site-test   open every built page in a headless browser
#   make lab         open the notebooks in JupyterLab
#   make notebooks   run every notebook from top to bottom and save it
#   make lines       lines of code per module, in reading order
#   make bench       minihybrid beside its rivals
#   make fuzz        ten minutes of damaged files (Linux)
#   make soak        thousands of random programs and nets; MXNET=1: beside MXNet
#   make matrix      the wheel beside other versions of Python, NumPy and Numba
#   make mutants     small faults planted in the engine, and whether a test fails

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
BUILD_BOOK := $(BIN)/jupyter-book build . --all -W -n --keep-going

.PHONY: book quick test test-all site-test lab notebooks lines bench cubins fuzz soak matrix mutants clean

# Reinstalled when the list of packages changes.
$(READY): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
	    "minihybrid needs Python 3.11 or newer, and $(PYTHON) is older: " \
	    "run make again with PYTHON=python3.12 (or the one you have)")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements.txt -e .
	@touch $@

book: $(READY)
	$(BUILD_BOOK)
	@echo "Press Ctrl-C to stop serving the book."
	@$(BIN)/python -u -m http.server --bind 127.0.0.1 --directory _build/html 0

quick: $(READY)
	$(BIN)/python -m ruff check --output-format concise .
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --quick

# Plain `-n 2` would deal the cells of one notebook to two kernels; hence loadfile.
test: $(READY)
	$(BIN)/python -m ruff check --output-format concise .
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not elsewhere"
	$(BIN)/python -m pytest notebooks --nbval \
	    --nbval-sanitize-with tests/nbval_sanitize.cfg --nbval-cell-timeout 120 \
	    -n 2 --dist loadfile
	$(BUILD_BOOK)

test-all: test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m elsewhere

site-test: $(READY)
	$(BUILD_BOOK)
	$(BIN)/python -m pytest tests/site

lab: $(READY)
	$(BIN)/python -m jupyterlab notebooks

notebooks: $(READY)
	$(BIN)/python book/run_notebooks.py

lines: $(READY)
	@$(BIN)/python tests/lines.py

# Ten minutes of one core; `FUZZ="graph --seconds 60 --seed 7"` says otherwise.
fuzz: $(READY)
	@$(BIN)/python -m pip install --quiet -r tests/fuzz/requirements.txt || { \
	    echo "make fuzz needs atheris, and there is no wheel of it for this system;" \
	    "tests/files/test_fuzz_corpus.py tries the same changes without it"; exit 1; }
	cd tests && nice -n 10 ../$(BIN)/python -m fuzz.run $(FUZZ)

# Two hours of one core; `SOAK="--programs 500 --nets 50 --seed 7"` says otherwise.
# MXNET=1: random programs beside MXNet 1.9.1, which wants a Python 3.11 of its own.
soak: $(READY)
	cd tests && nice -n 10 ../$(BIN)/python -m $(if $(MXNET),beside,soak) $(SOAK)

# The wheel beside other versions of Python, NumPy and Numba; `MATRIX="-s newest-313"`.
matrix: $(READY)
	$(BIN)/python -m nox $(MATRIX)

# Hours of one core; `MUTANTS="--room passes --count 20"` says otherwise.
mutants: $(READY)
	@$(BIN)/python -m pip install --quiet -r tests/mutation/requirements.txt
	cd tests && nice -n 10 ../$(BIN)/python -m mutation.run $(MUTANTS)

# Every kernel of every operator's samples, by two toolchains: an hour of one core.
cubins: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python tests/gpu_kernels.py

bench: $(READY)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf .venv _build
