package agui_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

func BenchmarkEncode(b *testing.B) {
	for name, e := range map[string]agui.Event{
		"text":   &agui.TextMessageContent{MessageID: "msg_1", Delta: "Hello, world"},
		"args4k": &agui.ToolCallArgs{ToolCallID: "c", Delta: strings.Repeat(`{"a":"b"}`, 450)},
		"state":  &agui.StateSnapshot{Snapshot: json.RawMessage(`{"turns":{"tc_1":{"phase":"running","agent":"Planner","tool":"greet"}},"open":[]}`)},
		"delta":  &agui.StateDelta{Delta: agui.Patch{agui.Replace("/turns/tc_1/phase", "done")}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.MarshalJSON(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// discard is a response that costs nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header              { return d.header }
func (d discard) Write(b []byte) (int, error)      { return len(b), nil }
func (d discard) WriteHeader(int)                  {}
func (d discard) FlushError() error                { return nil }
func (d discard) SetWriteDeadline(time.Time) error { return nil }

func BenchmarkSendVerified(b *testing.B) {
	in := trace{}.input("1.0")
	s, err := agui.NewStream(discard{http.Header{}}, agui.StreamOptions{Peer: in.Peer(), Verifier: agui.NewVerifier(in)})
	require.NoError(b, err)
	require.NoError(b, s.Send(started(), &agui.TextMessageStart{MessageID: "m"}))
	e := &agui.TextMessageContent{MessageID: "m", Delta: "Hello, world"}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Send(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadInput(b *testing.B) {
	body, err := json.Marshal(fullInput())
	require.NoError(b, err)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := agui.ReadInput(bytes.NewReader(body), agui.InputLimits{}); err != nil {
			b.Fatal(err)
		}
	}
}
