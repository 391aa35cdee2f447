# Two commands: `make run` and `make test`. Both do all their set-up.
.PHONY: run test demo lint types clients real-clients crash faults again machines soak bench latency coverage clean help

run: ## set up, start the bridge with its embedded server, say what to do next
	@packaging/scripts/setup.sh run
	@.venv/bin/agentworks up

test: ## set up, run the tests (real vendor programs only where installed)
	@packaging/scripts/setup.sh dev
	.venv/bin/python -m pytest -q -n 2 --dist loadfile -m "not real_client and not crash" tests; first=$$?; \
	CRASH_EVERY=$(or $(CRASH_EVERY),5) .venv/bin/python -m pytest -q tests/faults/test_kill_points.py && exit $$first

demo: ## one message all the way round, in a scratch folder, a line per step
	@packaging/scripts/setup.sh run
	@.venv/bin/agentworks demo

lint: ## style, format, and what is generated from one source
	@packaging/scripts/setup.sh dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	packaging/scripts/sync-agent-messaging-skills.py --check
	.venv/bin/python packaging/scripts/provider-table.py --check

types: ## strict types
	@packaging/scripts/setup.sh dev
	.venv/bin/mypy

clients: ## install the pinned vendor programs that the real-client tests drive
	packaging/scripts/install-clients.sh

real-clients: clients ## drive the real vendor programs, offline
	@packaging/scripts/setup.sh dev
	AGENTWORKS_REQUIRE_CLIENTS=1 .venv/bin/python -m pytest -q -n 3 --dist loadfile -m real_client tests

crash: ## kill the daemon at every write to its journal
	@packaging/scripts/setup.sh dev
	CRASH_EVERY=1 .venv/bin/python -m pytest -q tests/faults/test_kill_points.py tests/faults/test_double_kills.py

faults: ## every test that the fault matrix names, and every other serial one
	@packaging/scripts/setup.sh dev
	.venv/bin/python -m tests.faults

again: ## only what failed last, one at a time
	AGENTWORKS_REQUIRE_CLIENTS=$(REQUIRE_CLIENTS) .venv/bin/python -m pytest -q --last-failed --last-failed-no-failures none tests

machines: ## any order of crashes, cuts and hooks, at random; SECONDS=300
	@packaging/scripts/setup.sh dev
	.venv/bin/python -m tests.faults.whole $(or $(SECONDS),300)

soak: ## a bridge under load, killed and cut at random; SECONDS=120, SEED=...
	@packaging/scripts/setup.sh dev
	.venv/bin/python -m tests.soak --seconds $(or $(SECONDS),120) $(if $(SEED),--seed $(SEED))

bench: ## the table of ratios
	@packaging/scripts/setup.sh dev
	.venv/bin/python -m tests.benchmarks

latency: ## how soon each real program's model has a message; NAMES="claude codex"
	@packaging/scripts/setup.sh dev
	.venv/bin/python -m tests.benchmarks.latency --rounds $(or $(ROUNDS),15) $(NAMES)

coverage: ## each module of core and store by its own tests alone, by branch
	@packaging/scripts/setup.sh dev
	.venv/bin/python -m tests.coverage

clean: ## remove what set-up made (never your state)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile
