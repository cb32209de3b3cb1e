# Everything starts here; CONTRIBUTING.md lists the same commands without make.
#   make book        build the book and serve it
#   make quick       lint, types, and some of the tests, in about three minutes
#   make test        lint, tests, every notebook re-run and compared, strict book build; the
#                    last two are `make test-notebooks` and `make test-book`, at once
#   make test-all    the same, more cases of it, and what needs more than
#                    requirements.txt: two CUDA toolchains, MXNet, PyTorch, TensorFlow
#                    and JAX, 6 GB in benchmarks/envs
#   make lite        the book with chapters that run in its pages: 20 MB more of it
#   make site-test   open every built page in a headless browser; with MARKED= also run
#                    every chapter in the page and compare what it prints
#   make lab         open the notebooks in JupyterLab
#   make notebooks   run every notebook from top to bottom and save it
#   make blank       what is made of the chapters: notebooks with gaps, nano.py, hints
#   make lines       lines of code per module and part, beside the goals of each part
#   make assignments VARIANT=7       what students get; nbgrader, in benchmarks/envs
#   make grade SUBMISSIONS=folder ASSIGNMENT=1 VARIANT=7     marks, and a page for each;
#                    SCHEDULER=tcp://host:8786: on the machines of a dask.distributed;
#                    GRADE_WITH=docker: without bubblewrap; UNSAFE=1: without any sandbox
#   make check NOTEBOOK=1_autograd.ipynb     a student's points so far, by the visible tests
#   make gradescope ASSIGNMENT=1 VARIANT=7      the zip for Gradescope
#   make sheets      the predictions, to be printed: a sheet a chapter, and the answers
#   make slides      lectures made of the chapters, for a browser without a network
#   make classroom-test              the assignments, the grader, and attacks on it
#   make elsewhere   run the chapter's programs in MXNet, PyTorch, TensorFlow and JAX, and
#                    record what they print: 3 GB in benchmarks/envs
#   make bench       minihybrid beside its rivals
#   make fuzz        ten minutes of damaged files (Linux)
#   make soak        thousands of random programs and nets; MXNET=1: beside MXNet
#   make matrix      the wheel beside other versions of Python, NumPy and Numba
#   make mutants     small faults planted in the engine, and whether a test fails
#   make faults      a fault in each stage, and whether each tier of tests sees it

PYTHON ?= python3
BIN := .venv/bin
READER := .venv/reader
READY := .venv/ready
BUILT := _build/built
IN_BOOK := _config.yml _toc.yml book minihybrid course notebooks tools tests/classroom benchmarks/results
NO_NETWORK := echo "The packages could not be installed (above pip says why): without a" \
    "network, name a folder of wheels in PIP_FIND_LINKS and set PIP_NO_INDEX=1"
# setuptools warns of every editable installation, which looks like a fault. A dot stands
# for each package; a pipe's status is awk's, so pip's is kept in a file.
INSTALL = { PYTHONWARNINGS="ignore:Editable installation" \
    $(BIN)/python -m pip install --progress-bar off $(1) || touch .venv/failed; } \
    | awk '/^ *Collecting/ { printf "."; fflush() } END { print "" }'; \
    if test -e .venv/failed; then rm .venv/failed; $(NO_NETWORK); exit 1; fi; touch $@
BUILD_BOOK := $(BIN)/jupyter-book build . --all -W -n --keep-going

.PHONY: book lite quick test test-notebooks test-book test-all site-test lab notebooks lines elsewhere bench cubins fuzz soak matrix mutants faults clean

# What a reader needs, book/requirements.txt, is part of what the tests need,
# requirements.txt: either may come first. Installed again when such a list changes.
$(READER): pyproject.toml book/requirements.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
	    "minihybrid needs Python 3.11 or newer, and $(PYTHON) is older: " \
	    "run make again with PYTHON=python3.12 (or the one you have)")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$(PYTHON) cannot make environments, for its module venv is not installed:" \
	    "on Debian and Ubuntu, apt-get install python3-venv"; exit 1; }
	@echo "Installing what the book needs into .venv, once: about 170 MB to download," \
	    "700 MB on the disk, about a minute."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --upgrade pip || { $(NO_NETWORK); exit 1; }
	@$(call INSTALL,-r book/requirements.txt -e .)

$(READY): $(READER) requirements.txt
	@echo "Installing what the tests need beside, once: about 140 MB to download," \
	    "570 MB on the disk, less than a minute."
	@$(call INSTALL,-r requirements.txt)

# Built again when a file of the book or of the engine is newer.
$(BUILT): $(READER) $(shell find $(IN_BOOK) -type f -not -name "*.py[co]" -not -path "*/.*")
	@echo "Building the book: some minutes the first time."
	$(BUILD_BOOK)
	@touch $@

book: $(BUILT)
	@echo "Press Ctrl-C to stop serving the book."
	@$(BIN)/python -u -m http.server --bind 127.0.0.1 --directory _build/html 0

