//go:build unix

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
)

const (
	roleServer = "oneturntest-nats-server"
	envServer  = "ONETURNTEST_NATS_SERVER" // nodeConfig as JSON

	// systemUser is the name, and the password, of who may remove servers.
	systemUser = "system"

	clusterStart = 60 * time.Second // bound of everything that waits for a server
)

// Cluster is one or three NATS servers with JetStream, each a separate process on loopback
// that a test can kill, pause and start again on the same address and store. Its TestMain has
// to call [RunRole].
type Cluster struct {
	t     testing.TB
	nodes []*Node
	links links // nil unless it is linked
	nc    *nats.Conn
}

// Node is one server of a [Cluster].
type Node struct {
	t      testing.TB
	index  int
	config nodeConfig
	proc   *oneturntest.Process
}

// nodeConfig is the configuration of a server process.
type nodeConfig struct {
	Name      string   `json:"name"`
	Client    string   `json:"client"`    // HOST:PORT
	Route     string   `json:"route"`     // HOST:PORT, "" for a single server
	Advertise string   `json:"advertise"` // HOST:PORT announced to other servers, "" for the real one
	Routes    []string `json:"routes"`
	Store     string   `json:"store"`
	Log       string   `json:"log"`
}

// NewCluster starts size servers (1 or 3) whose stores are in directories below dir, and
// waits until JetStream answers. An empty dir means one of the test.
func NewCluster(t testing.TB, size int, dir string) *Cluster {
	t.Helper()
	return newCluster(t, size, dir, false)
}

// NewLinkedCluster is [NewCluster] with three servers and a [Proxy] between each two of them,
// so that [Cluster.Cut], [Cluster.Isolate] and [Cluster.Reject] can break their links.
func NewLinkedCluster(t testing.TB, dir string) *Cluster {
	t.Helper()
	return newCluster(t, 3, dir, true)
}

func newCluster(t testing.TB, size int, dir string, linked bool) *Cluster {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	free := FreeAddresses(t, 2*size)
	c := &Cluster{t: t}
	addrs, routes := make([]string, 0, size), make([]string, 0, size)
	for i := range size {
		addrs = append(addrs, free[2*i+1])
		routes = append(routes, "nats://"+free[2*i+1])
	}
	if linked {
		c.links = newLinks(t, addrs)
	}
	logs := t.TempDir()
	for i := range size {
		name := "n" + strconv.Itoa(i)
		config := nodeConfig{Name: name, Client: free[2*i], Store: filepath.Join(dir, name), Log: filepath.Join(logs, name+".log")}
		if size > 1 {
			config.Route, config.Routes = free[2*i+1], routes
		}
		if linked {
			config.Routes, config.Advertise = c.links.of(i, routes), nowhere
		}
		c.nodes = append(c.nodes, &Node{t: t, index: i, config: config})
	}
	for _, n := range c.nodes {
		n.Start()
	}
	c.nc = c.Connect()
	c.WaitReady()
	return c
}

// Ports of servers that may be killed and started again: below those that systems give to outgoing
// connections, so that none of the many of a test takes one while its server is down.
const (
	lowestPort = 10_000
	ports      = 20_000
)

// FreeAddresses returns n loopback addresses, HOST:PORT, that no process listens on. Another process may take one
// before it is used; a server whose port is taken logs that and ends.
func FreeAddresses(t testing.TB, n int) []string {
	t.Helper()
	addrs := make([]string, 0, n)
	for tried := 0; len(addrs) < n; tried++ {
		require.Less(t, tried, 100*n, "no ports are free")
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(lowestPort+rand.N(ports)))
		if err != nil {
			continue
		}
		defer l.Close() // all are held until the last is known
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// Nodes returns the servers.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// URL returns the addresses of all servers, as clients take them.
func (c *Cluster) URL() string {
	urls := make([]string, 0, len(c.nodes))
	for _, n := range c.nodes {
		urls = append(urls, n.URL())
	}
	return strings.Join(urls, ",")
}

// Connect returns a connection as a worker makes it, to any server, that closes with the
// test.
func (c *Cluster) Connect(opts ...nats.Option) *nats.Conn {
	c.t.Helper()
	var nc *nats.Conn
	require.Eventually(c.t, func() bool {
		var err error
		nc, err = nats.Connect(c.URL(), append([]nats.Option{
			nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond),
		}, opts...)...)
		return err == nil
	}, clusterStart, 20*time.Millisecond, "no server takes connections; logs: %s", c.nodes[0].config.Log)
	c.t.Cleanup(nc.Close)
	return nc
}

