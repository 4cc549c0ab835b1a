package hostile_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/oneturntest"
)

// pages reads all pages of a turn and returns the sequences of its records.
func (l *lab) pages(key string) (sequences []uint64) {
	l.Helper()
	q := api.TurnRequest{Chat: "c", Turn: key}
	for {
		body, err := json.Marshal(q)
		require.NoError(l, err)
		m, err := l.nc.Request("oneturn.api.app.turn", body, 20*time.Second)
		require.NoError(l, err)
		if m.Header.Get(micro.ErrorCodeHeader) == "429" {
			seconds, err := strconv.Atoi(m.Header.Get("Retry-After"))
			require.NoError(l, err)
			<-time.After(time.Duration(seconds) * time.Second)
			continue
		}
		require.Empty(l, m.Header.Get(micro.ErrorHeader))
		var page api.Page
		require.NoError(l, json.Unmarshal(m.Data, &page))
		for _, r := range page.Records {
			sequences = append(sequences, r.Sequence)
		}
		if page.Next == 0 {
			return sequences
		}
		q.From = page.Next
	}
}

// filled is a journal with n records of one turn that is named after its size.
func filled(t *testing.T, n int, body string) *lab {
	t.Helper()
	server := oneturntest.NewServer(t)
	server.Provision()
	l := newLabOn(t, server, oneturn.Config{Tools: []oneturn.Tool{echoTool()}})
	written := nats.Header{
		idempotency.HeaderOwner: {"o"}, idempotency.HeaderNonce: {"n"}, idempotency.HeaderEpoch: {"1"},
		idempotency.HeaderLease: {idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}.String()},
	}
	for i := range n {
		for _, subject := range []string{"e.app.c.0-t.0.show.", "p.app.c.0-t.0.step.", "e.app.c.0-other.0.show."} {
			_, err := l.js.PublishMsgAsync(&nats.Msg{Subject: "$KV.ONETURN_TURNS." + subject + strconv.Itoa(i+1), Header: written, Data: []byte(body)}, jetstream.WithStallWait(20*time.Second))
			require.NoError(t, err)
		}
	}
	<-l.js.PublishAsyncComplete()
	return l
}

const surface = `{"type":"chat.tool_call","data":{"kind":"tool_call","x":%q},"timestamp":"2026-11-29T12:13:09.669Z"}`

// TestPageOfATurnCostsNoMoreThanThePage shows H26.
func TestPageOfATurnCostsNoMoreThanThePage(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const records, readers = 300, 4
	l := filled(t, records, fmt.Sprintf(surface, strings.Repeat("y", 200_000)))
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	stop := make(chan struct{})
	var peak atomic.Uint64
	var watch, all sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapAlloc))
			}
		}
	})
	for range readers {
		all.Go(func() {
			m, err := l.nc.Request("oneturn.api.app.turn", []byte(`{"chat_id":"c","turn":"t"}`), 20*time.Second)
			if err != nil || m.Header.Get(micro.ErrorHeader) != "" {
				t.Errorf("no page: %v %v", err, m)
			}
		})
	}
	all.Wait()
	close(stop)
	watch.Wait()
	const most = 100 << 20
	require.Less(t, max(peak.Load(), before)-before, uint64(most))
	require.Len(t, l.pages("t"), records)
}

// TestTurnOfAnySizeIsReadPageByPage (H26) has records of another turn and private ones between.
func TestTurnOfAnySizeIsReadPageByPage(t *testing.T) {
	t.Parallel()
	for _, n := range []int{16, 17, 501, 10_050} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			l := filled(t, n, fmt.Sprintf(surface, "y"))
			want := make([]uint64, n)
			for i := range want {
				want[i] = uint64(3*i + 1)
			}
			require.Equal(t, want, l.pages("t"))
		})
	}
}
