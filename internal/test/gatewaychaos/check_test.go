package gatewaychaos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/internal/test/gatewaychaos"
)

// The checks have to find what is wrong with a log: each test falsifies a log that is right.

// stored are the public records of two chats, a question among them; the note is hidden.
func stored() map[uint64]string {
	return map[uint64]string{
		1:  `{"type":"chat.user_message","data":{"kind":"user_message","chat_id":"c","message_id":"m1","content":"hello"}}`,
		2:  `{"type":"chat.tool_call","data":{"kind":"tool_call","chat_id":"c","turn":"t","tool_call_id":"t","interaction_type":"auto_tool","payload":{"n":1}}}`,
		4:  `{"type":"chat.text","data":{"kind":"text","chat_id":"other","message_id":"x","content":"elsewhere"}}`,
		5:  `{"type":"chat.tool_call","data":{"kind":"tool_call","chat_id":"c","turn":"t","tool_call_id":"t/1","interaction_type":"ui_tool","awaiting_response":true,"answer":{"subject":"s","schema":{}}}}`,
		6:  `{"type":"chat.text","data":{"kind":"text","chat_id":"c","message_id":"note","content":"hidden","is_visual":false}}`,
		8:  `{"type":"chat.tool_call_ack","data":{"kind":"tool_call_ack","chat_id":"c","tool_call_id":"t/1","status":"accepted"}}`,
		9:  `{"type":"chat.tool_response","data":{"kind":"tool_response","chat_id":"c","turn":"t","tool_call_id":"t","success":true,"payload":{"b":2,"a":1}}}`,
		10: `{"type":"chat.text","data":{"kind":"text","chat_id":"c","message_id":"bye","content":"good bye"}}`,
	}
}

func journal(t *testing.T) *gatewaychaos.Journal {
	t.Helper()
	j := gatewaychaos.NewJournal()
	records := stored()
	for n := range uint64(11) {
		if text, ok := records[n]; ok {
			_, err := j.Add(n, []byte(text))
			require.NoError(t, err)
		}
	}
	return j
}

// frame is a record as a gateway sends it.
func frame(t *testing.T, sequence uint64) gatewaychaos.Frame {
	t.Helper()
	text := strings.Replace(stored()[sequence], `"subject":"s",`, "", 1)
	sum, err := gatewaychaos.Sum(fmt.Appendf(nil, `%s,"sequence":%d,"replay":true}`, strings.TrimSuffix(text, "}"), sequence))
	require.NoError(t, err)
	return gatewaychaos.Frame{Sequence: sequence, Sum: sum}
}

func frames(t *testing.T, sequences ...uint64) (list []gatewaychaos.Frame) {
	t.Helper()
	for _, n := range sequences {
		list = append(list, frame(t, n))
	}
	return list
}

func TestSocketLogWithEachRecordOnceIsRight(t *testing.T) {
	t.Parallel()
	for _, l := range []gatewaychaos.SocketLog{
		{Frames: frames(t, 1, 2, 5, 8, 9, 10), Through: 10},
		{Frames: frames(t, 5, 8, 9, 10), After: 2, Through: 10},
		{Frames: frames(t, 1, 2)}, // it was closed
		{After: 10, Through: 10},
	} {
		var v gatewaychaos.Verdict
		l.Chat = "c"
		l.Check(journal(t), &v)
		require.Empty(t, v.Violations())
	}
}

func TestFalsifiedSocketLogIsFound(t *testing.T) {
	t.Parallel()
	changed := frames(t, 1, 2, 5, 8, 9, 10)
	changed[3].Sum++
	for want, l := range map[string]gatewaychaos.SocketLog{
		"missed record 5, tool_call":                            {Frames: frames(t, 1, 2, 8, 9, 10), Through: 10},
		"missed record 1, user_message":                         {Frames: frames(t, 2)},
		"missed record 10, text, at its end":                    {Frames: frames(t, 1, 2, 5, 8, 9), Through: 10},
		"got record 5 again":                                    {Frames: frames(t, 1, 2, 5, 5, 8, 9, 10)},
		"got record 2 again, or late":                           {Frames: frames(t, 1, 5, 2, 8)},
		"got record 4 of chat":                                  {Frames: frames(t, 1, 2, 4, 5)},
		"got record 6, which is hidden":                         {Frames: frames(t, 1, 2, 5, 6, 8)},
		"got record 2, which is hidden or not after its cursor": {Frames: frames(t, 2, 5), After: 2},
		"got record 8 with another content":                     {Frames: changed},
		"got record 7 of chat":                                  {Frames: append(frames(t, 1, 2, 5), gatewaychaos.Frame{Sequence: 7})},
	} {
		var v gatewaychaos.Verdict
		l.Chat = "c"
		l.Check(journal(t), &v)
		require.Len(t, v.Violations(), 1, want)
		require.Contains(t, v.Violations()[0], "G1 ")
		require.Contains(t, v.Violations()[0], want)
	}
}