# JupyterLite, in the site; PYODIDE=folder adds Pyodide's distribution, ASSIGNMENTS=folder
# what students get.
lite: $(READER)
	$(BIN)/python -m pip install --quiet -e ".[lite]"
	$(BIN)/python book/make_lite.py $(PYODIDE) $(if $(ASSIGNMENTS),--assignments "$(ASSIGNMENTS)")
	$(BUILD_BOOK)

quick: $(READY)
	$(BIN)/python -m ruff check --output-format concise .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q -n logical --maxprocesses 4 --dist worksteal -p no:nbval --quick

MARKED = -m "not external"

# The book and the notebooks at once: Sphinx uses one core.
test: $(READY)
	$(BIN)/python -m ruff check --output-format concise .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist worksteal -p no:nbval $(MARKED)
	$(MAKE) -j 2 test-notebooks test-book

# Plain `-n logical --maxprocesses 4` would deal the cells of one notebook to two kernels; hence loadfile.
test-notebooks: $(READY)
	$(BIN)/python -m pytest notebooks --nbval \
	    --nbval-sanitize-with tests/nbval_sanitize.cfg \
	    --nbval-cell-timeout 1200 --nbval-kernel-startup-timeout 600 \
	    -n logical --maxprocesses 4 --dist loadfile

test-book: $(READY)
	$(BUILD_BOOK)
	@touch $(BUILT)

# One session for all: collecting the tests takes a minute, and other tests run while packages
# are downloaded.
test-all: MARKED =
test-all: test

site-test: $(READY) $(BUILT)
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist worksteal tests/site $(MARKED)

lab: $(READY)
	$(BIN)/python -m jupyterlab notebooks

notebooks: $(READY)
	$(BIN)/python book/run_notebooks.py

.PHONY: blank
blank: $(READY)
	$(BIN)/python book/make_blank.py
	$(BIN)/python book/make_hints.py

VARIANT ?= 0
JOBS ?= 2

.PHONY: assignments grade check gradescope sheets slides classroom-test
assignments: $(READY)
	PYTHONPATH=course "$$($(BIN)/python benchmarks/envs.py nbgrader)" -m minihybrid_course.grading.release --variant $(VARIANT) \
	    $(if $(ROSTER),--roster "$(ROSTER)")

grade: $(READY)
	@$(if $(SCHEDULER),PYTHONPATH=course "$$($(BIN)/python benchmarks/envs.py cluster)" -m minihybrid_course.grading.cluster \
	    --scheduler $(SCHEDULER),$(BIN)/python -m minihybrid_course.grading.grade --jobs $(JOBS)) \
	    "$(SUBMISSIONS)" --assignment "$(ASSIGNMENT)" --variant $(VARIANT) \
	    $(if $(ROSTER),--roster "$(ROSTER)") $(if $(ADJUST),--adjust "$(ADJUST)")

check: $(READY)
	@$(BIN)/python -m minihybrid_course.grading.check $(if $(NOTEBOOK),"$(NOTEBOOK)")

gradescope: $(READY)
	@$(BIN)/python -m minihybrid_course.grading.gradescope --assignment "$(ASSIGNMENT)" --variant $(VARIANT)

sheets: $(READY)
	@$(BIN)/python -m minihybrid_course.grading.sheets

slides: $(READY)
	@$(BIN)/python -m minihybrid_course.grading.slides

classroom-test: $(READY)
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist worksteal -p no:nbval tests/classroom

lines: $(READY)
	@$(BIN)/python tools/lines.py

# Ten minutes of one core; `FUZZ="graph --seconds 60 --seed 7"` says otherwise.
fuzz: $(READY)
	@$(BIN)/python -m pip install --quiet -r tests/fuzz/requirements.txt || { \
	    echo "make fuzz needs atheris, and there is no wheel of it for this system;" \
	    "tests/files/test_fuzz_corpus.py tries the same changes without it"; exit 1; }
	cd tests && nice -n 10 ../$(BIN)/python -m fuzz.run $(FUZZ)

# An hour or two of one core; `SOAK="--programs 500 --nets 50 --seed 7"` says otherwise.
# MXNET=1: random programs beside MXNet 1.9.1, which wants a Python 3.11 of its own.
soak: $(READY)
	cd tests && nice -n 10 ../$(BIN)/python -m $(if $(MXNET),beside,soak) $(SOAK)

# The wheel beside other versions of Python, NumPy and Numba; `MATRIX="-s newest-313"`.
matrix: $(READY)
	$(BIN)/python -m nox $(MATRIX)

# Hours of one core; `MUTANTS="--area passes --count 20"` says otherwise.
mutants: $(READY)
	@$(BIN)/python -m pip install --quiet -r tests/mutation/requirements.txt
	cd tests && nice -n 10 ../$(BIN)/python -m mutation.run $(MUTANTS)

# Hours, unless it asks the named files only: `FAULTS="--named --tier quick"`.
faults: $(READY)
	cd tests && ../$(BIN)/python -m mutation.faults $(FAULTS)

# Every kernel of every operator's samples, by two toolchains: an hour of one core.
cubins: $(READY)
	PYTHONPATH=benchmarks:tools $(BIN)/python tests/gpu_kernels.py

elsewhere: $(READY)
	$(BIN)/python book/record_elsewhere.py

bench: $(READY)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf .venv _build