// WaitReady waits until JetStream answers, which needs a quorum.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	js, err := jetstream.New(c.nc, jetstream.WithDefaultTimeout(time.Second))
	require.NoError(c.t, err)
	require.Eventually(c.t, func() bool {
		_, err := js.AccountInfo(c.t.Context())
		return err == nil
	}, clusterStart, 50*time.Millisecond, "JetStream does not answer; logs: %s", filepath.Dir(c.nodes[0].config.Log))
}

// Provision makes the streams, buckets and consumers of the default prefix, replicated to all
// servers, with an ack wait of two seconds so that redeliveries come soon.
func (c *Cluster) Provision(change ...func(*provision.Options)) {
	c.t.Helper()
	o := provision.Options{AckWait: 2 * time.Second, Replicas: len(c.nodes)}
	for _, f := range change {
		f(&o)
	}
	plan, err := provision.New(o)
	require.NoError(c.t, err)
	js, err := jetstream.New(c.nc)
	require.NoError(c.t, err)
	// A cluster that has just met may need a while to place streams; applying again is safe.
	require.Eventually(c.t, func() bool {
		_, err = provision.Apply(c.t.Context(), js, plan)
		return err == nil
	}, clusterStart, 200*time.Millisecond, "provision: the last error is in the test's log")
	require.NoError(c.t, err)
}

// StreamLeader returns the server that leads a stream, once there is one. A single server
// leads everything.
func (c *Cluster) StreamLeader(stream string) *Node {
	c.t.Helper()
	return c.leader(func(ctx context.Context, js jetstream.JetStream) (*jetstream.ClusterInfo, error) {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", stream, err)
		}
		return s.CachedInfo().Cluster, nil
	})
}

// ConsumerLeader returns the server that leads a consumer, once there is one.
func (c *Cluster) ConsumerLeader(stream, consumer string) *Node {
	c.t.Helper()
	return c.leader(func(ctx context.Context, js jetstream.JetStream) (*jetstream.ClusterInfo, error) {
		s, err := js.Consumer(ctx, stream, consumer)
		if err != nil {
			return nil, fmt.Errorf("consumer %s: %w", consumer, err)
		}
		return s.CachedInfo().Cluster, nil
	})
}

func (c *Cluster) leader(info func(context.Context, jetstream.JetStream) (*jetstream.ClusterInfo, error)) (leader *Node) {
	c.t.Helper()
	if len(c.nodes) == 1 {
		return c.nodes[0]
	}
	js, err := jetstream.New(c.nc, jetstream.WithDefaultTimeout(time.Second))
	require.NoError(c.t, err)
	require.Eventually(c.t, func() bool {
		cluster, err := info(c.t.Context(), js)
		if err != nil || cluster == nil {
			return false
		}
		for _, n := range c.nodes {
			if n.config.Name == cluster.Leader {
				leader = n
			}
		}
		return leader != nil
	}, clusterStart, 100*time.Millisecond, "no leader")
	return leader
}

