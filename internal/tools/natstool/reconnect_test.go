package natstool_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestAnswerThatComesAfterTheConnectionIsBackCounts(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	proxy := harness.NewProxy(t, strings.TrimPrefix(k.server.URL(), "nats://"))
	back := make(chan struct{}, 1)
	worker, err := nats.Connect(proxy.URL(), nats.ReconnectWait(5*time.Millisecond), nats.ReconnectJitter(0, 0), nats.MaxReconnects(-1),
		nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	require.NoError(t, err)
	t.Cleanup(worker.Close)
	entered := make(chan *nats.Msg)
	k.serve("orders.place", func(m *nats.Msg) { entered <- m })
	tool := k.tool(&target.NATS{Subject: "orders.place"}, func(o *natstool.Options) { o.Conn = worker })
	type outcome struct {
		result tools.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := k.invoke(tool, k.call(nil))
		done <- outcome{result, err}
	}()
	m := <-entered
	proxy.Reset()
	<-back
	require.NoError(t, worker.Flush())
	respond(m, `"late"`)
	got := <-done
	require.NoError(t, got.err)
	require.Equal(t, `"late"`, string(got.result.Value))
}
