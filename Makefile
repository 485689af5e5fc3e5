# Two commands do everything: `make grade` and `make test`. Both set up what they need; `make help` lists the rest.

LECTURE ?= 02_indexing
SUBMISSIONS ?=
OUT ?= grading
PYTHON ?= python3
GRADE_OPTIONS ?=

# An active conda environment that has the package is used as it is; else .venv is made, and made anew only when what it is made of changes.
CONDA_PYTHON := $(if $(CONDA_PREFIX),$(shell "$(CONDA_PREFIX)/bin/python" -c "import autograder, torch, nbgrader, pytest; print('$(CONDA_PREFIX)/bin/python')" 2>/dev/null))
PY := $(or $(CONDA_PYTHON),.venv/bin/python)
SETUP := $(if $(CONDA_PYTHON),,.venv/.ready)

.DEFAULT_GOAL := help
.PHONY: help setup grade test check lab release notebooks feedback report tensorboard bench lint clean

help:  ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## (.*)/  make \1|\2/' | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'
	@echo
	@echo "  Variables: LECTURE=$(LECTURE)  SUBMISSIONS=path  OUT=$(OUT)  NOTEBOOK=path  GRADE_OPTIONS='--workers 4'"

setup: $(SETUP)  ## make .venv, or bring it up to date

.venv/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 2; }
	@test -x .venv/bin/python || { echo "Making .venv ..."; $(PYTHON) -m venv .venv; }
	@echo "Installing what pyproject.toml names (once; some minutes) ..."
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,postgres]'
	@touch $@

grade: $(SETUP)  ## grade the sample class, or yours: make grade LECTURE=02_indexing SUBMISSIONS=path
	@$(PY) -m autograder.notebooks --check $(LECTURE) 2>/dev/null || { echo "An exercise or a notebook was edited: building it anew ..."; $(PY) -m autograder.notebooks $(LECTURE); }
	@$(PY) -m autograder release $(LECTURE)
ifeq ($(SUBMISSIONS),)
	@$(PY) -m autograder sample $(LECTURE) $(OUT)/submitted
	@$(PY) -m autograder grade $(LECTURE) --submissions $(OUT)/submitted --out $(OUT) --trust-code $(GRADE_OPTIONS)
else
	@$(PY) -m autograder grade $(LECTURE) --submissions "$(SUBMISSIONS)" --out $(OUT) $(GRADE_OPTIONS)
endif
	@$(PY) -m autograder feedback $(LECTURE) --out $(OUT)

test: $(SETUP)  ## every test: units, properties, lectures, and the solved notebooks against their stored outputs
	$(PY) -m pytest -n 2 --dist loadgroup
	$(PY) -m pytest --nbval --nbval-current-env -p no:cacheprovider -W default -n 2 --dist loadscope solutions

check: $(SETUP)  ## every visible check of a student's notebook as a test: make check NOTEBOOK=path
	@test -n "$(NOTEBOOK)" || { echo "Give a notebook: make check NOTEBOOK=course/$(LECTURE)/$(LECTURE).ipynb"; exit 2; }
	$(PY) -m pytest --nbval-lax --nbval-current-env -p no:cacheprovider -W default "$(NOTEBOOK)"

lab: $(SETUP)  ## JupyterLab on course/
	$(PY) -m jupyter lab --notebook-dir=course

release: $(SETUP)  ## build course/ from solutions/
	@$(PY) -m autograder release

notebooks: $(SETUP)  ## build and execute the solved notebooks from their .py sources
	@$(PY) -m autograder.notebooks

feedback: $(SETUP)  ## write the feedback pages
	@$(PY) -m autograder feedback $(LECTURE) --out $(OUT)

report: $(SETUP)  ## write the class report again
	@$(PY) -m autograder report $(LECTURE) --out $(OUT)

tensorboard: $(SETUP)  ## TensorBoard on the runs that notebooks logged
	@$(PY) -m autograder tensorboard

bench: $(SETUP)  ## the side-by-side timings of benchmarks/
	@for file in benchmarks/*.py; do echo "== $$file"; $(PY) $$file || exit 1; done

lint: $(SETUP)  ## ruff
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

clean:  ## remove what the other commands made, .venv and graded classes too
	rm -rf .venv grading .pytest_cache .ruff_cache build *.egg-info