// WaitWhole waits until every server has what the leaders of the streams have. A server that is
// still alone, or has just restarted, answers readers with what it had.
func (c *Cluster) WaitWhole(streams ...string) {
	c.t.Helper()
	if len(c.nodes) == 1 {
		return
	}
	js, err := jetstream.New(c.nc, jetstream.WithDefaultTimeout(time.Second))
	require.NoError(c.t, err)
	for _, name := range streams {
		require.Eventually(c.t, func() bool {
			s, err := js.Stream(c.t.Context(), name)
			return err == nil && whole(s.CachedInfo().Cluster, len(c.nodes))
		}, 2*clusterStart, 100*time.Millisecond, "stream %s: a replica does not catch up", name) // after a long partition it is slow
	}
}

func whole(cluster *jetstream.ClusterInfo, size int) bool {
	if cluster == nil || cluster.Leader == "" || len(cluster.Replicas) != size-1 {
		return false
	}
	return !slices.ContainsFunc(cluster.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current })
}

// Name returns the name of the server, as it is in the cluster's information.
func (n *Node) Name() string { return n.config.Name }

// URL returns the address for clients.
func (n *Node) URL() string { return "nats://" + n.config.Client }

// Addr returns the address for clients as HOST:PORT, for a [Proxy].
func (n *Node) Addr() string { return n.config.Client }

// Start starts the server, or starts it again on its store. It does not wait.
func (n *Node) Start() {
	n.t.Helper()
	config, err := json.Marshal(n.config)
	require.NoError(n.t, err)
	n.proc = oneturntest.StartProcess(n.t, roleServer, envServer+"="+string(config))
}

// Kill ends the server with SIGKILL.
func (n *Node) Kill() { n.proc.Kill() }

// Stop ends the server gently.
func (n *Node) Stop() {
	n.t.Helper()
	require.NoError(n.t, n.proc.Stop(clusterStart))
}

// Pause stops the server with SIGSTOP: its connections stay and nothing answers.
func (n *Node) Pause() { n.proc.Pause() }

// Resume continues a paused server.
func (n *Node) Resume() { n.proc.Resume() }

// RunRole is [oneturntest.RunRole] with one more role: a server of a [Cluster]. Test binaries
// that start clusters call it first in TestMain.
func RunRole(roles map[string]oneturntest.Role) bool {
	all := map[string]oneturntest.Role{roleServer: runServer}
	maps.Copy(all, roles)
	return oneturntest.RunRole(all)
}

// runServer is the role of a server process.
func runServer(ctx context.Context) error {
	var config nodeConfig
	if err := json.Unmarshal([]byte(os.Getenv(envServer)), &config); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	o, err := config.options()
	if err != nil {
		return err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	s.ConfigureLogger()
	go s.Start()
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

func (c *nodeConfig) options() (*server.Options, error) {
	host, port, err := hostPort(c.Client)
	if err != nil {
		return nil, err
	}
	system := server.NewAccount(server.DEFAULT_SYSTEM_ACCOUNT)
	o := &server.Options{
		// Clients without a name belong to the account that has JetStream.
		SystemAccount: system.Name, Accounts: []*server.Account{system}, NoAuthUser: "client",
		Users:      []*server.User{{Username: "client"}, {Username: systemUser, Password: systemUser, Account: system}},
		ServerName: c.Name, Host: host, Port: port, NoSigs: true, LogFile: c.Log,
		JetStream: true, StoreDir: c.Store, DisableJetStreamBanner: true,
		// Without an account limit, so that a full disk is met as such.
		JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 1 << 28,
	}
	if c.Route == "" {
		return o, nil
	}
	if host, port, err = hostPort(c.Route); err != nil {
		return nil, err
	}
	o.Cluster = server.ClusterOpts{Name: "oneturntest", Host: host, Port: port, NoAdvertise: true, Advertise: c.Advertise}
	for _, r := range c.Routes {
		u, err := url.Parse(r)
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", r, err)
		}
		o.Routes = append(o.Routes, u)
	}
	return o, nil
}

func hostPort(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("address %s: %w", addr, err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		return "", 0, fmt.Errorf("address %s: %w", addr, err)
	}
	return host, port, nil
}
