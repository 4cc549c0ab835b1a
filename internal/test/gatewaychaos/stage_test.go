//go:build chaos

package gatewaychaos_test

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/test/gatewaychaos"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/subjects"
)

// gatewayProcess is a gateway, with the proxies to it and from it.
type gatewayProcess struct {
	program *program
	address string
	proxy   *harness.Proxy // between clients and the gateway
	nats    *harness.Proxy // between the gateway and NATS
	memory  gatewaychaos.Memory
}

// workerProcess is a worker, with the proxy to NATS.
type workerProcess struct {
	program *program
	nats    *harness.Proxy
}

// stage has the processes, and what is known of the run.
type stage struct {
	*testing.T

	cluster  *harness.Cluster
	gateways []*gatewayProcess
	workers  []*workerProcess
	tokens   []string
	journal  *gatewaychaos.Journal
	http     *http.Client
	sums     sums
	verdict  gatewaychaos.Verdict
	frames   atomic.Int64
	healed   atomic.Bool   // all faults were injected and healed
	thinking time.Duration // of a user between two messages, at most

	mu     sync.Mutex
	counts map[string]int
	chats  []*userChat
}

func newStage(t *testing.T, users int) *stage {
	t.Helper()
	s := &stage{
		T: t, cluster: harness.NewCluster(t, 1, ""), journal: gatewaychaos.NewJournal(), counts: map[string]int{}, sums: sums{seed: maphash.MakeSeed()},
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, ResponseHeaderTimeout: 12 * time.Second}},
	}
	t.Cleanup(s.http.CloseIdleConnections)
	s.cluster.Provision()
	tokens := s.writeTokens(users)
	server := s.cluster.Nodes()[0].Addr()
	workflows := writeWorkflows(t)
	for n := range *workers {
		w := &workerProcess{nats: harness.NewProxy(t, server)}
		w.program = newProgram(t, fmt.Sprint("worker", n), *workerBinary, "--nats", w.nats.URL(), "--workflows", workflows, "--watch=false",
			"--http", "off", "--park-after", "300ms", "--sweep-every", "10s", "--log-level", "warn")
		s.workers = append(s.workers, w)
	}
	for n, address := range harness.FreeAddresses(t, *gateways) {
		g := &gatewayProcess{address: address, proxy: harness.NewProxy(t, address), nats: harness.NewProxy(t, server)}
		g.program = newProgram(t, fmt.Sprint("gateway", n), *gatewayBinary, "--nats", g.nats.URL(), "--tokens", tokens, "--listen", address,
			"--http", "off", "--settle", "400ms", "--keep-alive", "2s", "--drain", "3s", "--rate", "100", "--run-rate", "20", "--max-body", "8MiB")
		s.gateways = append(s.gateways, g)
	}
	for _, g := range s.gateways {
		s.serves(g)
	}
	return s
}

// serves waits until a gateway has read the workflows of the workers.
func (s *stage) serves(g *gatewayProcess) {
	s.Helper()
	c := &userChat{stage: s, id: "none", token: s.tokens[0]}
	require.Eventually(s.T, func() bool {
		response, err := c.post(s.Context(), g, "/agui/"+workflow+"/stop/none", []byte(`{}`))
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(text), "not_running")
	}, time.Minute, 50*time.Millisecond, "%s", g.program.tail())
}

// writeTokens writes a file with a token for each user.
func (s *stage) writeTokens(users int) string {
	s.Helper()
	var file strings.Builder
	for n := range users {
		token := auth.NewToken()
		s.tokens = append(s.tokens, token)
		fmt.Fprintf(&file, "- {sha256: %s, app: %s, user: user-%d}\n", auth.HashToken(token), tenantOf(n), n)
	}
	path := filepath.Join(s.TempDir(), "tokens.yaml")
	require.NoError(s.T, os.WriteFile(path, []byte(file.String()), 0o600))
	return path
}

func (s *stage) anyGateway(rng *rand.Rand) *gatewayProcess {
	return s.gateways[rng.IntN(len(s.gateways))]
}

// tenantOf is the tenant of a user: each has a few, since tenants share what a gateway lets one of them use.
func tenantOf(user int) string { return fmt.Sprint("tenant-", user/5) }

// think is how long a user does nothing.
func (s *stage) think(rng *rand.Rand) time.Duration {
	return time.Duration(rng.Int64N(int64(s.thinking)))
}

// count counts something for the report.
func (s *stage) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// report returns what was counted.
func (s *stage) report() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d chats, %d stored events received by sockets\n", len(s.chats), s.frames.Load())
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		fmt.Fprintf(&b, "  %-40s %d\n", what, s.counts[what])
	}
	return b.String()
}

// user has one chat after the other until all faults were injected. Each chat has so many tabs.
func (s *stage) user(ctx context.Context, n, tabs int) {
	rng := rand.New(rand.NewPCG(*seed, uint64(n)))
	for round := 0; !s.healed.Load() && ctx.Err() == nil; round++ {
		c := &userChat{stage: s, id: fmt.Sprintf("chat-%d-%d", n, round), app: tenantOf(n), token: s.tokens[n], rng: rng}
		for i := range tabs {
			c.tabs = append(c.tabs, &tab{c: c, name: fmt.Sprintf("tab %d of %s", i, c.id), slow: (n+i)%20 == 0, rng: rand.New(rand.NewPCG(rng.Uint64(), uint64(i)))})
		}
		s.mu.Lock()
		s.chats = append(s.chats, c)
		s.mu.Unlock()
		c.run(ctx)
	}
}

// sample samples the memory of the gateways until ctx ends.
func (s *stage) sample(ctx context.Context) {
	for pause.For(ctx, time.Second) == nil {
		for _, g := range s.gateways {
			if rss, err := gatewaychaos.Resident(g.program.pid()); err == nil && rss > 0 { // else it was killed and is not started yet
				g.memory.Add(time.Now(), rss)
			}
		}
	}
}

// newSpace returns the names of the default prefix.
func newSpace(t *testing.T) subjects.Space {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	return space
}
