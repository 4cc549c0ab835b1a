package oneturntest_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

func ExampleCheck() {
	facts := &oneturntest.Facts{Accepted: []oneturntest.Accepted{{App: "app", Chat: "chat", Turn: "t1"}}}
	for _, v := range oneturntest.Check(facts, nil) {
		fmt.Println(v)
	}
	// Output: I1 app.chat.0-t1.0: accepted, but without a response (claimed: false, entered: 0)
}

// key is the turn of all cases.
var key = subjects.TurnKey("app", "chat", "", "t1")

// good is a run without faults: one turn, entered once, ended ok.
func good(t *testing.T) *oneturntest.Facts {
	t.Helper()
	f := &oneturntest.Facts{
		Accepted: []oneturntest.Accepted{{App: "app", Chat: "chat", Turn: "t1"}},
		Ledger:   []oneturntest.LedgerEntry{{Phase: "enter", App: "app", Chat: "chat", Turn: "t1", Epoch: 1, Token: 1}, {Phase: "exit", App: "app", Chat: "chat", Turn: "t1"}},
	}
	add(t, f, key.Public("tool_call"), &events.ToolCall{ToolCallID: "t1"})
	add(t, f, key.Public("tool_response"), &events.ToolResponse{ToolCallID: "t1", Status: "ok", Success: true})
	return f
}

// add stores a record and its copy.
func add(t *testing.T, f *oneturntest.Facts, name string, event any) {
	t.Helper()
	kind := events.KindToolCall
	if _, ok := event.(*events.ToolResponse); ok {
		kind = events.KindToolResponse
	}
	switch e := event.(type) { // the turn of the history, unless the test sets another
	case *events.ToolCall:
		identify(&e.AppID, &e.ChatID, &e.Turn)
	case *events.ToolResponse:
		identify(&e.AppID, &e.ChatID, &e.Turn)
	}
	data, err := events.Encode(kind, event, time.Unix(0, 0))
	require.NoError(t, err)
	r := idempotency.Record{Key: name, Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Effect: "unsafe"}, Data: data, Seq: uint64(len(f.Journal) + 1), Time: time.Unix(int64(len(f.Journal)+1), 0)}
	f.Journal = append(f.Journal, r)
	f.Copies = append(f.Copies, oneturntest.Copy{Key: name, Seq: r.Seq, Data: data})
}

func identify(app, chat, turn *string) {
	if *app == "" {
		*app, *chat, *turn = "app", "chat", "t1"
	}
}

func TestUndisturbedRunIsInOrder(t *testing.T) {
	t.Parallel()
	require.Empty(t, oneturntest.Check(good(t), map[string]bool{}))
}

func TestEmptyLedgerNamesTheWayOut(t *testing.T) {
	t.Parallel()
	f := good(t)
	f.Ledger = nil
	found := oneturntest.Check(f, map[string]bool{})
	require.Len(t, found, 1)
	require.Equal(t, f.Accepted[0].Key(), found[0].Turn)
	require.Contains(t, found[0].Text, "Facts.NoLedger")
	f.NoLedger = true
	require.Empty(t, oneturntest.Check(f, map[string]bool{}))
}

func TestTurnThatWasHitIsNamedByItsKey(t *testing.T) {
	t.Parallel()
	f := good(t)
	end(t, f, &events.ToolResponse{ToolCallID: "t1", Status: "error", Code: events.CodeInterrupted})
	require.NotEmpty(t, oneturntest.Check(f, map[string]bool{}))
	require.Empty(t, oneturntest.Check(f, map[string]bool{f.Accepted[0].Key(): true}))
}

