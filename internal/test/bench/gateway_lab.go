package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// What the gateway is measured on: a server, the clients, and the built gateway or the baseline, each in a process. Both report
// their use of CPU and memory in the same way, by their metrics.

// Arms of the gateway.
const (
	armGateway = "gateway"
	armRelay   = "plain subscriber" // with nats.go, for each connection
)

func gatewayArms() []string { return []string{armGateway, armRelay} }

// historyChat begins the names of chats with a history, for which the baseline has a consumer.
const historyChat = "history"

// served is a gateway, or the baseline, in its process.
type served struct {
	address string // of the endpoints
	metrics string // a URL
	role    role   // of the baseline, and of a gateway under a profiler
	end     func() error
}

// serve starts an arm.
func (g *gatewayRun) serve(ctx context.Context, arm string) (*served, error) {
	s := g.lab.base
	switch {
	case arm == armRelay:
		s.Role = "relay"
	case g.profiling():
		s.Role, s.CPUProfile, s.MemProfile = "gateway", g.cpuProfile, g.memProfile
	default:
		return startGateway(ctx, g.binary, s.URL)
	}
	r, hello, err := spawn(ctx, s)
	if err != nil {
		return nil, err
	}
	return &served{address: strings.TrimPrefix(hello.URL, "http://"), metrics: hello.URL + "/metrics", role: r, end: r.close}, nil
}

// startGateway starts the built gateway.
func startGateway(ctx context.Context, binary, nats string) (*served, error) {
	cmd := exec.CommandContext(ctx, binary, "--dev", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--nats", nats, "-o", "json", "--drain", "0s",
		"--rate", "0", "--run-rate", "0", "--tenant-rate", "0", "--max-streams", "0", "--max-streams-per-user", "0", "--settle", quietRuns.String(), "--log-level", "error")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	end := func() error {
		_ = cmd.Process.Signal(os.Interrupt) // one that has ended already is waited for
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("end of the gateway: %w", err)
		}
		return nil
	}
	var started struct {
		URL  string `json:"url"`
		HTTP string `json:"http"`
	}
	if err := json.NewDecoder(out).Decode(&started); err != nil {
		return nil, errors.Join(fmt.Errorf("start the gateway: %w", err), end())
	}
	public, err := url.Parse(started.URL)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the gateway: %w", err), end())
	}
	return &served{address: public.Host, metrics: started.HTTP + "/metrics", end: end}, nil
}

// buildGateway builds the gateway into a directory, unless a flag names one that is built.
func (g *gatewayRun) buildGateway(ctx context.Context, dir string) error {
	if g.binary != "" {
		return nil
	}
	g.binary = filepath.Join(dir, "gateway")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", g.binary, "github.com/oneturn/oneturn/cmd/gateway")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the gateway: %w: %s", err, out)
	}
	return nil
}

// Metrics of a process.
const (
	metricCPU    = "process_cpu_seconds_total"
	metricRSS    = "process_resident_memory_bytes"
	metricAllocs = "go_memstats_mallocs_total"
	metricHeap   = "go_memstats_heap_inuse_bytes"
	metricStacks = "go_memstats_stack_inuse_bytes"
)

// read returns what a process has used by now.
func (s *served) read(ctx context.Context) (map[string]float64, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.metrics, nil)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	q.Close = true
	got, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	defer func() { _ = got.Body.Close() }()
	found := map[string]float64{}
	lines := bufio.NewScanner(got.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			found[name] = v
		}
	}
	if found[metricRSS] == 0 {
		return nil, errors.Join(fmt.Errorf("the metrics of %s have no %s", s.metrics, metricRSS), lines.Err())
	}
	return found, nil
}
