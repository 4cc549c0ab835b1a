package toolbox

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop makes fake invokers and counts them.
type shop struct {
	made, closed, described atomic.Int32

	hold chan struct{} // calls wait for it, if there is one
	fail atomic.Bool   // Describe and Close fail
}

func (s *shop) make(*bindings.Binding) tools.Invoker {
	s.made.Add(1)
	return &fake{shop: s}
}

type fake struct {
	shop     *shop
	reported atomic.Bool
	over     atomic.Bool
}

func (f *fake) Invoke(ctx context.Context, _ *tools.Call) (tools.Result, error) {
	if f.over.Load() {
		return tools.Result{}, errors.New("called after its end")
	}
	if f.shop.hold != nil {
		select {
		case <-f.shop.hold:
		case <-ctx.Done():
		}
	}
	if f.over.Load() {
		return tools.Result{}, errors.New("ended under a call")
	}
	return tools.Result{}, nil
}

func (f *fake) Describe(context.Context) (tools.Description, error) {
	f.shop.described.Add(1)
	if f.shop.fail.Load() {
		return tools.Description{}, errors.New("no service answers")
	}
	f.reported.Store(true)
	return tools.Description{Effect: "none"}, nil
}

func (f *fake) Known() (tools.Description, bool) {
	return tools.Description{Effect: "none"}, f.reported.Load()
}

func (f *fake) Close(context.Context) error {
	f.over.Store(true)
	f.shop.closed.Add(1)
	if f.shop.fail.Load() {
		return errors.New("it does not end")
	}
	return nil
}

func newShop() (*shop, *registry) {
	s := &shop{}
	return s, newRegistry(s.make, slog.New(slog.DiscardHandler))
}

func endpoint(subject string) *bindings.Binding {
	return &bindings.Binding{Kind: bindings.KindNATS, Tool: subject, Target: &target.NATS{Subject: subject, TrustMetadata: true}}
}

func invoke(t *testing.T, one *remoteTool) {
	t.Helper()
	_, err := one.Invoke(t.Context(), &tools.Call{})
	require.NoError(t, err)
}

func TestEqualTargetsShareOneInvokerOverReloads(t *testing.T) {
	t.Parallel()
	s, r := newShop()
	first := endpoint("a")
	r.adopt([]*bindings.Binding{first, endpoint("a"), {Kind: bindings.KindGo}})
	found := r.find(first)
	invoke(t, found)
	again := endpoint("a")
	r.adopt([]*bindings.Binding{again})
	require.Same(t, found, r.find(again))
	require.Same(t, found, r.find(first), "a turn has the binding of the set before")
	invoke(t, found)
	require.EqualValues(t, 1, s.made.Load())
	require.NoError(t, r.close(t.Context()))
	require.EqualValues(t, 1, s.closed.Load())
	_, err := found.Invoke(t.Context(), &tools.Call{})
	require.ErrorIs(t, err, errClosed)
	require.True(t, tools.IsRetryable(err))
}

func TestInvokerThatNoSetNamesEndsOnceItsCallsHaveEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newShop()
		s.hold = make(chan struct{})
		b := endpoint("a")
		r.adopt([]*bindings.Binding{b})
		found := r.find(b)
		done := make(chan error, 1)
		go func() {
			_, err := found.Invoke(t.Context(), &tools.Call{})
			done <- err
		}()
		synctest.Wait()
		r.adopt(nil)
		synctest.Wait()
		require.Zero(t, s.closed.Load(), "a call is under way")
		close(s.hold)
		require.NoError(t, <-done)
		synctest.Wait()
		require.EqualValues(t, 1, s.closed.Load())

		// A turn that had found it calls it late.
		invoke(t, found)
		invoke(t, r.find(endpoint("a")))
		synctest.Wait()
		require.EqualValues(t, 3, s.made.Load())
		require.EqualValues(t, 3, s.closed.Load())
		require.Empty(t, r.known)
		require.Empty(t, r.open)
	})
}

func TestEndClosesWhatStillRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newShop()
		s.hold = make(chan struct{})
		s.fail.Store(true)
		for _, subject := range []string{"active", "transient"} {
			b := endpoint(subject)
			if subject == "active" {
				r.adopt([]*bindings.Binding{b})
			}
			go func() { _, _ = r.find(b).Invoke(t.Context(), &tools.Call{}) }()
		}
		synctest.Wait()
		require.ErrorContains(t, r.close(t.Context()), "it does not end")
		require.EqualValues(t, 2, s.closed.Load())
		close(s.hold)
		synctest.Wait()
		require.EqualValues(t, 2, s.closed.Load())
	})
}

func TestToolsThatAreTrustedAreAskedUntilTheyHaveReportedTheirEffect(t *testing.T) {
	t.Parallel()
	s, r := newShop()
	b, reported, careful := endpoint("a"), endpoint("declared"), &bindings.Binding{Kind: bindings.KindNATS, Target: &target.NATS{Subject: "c"}}
	reported.EffectDeclared = true
	r.adopt([]*bindings.Binding{b, reported, careful})
	s.fail.Store(true)
	r.discover(t.Context())
	_, known := r.find(b).Known()
	require.False(t, known)
	s.fail.Store(false)
	r.discover(t.Context())
	r.discover(t.Context())
	d, known := r.find(b).Known()
	require.True(t, known)
	require.Equal(t, "none", d.Effect)
	require.EqualValues(t, 2, s.described.Load())
	require.EqualValues(t, 1, s.made.Load())
	require.NoError(t, r.close(t.Context()))
}

func TestDifferentTargetsHaveSeparateInvokers(t *testing.T) {
	t.Parallel()
	output := []*bindings.Binding{
		{Target: &target.Agent{ID: "a", Completions: &target.Completions{URL: "https://x"}}},
		{Target: &target.Agent{ID: "b", Completions: &target.Completions{URL: "https://x"}}},
		{Target: &target.HTTP{URL: "https://x"}},
		{Target: &target.HTTP{URL: "https://x", Method: "PUT"}},
		{Target: &target.HTTP{URL: "https://x", Headers: map[string]target.Value{"A": {File: "/x"}}}},
		{Target: &target.MCP{Server: &target.MCPServer{Name: "x"}, Tool: "a"}},
		{Target: &target.MCP{Server: &target.MCPServer{Name: "x"}, Tool: "b"}},
	}
	keys := map[string]bool{}
	for _, b := range output {
		keys[keyOf(b)] = true
	}
	require.Len(t, keys, len(output))
}