// TestEveryInvariantIsSeenBroken: a checker that cannot find a fault proves nothing.
func TestEveryInvariantIsSeenBroken(t *testing.T) {
	t.Parallel()
	enter := oneturntest.LedgerEntry{Phase: "enter", App: "app", Chat: "chat", Turn: "t1"}
	for name, c := range map[string]struct {
		invariant string
		damage    func(t *testing.T, f *oneturntest.Facts)
	}{
		"no response":   {"I1", func(_ *testing.T, f *oneturntest.Facts) { f.Journal, f.Copies = f.Journal[:1], f.Copies[:1] }},
		"not published": {"I1", func(_ *testing.T, f *oneturntest.Facts) { f.Accepted = nil }},
		"failed without reason": {"I1", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			end(t, f, &events.ToolResponse{ToolCallID: "t1", Status: "error", Code: "timeout"})
		}},
		"entered twice":            {"I2", func(_ *testing.T, f *oneturntest.Facts) { f.Ledger = append(f.Ledger, enter) }},
		"entered with another key": {"I2", func(_ *testing.T, f *oneturntest.Facts) { f.Ledger[1].Key = "another" }},
		"entered with the key of another": {"I2", func(_ *testing.T, f *oneturntest.Facts) {
			for i := range f.Ledger {
				f.Ledger[i].Key = "its own"
			}
			f.Ledger = append(f.Ledger, oneturntest.LedgerEntry{Phase: "exit", App: "app", Chat: "chat", Turn: "t2", Key: "its own"})
		}},
		"ok without a run": {"I2", func(_ *testing.T, f *oneturntest.Facts) { f.Ledger = nil }},
		"rejected, but run": {"I2", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			begin(t, f, &events.ToolCall{ToolCallID: "t1", Rejected: true})
		}},
		"other bytes were seen": {"I3", func(_ *testing.T, f *oneturntest.Facts) { f.Copies[1].Data = []byte("{}") }},
		"stored twice": {"I3", func(_ *testing.T, f *oneturntest.Facts) {
			f.Copies = append(f.Copies, oneturntest.Copy{Key: f.Copies[1].Key, Seq: 9})
		}},
		"record cannot be read":    {"I3", func(_ *testing.T, f *oneturntest.Facts) { f.Journal[1].Err = json.Unmarshal([]byte("x"), &struct{}{}) }},
		"response before the call": {"I4", func(_ *testing.T, f *oneturntest.Facts) { f.Journal[0].Seq, f.Copies[0].Seq = 3, 3 }},
		"another call id":          {"I4", func(t *testing.T, f *oneturntest.Facts) { t.Helper(); begin(t, f, &events.ToolCall{ToolCallID: "t2"}) }},
		"messages left":            {"I5", func(_ *testing.T, f *oneturntest.Facts) { f.Left = 1 }},
		"epoch skipped": {"I6", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			add(t, f, key.Private("takeover", "3"), &events.ToolCall{})
		}},
		"a second response": {"I1", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			add(t, f, key.Public("tool_response", "n"), &events.ToolResponse{ToolCallID: "t1", Status: "ok", Success: true})
		}},
		"taken over by an older delivery": {"I6", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			takeover(t, f, 3, 2)
		}},
		"another fencing token": {"I6", func(_ *testing.T, f *oneturntest.Facts) { f.Ledger[0].Token = 2 }},
		"taken over without a fault": {"I7", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			takeover(t, f, 1, 2)
		}},
		"entered after its cancel": {"I2", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			add(t, f, key.Public("cancel"), &events.ToolCall{})
			takeover(t, f, 1, 2)
			enter := enter
			enter.Epoch = 2
			f.Ledger[0] = enter
		}},
		"interrupted without a fault": {"I7", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			end(t, f, &events.ToolResponse{ToolCallID: "t1", Status: "error", Code: events.CodeInterrupted})
		}},
		"another tenant's response": {"I8", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			end(t, f, &events.ToolResponse{ToolCallID: "t1", Status: "ok", Success: true, AppID: "evil", ChatID: "chat", Turn: "t1"})
		}},
		"another chat's call": {"I8", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			begin(t, f, &events.ToolCall{ToolCallID: "t1", AppID: "app", ChatID: "other", Turn: "t1"})
		}},
		"another run's response": {"I8", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			end(t, f, &events.ToolResponse{ToolCallID: "t1", Status: "ok", Success: true, AppID: "app", ChatID: "chat", RunID: "r", Turn: "t1"})
		}},
		"a call under the key of a response": {"I8", func(t *testing.T, f *oneturntest.Facts) {
			t.Helper()
			end(t, f, &events.ToolResponse{ToolCallID: "t1", Status: "ok", Success: true})
			f.Journal[1].Data = f.Journal[0].Data
		}},
		"ended late":                          {"I12", func(_ *testing.T, f *oneturntest.Facts) { f.Accepted[0].At, f.Within = time.Unix(0, 1), time.Second }},
		"ended long after the fault was over": {"I12", func(_ *testing.T, f *oneturntest.Facts) { f.Healed, f.Within = time.Unix(0, 1), time.Second }},
	} {
		f := good(t)
		c.damage(t, f)
		var found []string
		for _, v := range oneturntest.Check(f, map[string]bool{}) {
			found = append(found, v.Invariant)
		}
		require.Contains(t, found, c.invariant, name)
	}
}

// takeover has the second delivery of a message take the turn from the first.
func takeover(t *testing.T, f *oneturntest.Facts, first, second uint64) {
	t.Helper()
	f.Journal[0].Meta.Lease = idempotency.Lease{Stream: "IN", Seq: 7, Delivery: first}
	add(t, f, key.Private("takeover", "2"), &events.ToolCall{})
	f.Copies = f.Copies[:len(f.Copies)-1] // subscribers do not see private records
	last := &f.Journal[len(f.Journal)-1]
	last.Meta.Epoch, last.Meta.Lease = 2, idempotency.Lease{Stream: "IN", Seq: 7, Delivery: second}
}

// begin and end replace the call and the response.
func begin(t *testing.T, f *oneturntest.Facts, e *events.ToolCall) {
	t.Helper()
	replace(t, f, 0, e)
}

func end(t *testing.T, f *oneturntest.Facts, e *events.ToolResponse) {
	t.Helper()
	replace(t, f, 1, e)
}

func replace(t *testing.T, f *oneturntest.Facts, i int, event any) {
	t.Helper()
	var other oneturntest.Facts
	add(t, &other, f.Journal[i].Key, event)
	f.Journal[i].Data, f.Copies[i].Data = other.Journal[0].Data, other.Journal[0].Data
}

func TestLedgerKeepsWhatSeveralWritersAppendAndIgnoresATornLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	none, err := oneturntest.ReadLedger(path)
	require.NoError(t, err)
	require.Empty(t, none)
	for range 2 {
		l, err := oneturntest.OpenLedger(path)
		require.NoError(t, err)
		call := tool.CallInfo{App: "a", Chat: "c", Turn: "t", Epoch: 2, FencingToken: 7, IdempotencyKey: "k"}
		require.NoError(t, l.Enter(call))
		require.NoError(t, l.Exit(call))
		require.NoError(t, l.Close())
	}
	entries, err := oneturntest.ReadLedger(path)
	require.NoError(t, err)
	require.Len(t, entries, 4)
	require.Equal(t, oneturntest.PhaseExit, entries[1].Phase)
	require.Equal(t, uint64(7), entries[1].Token)
}
