# One target for each thing that is done often. Bare `make` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules

BENCHTIME ?= 1s
FUZZTIME  ?= 10s
PKG       ?= ./...
COMMANDS  := worker gateway publisher turnctl
LINT      := go tool -modfile=.ci/lint/go.mod golangci-lint

.PHONY: help
help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { line = sprintf("  %-15s", $$1); n = split($$2, words, " "); \
		for (i = 1; i <= n; i++) { if (length(line) + 1 + length(words[i]) > 100) { print line; line = sprintf("  %15s", "") } \
		line = line " " words[i] } print line }' $(MAKEFILE_LIST)

.PHONY: build
build: $(COMMANDS:%=bin/%) ## build bin/worker, bin/gateway, bin/publisher and bin/turnctl

# The go command knows better than make what has to be built again.
.PHONY: $(COMMANDS:%=bin/%)
$(COMMANDS:%=bin/%):
	@echo 'building $@ (minutes the first time, seconds after that)'
	@CGO_ENABLED=0 go build -trimpath -o $@ ./cmd/$(@F)

# Most tests wait for servers and timers, so more of them run at the same time than there are cores. `make lint` vets.
.PHONY: test
test: ## run all tests in random order (PKG=./events/... for a part)
	go test -shuffle=on -parallel=6 -vet=off -timeout=3m $(PKG)

# COUNT=1000000 FROM=20001 searches schedules that were not searched before.
COUNT ?= 20000
FROM  ?= 1
.PHONY: sim
sim: ## search COUNT (20,000) simulated schedules for one that breaks the promise
	go test -count=1 -timeout=10m -run='^TestSchedules$$' -v ./internal/test/sim -sim.count=$(COUNT) -sim.from=$(FROM)

# The faults are edits of the sources, in package internal/test/mutants: the go command compiles the edited copies instead.
PLANT   := go run ./internal/test/mutants/plant
PLANTED := -overlay=bin/mutants/overlay.json
.PHONY: mutants
mutants: ## plant one fault after the other in the journal and in sweeps: simulation and tests have to find each; released workers have none
	$(PLANT) -o bin/mutants
	go test -count=1 -timeout=5m -tags=mutants $(PLANTED) -run='^TestEachMutantIsCaught$$' -v ./internal/test/sim
	go test -count=1 -timeout=5m -tags=mutants $(PLANTED) -run='^TestEachMutantOf.*IsCaught$$' -v ./handlers ./internal/store ./internal/sweep ./internal/program ./internal/feed ./idempotency
	go test -count=1 -timeout=5m -tags=released -run='HasNoFailpointsAndNoMutants|HasFailpointsAndMutants' ./cmd/worker

# Real workers, servers and networks instead of simulated ones.
.PHONY: mutants-chaos
mutants-chaos: ## plant the same faults in real workers: the crash matrix or a chaos scenario has to find each (1 min)
	$(PLANT) -o bin/mutants
	go test -count=1 -timeout=5m -parallel=6 -tags=failpoints,mutants $(PLANTED) -run='^TestEachMutantIsCaught$$' -v ./internal/test/crash | grep -v '^=== '
	go test -count=1 -timeout=5m -parallel=4 -tags=chaos,mutants $(PLANTED) -run='^TestEachMutantIsCaught$$' -v ./internal/test/chaos | grep -v '^=== '

.PHONY: gateway-mutants
gateway-mutants: bin/worker ## plant faults in gateways: their clients have to find each (1 min)
	$(PLANT) -o bin/mutants
	CGO_ENABLED=0 go build -trimpath $(PLANTED) -o bin/mutants/gateway ./cmd/gateway
	go test -count=1 -timeout=5m -parallel=3 -tags=chaos,mutants $(PLANTED) -run='^TestEachMutantIsCaught$$' -v ./internal/test/gatewaychaos | grep -v '^=== '

# HITS kills of the only worker a cell, OTHERS with Python tools and with three workers.
HITS   ?= 20
OTHERS ?= 3
.PHONY: crash
crash: ## kill, stop and cut off real workers at every point of the path, for every effect (HITS=2 OTHERS=1: a part)
	$(PLANT) -points -o bin/points
	go test -count=1 -timeout=15m -parallel=4 -tags=failpoints -overlay=bin/points/overlay.json -v ./internal/test/crash -args -crash.hits=$(HITS) -crash.others=$(OTHERS) | grep --line-buffered -v '^=== '
	@! grep -q ONETURN_FAILPOINTS bin/worker || { echo 'make crash: bin/worker was built with failpoints' >&2; exit 1; }
crash: bin/worker

# RUN=regexp runs a part.
RUN ?= .
.PHONY: programs
programs: ## run the acceptance cases of plans and orchestrations against real workers, also with faults (RUN=regexp: a part)
	go run -tags=failpoints ./internal/test/programcases --parallel=3 --falsify --run='$(RUN)' internal/test/programcases/testdata