func user(id string) gatewaychaos.Item { return gatewaychaos.Item{Kind: "user", ID: id} }
func call(id string) gatewaychaos.Item { return gatewaychaos.Item{Kind: "call", ID: id} }
func text(id string) gatewaychaos.Item { return gatewaychaos.Item{Kind: "text", ID: id} }
func result(of string) gatewaychaos.Item {
	return gatewaychaos.Item{Kind: "result", ID: "res_" + of, Call: of}
}

// shown is a stream that begins within the chat.
func shown() gatewaychaos.RunLog {
	return gatewaychaos.RunLog{
		Chat: "c", Cursor: 5, Snapshot: []gatewaychaos.Item{user("m1"), call("t"), call("t/1")}, Through: 10,
		Bursts: []gatewaychaos.Burst{
			{Sequence: 8, Items: []gatewaychaos.Item{result("t/1")}},
			{Sequence: 9, Items: []gatewaychaos.Item{result("t")}},
			{Sequence: 10, Items: []gatewaychaos.Item{text("msg_bye")}},
		},
	}
}

func TestRunLogWithEachMessageOnceIsRight(t *testing.T) {
	t.Parallel()
	whole := gatewaychaos.RunLog{
		Chat: "c", Cursor: 10, Snapshot: []gatewaychaos.Item{user("m1"), call("t"), result("t"), call("t/1"), result("t/1"), text("msg_bye")}, Through: 10,
	}
	pending := shown()
	pending.Snapshot, pending.Own = append(pending.Snapshot, user("new")), []string{"new"}
	cut := shown()
	cut.Bursts, cut.Through = cut.Bursts[:1], 0
	fresh := gatewaychaos.RunLog{Chat: "c", Own: []string{"m1"}, Bursts: []gatewaychaos.Burst{{Sequence: 2, Items: []gatewaychaos.Item{call("t")}}}}
	known := shown()
	known.Snapshot, known.Own, known.Bursts = append(known.Snapshot, result("t/1")), []string{"res_t/1"}, known.Bursts[1:]
	for _, l := range []gatewaychaos.RunLog{shown(), whole, pending, cut, fresh, known} {
		var v gatewaychaos.Verdict
		l.Check(journal(t), &v)
		require.Empty(t, v.Violations())
	}
}

func TestFalsifiedRunLogIsFound(t *testing.T) {
	t.Parallel()
	for want, falsify := range map[string]func(l *gatewaychaos.RunLog){
		"the stream has text msg_bye in place of result": func(l *gatewaychaos.RunLog) { l.Bursts = l.Bursts[2:] },
		"the stream has result res_t in place":           func(l *gatewaychaos.RunLog) { l.Bursts = l.Bursts[1:] },
		"showed record 9 again, or late":                 func(l *gatewaychaos.RunLog) { l.Bursts = append(l.Bursts, l.Bursts[1]) },
		"showed record 8 again, or late":                 func(l *gatewaychaos.RunLog) { l.Bursts[0], l.Bursts[1] = l.Bursts[1], l.Bursts[0] },
		"showed record 4 of chat": func(l *gatewaychaos.RunLog) {
			l.Bursts[0] = gatewaychaos.Burst{Sequence: 4, Items: []gatewaychaos.Item{text("msg_x")}}
		},
		"the snapshot lacks call t/1":      func(l *gatewaychaos.RunLog) { l.Snapshot = l.Snapshot[:2] },
		"the snapshot has call t in place": func(l *gatewaychaos.RunLog) { l.Snapshot = l.Snapshot[1:] },
		"user m1, which is too much":       func(l *gatewaychaos.RunLog) { l.Snapshot = append(l.Snapshot, user("m1")) },
		"the snapshot lacks result": func(l *gatewaychaos.RunLog) {
			l.Cursor = 8
			l.Bursts = l.Bursts[1:]
			l.Snapshot = slices.Clone(l.Snapshot)
		},
		"did not show record 10, text":  func(l *gatewaychaos.RunLog) { l.Bursts = l.Bursts[:2] },
		"has result res_t with another": func(l *gatewaychaos.RunLog) { l.Bursts[1].Items[0].Text = `{"a":2}` },
		"burst has text msg_note":       func(l *gatewaychaos.RunLog) { l.Bursts[0].Items = append(l.Bursts[0].Items, text("msg_note")) },
		"a rule of the protocol":        func(l *gatewaychaos.RunLog) { l.Broken = []string{"a rule of the protocol"} },
	} {
		var v gatewaychaos.Verdict
		l := shown()
		falsify(&l)
		l.Check(journal(t), &v)
		require.Len(t, v.Violations(), 1, want)
		require.Contains(t, v.Violations()[0], "G2 ")
		require.Contains(t, v.Violations()[0], want)
	}
}

