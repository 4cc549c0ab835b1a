package gateway_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/subjects"
)

func TestUserWithoutMemoryDelaysNoOtherUserOfTheChat(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	g.await(g.turn("c", "t", "", "Pieces", "Pieces", map[string]any{"count": 1})) // without an owner: it is open to the tenant
	free := g.gateway.UseUpMemory("app", "bob")
	waiting := make(chan *stream, 1)
	go func() { waiting <- g.run(g.http.URL, "bob", "/agui/Shop/connect", input("b", nil)) }()
	late := <-waiting // its stream begins after two seconds; the chat is read later
	begun := time.Now()
	require.NotNil(t, object(g.run(g.http.URL, "ada", "/agui/Shop/connect", input("a", nil)).until(agui.TypeMessagesSnapshot)))
	require.Less(t, time.Since(begun), 8*time.Second, "she waited for his memory")
	free()
	late.until(agui.TypeMessagesSnapshot)
}

func TestRunThatAsksOtherGatewaysKeepsNoOtherFromTheChat(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	first := g.run(g.http.URL, "ada", "/agui/Shop", input("r0", nil, "order"))
	first.until(agui.TypeRunStarted)
	g.stored("order")
	first.cancel()
	_, later := g.replica(quick, func(o *gateway.Options) { o.Limits = gateway.Limits{Rate: -1, RunRate: -1} })
	g.lists(later.URL)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	asked := make(chan struct{}, 100)
	_, err = g.nc.Subscribe(space.GatewayStops(), func(m *nats.Msg) {
		var r struct {
			Open bool `json:"open"`
		}
		if json.Unmarshal(m.Data, &r) == nil && r.Open {
			asked <- struct{}{}
		}
	})
	require.NoError(t, err)
	require.NoError(t, g.nc.Flush())
	attempt := 0
	require.Eventually(t, func() bool { // a busy machine may be slower than the question once
		attempt++
		asks := make(chan *stream, 1)
		in := input("r1", nil, "order", "another"+strconv.Itoa(attempt))
		go func() { asks <- g.run(later.URL, "ada", "/agui/Shop", in) }()
		select {
		case <-asked:
		case s := <-asks:
			s.cancel()
			return false
		}
		shown := g.run(later.URL, "ada", "/agui/Shop/connect", input("show", nil))
		shown.until(agui.TypeMessagesSnapshot)
		meanwhile := len(asks) == 0
		shown.cancel()
		s := <-asks
		s.cancel()
		return meanwhile && s.status == http.StatusOK
	}, 20*time.Second, time.Millisecond)
}

func TestThrottleHoldsEventsBackAndEndsNoSocket(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	g.gateway.Throttle("app")
	g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}) // it gives the chat an owner, and the owner has to be read
	s.until("chat.tool_response")
}