# What a fault did stands in one line a scenario; a round that failed names the seed to try again.
CHAOS      ?= 15
CHAOSFLAGS ?=
.PHONY: chaos
chaos: ## break servers, network and workers under load for CHAOS (15) minutes; CHAOS=brief: each fault once, 2 min
	go test -count=1 -tags=chaos -parallel=8 -timeout=$$(($(CHAOS:brief=0) + 10))m -v -run='^TestChaos$$' ./internal/test/chaos \
		-chaos.minutes=$(CHAOS:brief=0) $(CHAOSFLAGS) | grep --line-buffered -v '^=== '

# A run that failed names the SEED to try again.
DURATION ?= 5m
SOCKETS  ?= 500
RUNS     ?= 100
SEED     ?= 0
.PHONY: gateway-chaos
gateway-chaos: bin/gateway bin/worker ## break gateways, workers, connections and NATS for DURATION (5m) under SOCKETS (500) WebSockets and RUNS (100) clients of AG-UI: none may miss or double an event
	go test -count=1 -tags=chaos -timeout=0 -v -run='^TestGatewayChaos$$' ./internal/test/gatewaychaos -gateway.duration=$(DURATION) \
		-gateway.sockets=$(SOCKETS) -gateway.runs=$(RUNS) -gateway.seed=$(SEED) | grep --line-buffered -v '^=== '

# Every wait of the soak is bounded by itself. Its page is written to bin/soak.txt and bin/soak.json.
SOAK      ?= 10m
SOAKFLAGS ?=
.PHONY: soak
soak: ## steady load for SOAK (10m; 2h, …; over 1m) with a fault each minute: memory, descriptors, p99, broken promises
	mkdir -p bin
	go test -count=1 -tags=soak -timeout=0 -v -run='^TestSoak$$' ./internal/test/chaos -soak.for=$(SOAK) -soak.report=$(CURDIR)/bin/soak $(SOAKFLAGS)

# The lock file pins what is installed; install scripts do not run.
.PHONY: mcp-everything
mcp-everything: ## call the reference server of MCP, a Node program, on stdio and on HTTP (needs node and npm)
	cd .ci/mcp-everything && npm ci --loglevel=error
	go test -count=1 -tags=everything -timeout=2m -run='^TestReferenceServer' ./internal/tools/mcptool

# The lock file pins what is installed; install scripts do not run.
.PHONY: clients
clients: build ## test the JavaScript and Python clients against real workers (without Node 20 and npm: Python alone)
	cd clients/python && python3 -m unittest
	@if ! node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' 2>/dev/null || ! command -v npm >/dev/null; then \
		echo 'NOT TESTED: clients/js needs Node 20 or newer, and npm'; \
	else \
		cd clients/js && npm ci --loglevel=error && npm run types && npm test; \
	fi

# The lock file pins what is installed; install scripts do not run.
.PHONY: gateway-test
gateway-test: build copilotkit-page ## test the gateway with AG-UI's clients in Node, and with pages in Chromium (needs node, npm and chromium; 3 min)
	cd internal/test/frontend && npm ci --ignore-scripts --loglevel=error
	go test -count=1 -tags=frontend -timeout=6m ./internal/test/frontend

# npm writes this file last. Without it, or if the lock file is newer, everything is installed again; install scripts do not run.
COPILOTKIT := examples/12-frontend/copilotkit
$(COPILOTKIT)/node_modules/.package-lock.json: $(COPILOTKIT)/package-lock.json
	cd $(COPILOTKIT) && npm ci --ignore-scripts --loglevel=error

.PHONY: copilotkit-page
copilotkit-page: $(COPILOTKIT)/node_modules/.package-lock.json ## build the page with CopilotKit of examples/12-frontend (needs node and npm; 1 min, 500 MB)
	cd $(COPILOTKIT) && npm run --silent build

# Without the measuring program, which would measure the detector, and the documents, whose commands
# run in processes that it does not see. RACESKIP omits more. `make test` vets what it compiles.
RACESKIP ?= bench|docs
.PHONY: race
race: ## run the tests with the race detector, without the measuring program and the documents
	go test -race -vet=off -shuffle=on -timeout=8m $$(go list $(PKG) | grep -vE '/($(RACESKIP))$$')

.PHONY: cover
cover: ## run all tests and print the coverage of each function
	go test -coverprofile=bin/cover.out -coverpkg=./... $(PKG)
	go tool cover -func=bin/cover.out

.PHONY: lint
lint: ## run every linter (the first run builds golangci-lint: about two minutes)
	$(LINT) run $(PKG)

# The database is on the network, which not every machine has: then the check is skipped with a notice.
VULNDB := https://vuln.go.dev
.PHONY: vulnerabilities
vulnerabilities: ## check what is built for known vulnerabilities; skipped with a notice if the database is unreachable
	@if ! python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/index/db.json", timeout=20)' $(VULNDB) 2>/dev/null; then \
		echo 'NOT CHECKED: $(VULNDB) cannot be reached from here, so no version was checked for known vulnerabilities'; \
	else \
		go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 -db $(VULNDB) $(PKG); \
	fi