// sse is a stream as a gateway writes it.
func sse(frames ...string) string {
	var b strings.Builder
	for _, f := range frames {
		id, data, _ := strings.Cut(f, " ")
		if id != "-" {
			fmt.Fprintf(&b, "id: %s\n", id)
		}
		fmt.Fprintf(&b, "data: %s\n\n", data)
	}
	return b.String()
}

func TestReaderNotesWhatAStreamShows(t *testing.T) {
	t.Parallel()
	stream := sse(
		`- {"type":"RUN_STARTED","threadId":"c","runId":"r","protocolVersion":"1.0"}`,
		`- {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m1","role":"user","content":"hello"},{"id":"t","role":"assistant","toolCalls":[{"id":"t","type":"function","function":{"name":"work","arguments":"{}"}}]}]}`,
		`2 {"type":"STATE_SNAPSHOT","snapshot":{}}`,
		`- {"type":"TOOL_CALL_START","toolCallId":"t/1","toolCallName":"approve"}`,
		`- {"type":"TOOL_CALL_ARGS","toolCallId":"t/1","delta":"{}"}`,
		`5 {"type":"TOOL_CALL_END","toolCallId":"t/1"}`,
		`8 {"type":"TOOL_CALL_RESULT","messageId":"res_t/1","toolCallId":"t/1","content":"{}"}`,
		`9 {"type":"TOOL_CALL_RESULT","messageId":"res_t","toolCallId":"t","content":"{\"a\":1, \"b\":2}"}`,
	)
	finished := sse(`- {"type":"RUN_FINISHED","threadId":"c","runId":"r","outcome":{"type":"success"}}`)
	read := func(stream string) (*gatewaychaos.RunLog, gatewaychaos.End) {
		log := &gatewaychaos.RunLog{Chat: "c"}
		end, err := (&gatewaychaos.RunReader{Log: log, Input: &agui.RunAgentInput{ThreadID: "c", RunID: "r", ProtocolVersion: "1.0"}}).Read(strings.NewReader(stream))
		require.NoError(t, err)
		return log, end
	}
	log, end := read(stream + finished)
	var v gatewaychaos.Verdict
	log.Check(journal(t), &v)
	require.Empty(t, v.Violations())
	require.Equal(t, agui.TypeRunFinished, end.Type)
	require.Equal(t, agui.OutcomeSuccess, end.Outcome.Type)
	require.Len(t, end.Messages, 2)
	require.Equal(t, uint64(2), log.Cursor)

	log, _ = read(stream)
	require.Contains(t, fmt.Sprint(log.Broken), "ended without a last event")
	log, _ = read(stream + sse(`9 {"type":"TOOL_CALL_RESULT","messageId":"res_t","toolCallId":"t","content":"{}"}`) + finished)
	require.Contains(t, fmt.Sprint(log.Broken), "has a result")
	log, _ = read(stream + sse(`- {"type":"TOOL_CALL_ARGS","toolCallId":"none","delta":"{}"}`) + finished)
	require.Contains(t, fmt.Sprint(log.Broken), "is not open")
}

func TestMemoryThatGrowsIsFound(t *testing.T) {
	t.Parallel()
	begun := time.Unix(0, 0)
	memory := func(from, each uint64) *gatewaychaos.Memory {
		var m gatewaychaos.Memory
		for n := range 100 {
			m.Add(begun.Add(time.Duration(n)*time.Second), from<<20+uint64(n)*each<<20)
		}
		return &m
	}
	for _, c := range []struct {
		memory *gatewaychaos.Memory
		flat   bool
	}{{memory(100, 0), true}, {memory(100, 2), false}, {memory(20, 1), false}, {&gatewaychaos.Memory{}, false}} {
		var v gatewaychaos.Verdict
		c.memory.Check("gateway", begun.Add(10*time.Second), &v)
		require.Equal(t, c.flat, len(v.Violations()) == 0, "%v", v.Violations())
	}
}
