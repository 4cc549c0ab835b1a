package apiserver

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/subjects"
)

// slowAPI serves the verb "slow". The requests of all tenants but "quick" are answered when
// the test releases them.
type slowAPI struct {
	*testing.T

	nc      *nats.Conn
	server  *Server
	space   subjects.Space
	started chan string   // tenants whose requests are being read
	release chan struct{} // closed: answer all
	answers chan *nats.Msg
}

func newSlowAPI(t *testing.T) *slowAPI {
	t.Helper()
	srv, err := embedded.Start(t.Context(), embedded.Options{Listen: "127.0.0.1:0", Memory: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Stop()) })
	s := &slowAPI{T: t, started: make(chan string, 2*allRequests), release: make(chan struct{}), answers: make(chan *nats.Msg, 2*allRequests)}
	s.nc, err = srv.Conn()
	require.NoError(t, err)
	t.Cleanup(s.nc.Close)
	s.space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	a, err := Serve(s.nc, answering(s.space, nil))
	require.NoError(t, err)
	s.server = a
	t.Cleanup(func() { require.NoError(t, a.Stop()) })
	read := func(ctx context.Context, app string, _ []byte) (any, error) {
		s.started <- app
		if app != "quick" {
			select {
			case <-s.release:
			case <-ctx.Done():
			}
		}
		return &api.Page{Records: []api.Record{}}, nil
	}
	require.NoError(t, a.service.AddEndpoint("slow", a.serve(newGate(), read), micro.WithEndpointSubject(s.space.APIForAll("slow"))))
	_, err = s.nc.ChanSubscribe("answers", s.answers)
	require.NoError(t, err)
	return s
}

// ask sends n requests of a tenant.
func (s *slowAPI) ask(app string, n int) {
	s.Helper()
	for range n {
		require.NoError(s, s.nc.PublishRequest(s.space.API(app, "slow"), "answers", nil))
	}
	require.NoError(s, s.nc.Flush())
}

// answered waits for n answers and counts the replies with each code.
func (s *slowAPI) answered(n int) map[string]int {
	s.Helper()
	codes := map[string]int{}
	for range n {
		select {
		case m := <-s.answers:
			codes[m.Header.Get(micro.ErrorCodeHeader)]++
		case <-time.After(20 * time.Second):
			require.Fail(s, "no answer", "%v of %d", codes, n)
		}
	}
	return codes
}

func TestTenantWhoseReadsAreSlowHoldsUpItselfOnly(t *testing.T) {
	t.Parallel()
	s := newSlowAPI(t)
	s.ask("slow", tenantRequests+10)
	require.Equal(t, map[string]int{codeBusy: 10}, s.answered(10), "over the bound, and rejected immediately")
	s.ask("quick", 50)
	require.Equal(t, map[string]int{"": 50}, s.answered(50))
	running := 0
	for len(s.started) > 0 {
		if <-s.started == "slow" {
			running++
		}
	}
	require.Equal(t, tenantReads, running)
	close(s.release)
	require.Equal(t, map[string]int{"": tenantRequests}, s.answered(tenantRequests))
}

func TestRequestsOfAllTenantsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSlowAPI(t)
	tenants := []string{"a", "b", "c", "d", "e", "f"}
	for _, app := range tenants {
		s.ask(app, tenantRequests)
	}
	over := len(tenants)*tenantRequests - allRequests
	require.Equal(t, map[string]int{codeBusy: over}, s.answered(over))
	close(s.release)
	require.Equal(t, map[string]int{"": allRequests}, s.answered(allRequests))
}

func TestGateForgetsTenantsThatAskNothing(t *testing.T) {
	t.Parallel()
	g := newGate()
	p, ok := g.enter("app")
	require.True(t, ok)
	require.True(t, p.wait(t.Context()))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range tenantReads { // one of them finds no room
		q, ok := g.enter("app")
		require.True(t, ok)
		q.wait(gone)
		q.leave()
	}
	p.leave()
	require.Empty(t, g.tenants)
	require.Zero(t, g.inside+len(g.reads))
}

func TestSlowTenantsLeaveReadsToOthers(t *testing.T) {
	t.Parallel()
	s := newSlowAPI(t)
	for _, app := range []string{"a", "b", "c", "d"} {
		s.ask(app, 2*tenantReads)
	}
	s.ask("quick", 50)
	require.Equal(t, map[string]int{"": 50}, s.answered(50))
	close(s.release)
	require.Equal(t, map[string]int{"": 4 * 2 * tenantReads}, s.answered(4*2*tenantReads))
}

// A request that waits for something else than a read does not keep other tenants from reading, but counts
// for its own.
func TestRequestsThatWaitLeaveTheReadsToOthers(t *testing.T) {
	t.Parallel()
	s := newSlowAPI(t)
	slow := func(_ context.Context, app string, _ []byte) (any, error) {
		return asyncAnswer(func(ctx context.Context) (any, error) {
			s.started <- app
			select {
			case <-s.release:
			case <-ctx.Done():
			}
			return &api.Page{Records: []api.Record{}}, nil
		}), nil
	}
	require.NoError(t, s.server.service.AddEndpoint("waiting", s.server.serve(newGate(), slow), micro.WithEndpointSubject(s.space.APIForAll("waiting"))))
	const tenants = 2 * allReads
	for n := range tenants {
		for range tenantReads + 1 {
			require.NoError(t, s.nc.PublishRequest(s.space.API(strconv.Itoa(n), "waiting"), "answers", nil))
		}
	}
	began := map[string]int{}
	for range tenants * tenantReads {
		began[<-s.started]++
	}
	require.Len(t, began, tenants)
	require.Empty(t, s.started)
	close(s.release)
	require.Equal(t, map[string]int{"": tenants * (tenantReads + 1)}, s.answered(tenants*(tenantReads+1)))
}