.PHONY: fmt
fmt: ## format the code and apply the safe fixes of the linters
	$(LINT) fmt $(PKG)
	$(LINT) run --fix $(PKG)

# BENCHTIME=1x proves that the benchmarks of the packages run; the path is then a brief run too.
BRIEF      ?=
BENCHFLAGS ?=
.PHONY: bench
bench: ## measure the whole path next to its baselines (15 min; BRIEF=1: 20 s, with the gateway), after the benchmarks of the packages
	$(if $(BRIEF),,go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) $(PKG))
	go run ./internal/test/bench $(if $(or $(BRIEF),$(filter 1x,$(BENCHTIME))),-brief) $(BENCHFLAGS)
	$(if $(BRIEF),go run ./internal/test/bench gateway -brief)

# 10,000 sockets need 20,000 open files: see ulimit -Hn.
.PHONY: gateway-bench
gateway-bench: bin/gateway ## measure deliveries, histories and memory of the gateway next to a plain subscriber (8 min; BRIEF=1: 5 s)
	go run ./internal/test/bench gateway -gateway bin/gateway $(if $(BRIEF),-brief) $(BENCHFLAGS)

GROWTHFLAGS ?=
.PHONY: bench-programs
bench-programs: ## measure steps of programs next to turns, parked programs, and compiling (2 min; BRIEF=1: 10 s)
	go test -run='^$$' -bench='Compile|Turn' -benchmem $(if $(BRIEF),-benchtime=1x) ./flow ./handlers
	go run ./internal/test/bench growth -only programs $(if $(BRIEF),-brief) $(GROWTHFLAGS)

.PHONY: bench-growth
bench-growth: ## measure what grows: retained turns, readers, backlog, workers, workflows, payloads, questions, floods, sweeps (about 60 min and 15 GB of disk; BRIEF=1: 20 s)
	go run ./internal/test/bench growth $(if $(BRIEF),-brief) $(GROWTHFLAGS)

# They compare times, so an otherwise idle machine is needed.
.PHONY: timed
timed: ## measure that floods of searches in large chats slow no other tenant (2 min)
	go test -count=1 -tags=timed -timeout=10m -run='SlowsNobody$$|SlowNobody$$' -v ./internal/test/hostile

FUZZDIR ?= .
.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	@targets=$$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $(FUZZDIR) | sed 's/:func /:/' | sort); \
	test -n "$$targets" || { echo 'make fuzz: no fuzz target found in $(FUZZDIR)' >&2; exit 1; }; \
	while IFS=: read -r file name; do \
		echo "== $$name in $$(dirname "$$file")"; \
		go test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) "$$(dirname "$$file")" </dev/null; \
	done <<<"$$targets"

.PHONY: demo
demo: build ## build, then kill workers while they run tools and count the runs
	@CGO_ENABLED=0 go run -trimpath ./examples/demo -worker bin/worker

.PHONY: up
up: ## start NATS, two workers and a gateway with Docker Compose, with a password in .env, and wait until they are ready
	@docker compose version >/dev/null || \
		{ echo 'make up needs Docker with the Compose plugin: https://docs.docker.com/compose/install/' >&2; exit 1; }
	test -f .env || (umask 077 && printf 'ONETURN_NATS_PASSWORD=pw%s\n' "$$(openssl rand -hex 24)" >.env)
	docker compose up --build --detach --wait

.PHONY: image-digests
image-digests: ## print the digests of the images that the Dockerfile and the compose file begin with, to pin them by
	@grep -hoE '(nats|golang|python):[0-9][a-z0-9.-]+' docker-compose.yml Dockerfile | sort -u | while read -r image; do \
		echo "$$image@$$(docker buildx imagetools inspect "$$image" --format '{{.Manifest.Digest}}')"; \
	done

.PHONY: down
down: ## stop them; the data stays in the volume (docker compose down --volumes removes it)
	docker compose down

.PHONY: tidy
tidy: ## make go.mod and the tools' module tidy
	go mod tidy
	cd .ci/lint && go mod tidy

.PHONY: tidy-check
tidy-check: ## fail if go.mod is not tidy or a downloaded module was changed
	go mod tidy -diff
	go mod verify

.PHONY: generate
generate: ## write docs/configuration.md from the configuration structs
	go test ./config -update

.PHONY: verify
verify: generate ## fail if a generated document differs from the code
	@test -z "$$(git status --porcelain -- docs/configuration.md)" || { git --no-pager diff -- docs/configuration.md; \
		echo 'make verify: docs/configuration.md was stale and has been regenerated; commit it' >&2; exit 1; }

.PHONY: check
check: ## what CI runs: build, lint, tests, race, demo, benches, fuzzing, docs
	.ci/run
