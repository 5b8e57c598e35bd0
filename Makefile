# One command per task. `make` or `make help` lists them.
#
# Everything that is not Rust comes through scripts/tools into .tools/, without root. CARGO_TARGET_DIR, TEMPORAL_BIN,
# REDIS_SERVER and PROMTOOL are honoured when they are set.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

CARGO ?= cargo
# The lock file is part of the source: a build that would change it is a mistake.
LOCKED := --locked

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Try it

.PHONY: demo
demo: cargo-there ## investigate a real company against simulated sources while one of them is down (ARGS=--json …)
	@export TEMPORAL_BIN="$$(scripts/tools temporal)" && exec $(CARGO) run $(LOCKED) --bin osint -- demo $(ARGS)

.PHONY: dev
dev: cargo-there ## run a server, the simulator and a worker until Ctrl-C (ARGS="--fault tavily=down" …)
	@export TEMPORAL_BIN="$$(scripts/tools temporal)" && exec $(CARGO) run $(LOCKED) --bin osint -- dev $(ARGS)

##@ Check it

.PHONY: test
test: cargo-there ## run everything that CI runs
	@scripts/check $(STEPS)

.PHONY: fmt
fmt: cargo-there ## format the code
	$(CARGO) fmt --all

.PHONY: lint
lint: cargo-there ## run clippy with warnings as errors
	@scripts/check format clippy

.PHONY: loom
loom: cargo-there ## explore every interleaving of the registry's own atomics
	@scripts/check loom

.PHONY: fuzz
fuzz: cargo-there ## fuzz every parser, a minute each (ARGS="soap -max_total_time=3600")
	@scripts/fuzz $(ARGS)

.PHONY: deny
deny: cargo-there ## check our dependencies: licences, duplicate versions, sources and advisories
	@scripts/check deny

.PHONY: doc
doc: cargo-there ## build the API documentation with warnings as errors
	@scripts/check doc

.PHONY: histories
histories: cargo-there ## record the histories that the replay tests read
	@export TEMPORAL_BIN="$$(scripts/tools temporal)" && exec $(CARGO) test $(LOCKED) -p osint-tests --test replay -- --ignored --nocapture record_the_histories

.PHONY: publish-check
publish-check: cargo-there ## package the registry as for crates.io, and compare its API with the last tag
	@scripts/check publish

##@ Compare it

.PHONY: bench
bench: cargo-there ## compare the breaker's speed with the published crates (ARGS=… for criterion), then measure the numbers below
	$(CARGO) bench $(LOCKED) -p breaker-conformance $(ARGS)
	@$(MAKE) fleet-numbers ARGS=
	@$(MAKE) temporal-numbers ARGS=

.PHONY: fleet-numbers
fleet-numbers: cargo-there ## measure the promises of docs/fleet.md with a real Redis and eight processes (ARGS="calls restore deaths outage kills")
	@export REDIS_SERVER="$$(scripts/tools redis-server)" && exec $(CARGO) run $(LOCKED) --release -p circuit-registry --features redis --example fleet_numbers -- $(ARGS)

.PHONY: temporal-numbers
temporal-numbers: cargo-there ## measure the promises of docs/temporal.md with a real Temporal server (ARGS="pairs rejection soak")
	@export TEMPORAL_BIN="$$(scripts/tools temporal)" && $(CARGO) bench $(LOCKED) -p osint-tests --bench temporal -- $(ARGS) && \
		exec $(CARGO) test $(LOCKED) --release -p osint-tests --test cost -- --nocapture

.PHONY: conformance
conformance: cargo-there ## run the cases of the breaker's semantics with our crate and the published ones (ARGS=docs/conformance.md)
	$(CARGO) run $(LOCKED) --quiet -p breaker-conformance -- $(ARGS)

##@ Keep it

.PHONY: upstreams
upstreams: cargo-there ## write docs/upstreams.md from the catalog
	$(CARGO) run $(LOCKED) --quiet --bin osint -- sources --markdown >docs/upstreams.md.new
	mv docs/upstreams.md.new docs/upstreams.md

.PHONY: metrics
metrics: cargo-there ## write docs/metrics.md from the table in the code
	@METRICS_PAGE=1 $(CARGO) test $(LOCKED) -p osint-tests --test deploy metrics

.PHONY: pictures
pictures: cargo-there ## take the pictures of the dashboard in docs/
	@export TEMPORAL_BIN="$$(scripts/tools temporal)" CHROMIUM="$$(scripts/tools chromium-headless-shell)" DASHBOARD_PICTURES="$$PWD/docs/pictures" && \
		mkdir -p docs/pictures && exec $(CARGO) test $(LOCKED) -p osint-tests --test dashboard readable

.PHONY: tools
tools: ## fetch the programs that the tests need into .tools/
	@scripts/tools temporal redis-server promtool cargo-deny chromium-headless-shell

.PHONY: clean-tools
clean-tools: ## remove .tools/
	rm -rf .tools

.PHONY: clean
clean: clean-tools ## remove everything that was built or fetched
	$(CARGO) clean

.PHONY: cargo-there
cargo-there:
	@command -v $(CARGO) >/dev/null || { echo "make: cargo is not on the PATH: install Rust (https://rustup.rs), then open a new shell" >&2; exit 1; }
