package oneturntest_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// asked is a history under construction: records in the order in which they are stored.
type asked struct {
	*oneturntest.Facts

	t *testing.T
}

// record stores one; event is nil for private records.
func (h *asked) record(name, nonce string, epoch int, verdict string, data []byte) *idempotency.Record {
	n := len(h.Journal) + 1
	r := idempotency.Record{
		Key: name, Seq: uint64(n), Time: time.Unix(int64(n), 0), Data: data,
		Meta: idempotency.Meta{Owner: "w", Nonce: nonce, Epoch: epoch, Outcome: verdict, Effect: "replay"},
	}
	h.Journal = append(h.Journal, r)
	if data != nil && name[0] == 'e' {
		h.Copies = append(h.Copies, oneturntest.Copy{Key: name, Seq: r.Seq, Data: data})
	}
	return &h.Journal[n-1]
}

func (h *asked) event(kind string, event any) []byte {
	h.t.Helper()
	data, err := events.Encode(kind, event, time.Unix(0, 0))
	require.NoError(h.t, err)
	return data
}

func (h *asked) claim() {
	r := h.record(key.Public("tool_call"), "A", 1, "", h.event(events.KindToolCall, &events.ToolCall{ToolCallID: "t1", AppID: "app", ChatID: "chat", Turn: "t1"}))
	r.Meta.Lease = idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}
}

func (h *asked) call(id string) *events.ToolCall {
	return &events.ToolCall{
		ToolCallID: events.QuestionID("t1", id), AppID: "app", ChatID: "chat", Turn: "t1", AwaitingResponse: true,
		Answer: &events.AnswerTo{Subject: "s", Schema: map[string]any{"type": "string"}},
	}
}

func (h *asked) ask(id string) {
	h.record(key.Public("ask", id), "ask-"+id, 1, "", h.event(events.KindToolCall, h.call(id)))
}

func (h *asked) answer(id, value string) {
	h.record(key.Private("answer", id), "answer-"+id, 1, string(idempotency.Answered), []byte(value))
}

func (h *asked) ack(id string) {
	h.record(key.Public("ack", id), "ack-"+id, 1, string(idempotency.Answered), h.event(events.KindToolCallAck, h.call(id).Ack(events.AckAccepted, "")))
}

func (h *asked) taken(id, nonce string, epoch int) {
	h.record(key.Private("taken", id), nonce, epoch, "", nil)
}

// park ends an epoch.
func (h *asked) park(epoch int, nonce, how string, open ...string) {
	state, err := json.Marshal(map[string]any{"open": open})
	require.NoError(h.t, err)
	h.record(key.Private("park", strconv.Itoa(epoch)), nonce, epoch, how, state)
}

// takeover begins one, under a delivery of a message.
func (h *asked) takeover(epoch int, nonce string, seq, delivery uint64) {
	r := h.record(key.Private("takeover", strconv.Itoa(epoch)), nonce, epoch, "", nil)
	r.Meta.Lease = idempotency.Lease{Stream: "IN", Seq: seq, Delivery: delivery}
}

func (h *asked) respond() {
	h.record(key.Public("tool_response"), "A", 1, "", h.event(events.KindToolResponse, &events.ToolResponse{ToolCallID: "t1", Status: "ok", Success: true, AppID: "app", ChatID: "chat", Turn: "t1"}))
}

// note adds a line to the ledger, of the run that began with the newest claim or takeover unless
// another epoch is named.
func (h *asked) note(phase, name string, epoch int) {
	token := uint64(1)
	for i := range h.Journal {
		if h.Journal[i].Key == key.Private("takeover", strconv.Itoa(epoch)) {
			token = h.Journal[i].Seq
		}
	}
	h.Ledger = append(h.Ledger, oneturntest.LedgerEntry{
		Phase: phase, Name: name, App: "app", Chat: "chat", Turn: "t1", Epoch: epoch, Token: token,
		UnixNS: time.Unix(int64(len(h.Journal)), 1).UnixNano(), // after what is stored so far
	})
}

func history(t *testing.T) *asked {
	t.Helper()
	return &asked{&oneturntest.Facts{Accepted: []oneturntest.Accepted{{App: "app", Chat: "chat", Turn: "t1"}}}, t}
}

// waited is a turn that asked, was answered in memory and ended, by one run.
func waited(t *testing.T) *asked {
	t.Helper()
	h := history(t)
	h.claim()
	h.note("enter", "", 1)
	h.note("ask", "1", 1)
	h.ask("1")
	h.answer("1", `"yes"`)
	h.ack("1")
	h.park(1, "B", "woken")
	h.taken("1", "A", 1)
	h.note("answered", "1", 1)
	h.note("exit", "", 1)
	h.respond()
	return h
}

// resumed is one that was parked at its second question, and continued in another run, with a step.
func resumed(t *testing.T) *asked {
	t.Helper()
	h := history(t)
	h.claim()
	h.note("enter", "", 1)
	h.note("step", "charge", 1)
	h.record(key.Private("step", "charge"), "step", 1, "", []byte(`1`))
	h.note("ask", "1", 1)
	h.ask("1")
	h.answer("1", `"yes"`)
	h.ack("1")
	h.park(1, "B", "woken")
	h.taken("1", "A", 1)
	h.note("answered", "1", 1)
	h.note("ask", "2", 1)
	h.ask("2")
	h.takeover(2, "A", 1, 1) // it was woken, and is parked again
	h.park(2, "A", "parked", "2")
	h.answer("2", `"no"`)
	h.ack("2")
	h.takeover(3, "B", 7, 1)
	h.note("enter", "", 3)
	h.note("ask", "1", 3)
	h.note("answered", "1", 3) // code before a question that is open
	h.note("ask", "2", 3)
	h.taken("2", "B", 3)
	h.note("answered", "2", 3)
	h.note("exit", "", 3)
	h.respond()
	return h
}

func sent(value any, code events.AnswerCode) oneturntest.SentAnswer {
	return oneturntest.SentAnswer{
		Question: api.Question{App: "app", Chat: "chat", Turn: "t1", ToolCallID: "t1/1"},
		Act:      oneturntest.Act{Value: value}, Result: events.NewAnswerResult(code, "t1/1", ""),
	}
}

func TestTurnsThatAskAndAreParkedAreInOrder(t *testing.T) {
	t.Parallel()
	require.Empty(t, oneturntest.Check(waited(t).Facts, map[string]bool{}))
	require.Empty(t, oneturntest.Check(resumed(t).Facts, map[string]bool{}))
}

func TestVariableSetByAnAnswerIsReportedUnderItsQuestion(t *testing.T) {
	t.Parallel()
	update := func(question, ask, variable string) []oneturntest.Violation {
		h := waited(t)
		h.record(key.Public("context_update", subjects.Token(ask+"/"+variable)), "update", 1, "",
			h.event(events.KindContextUpdate, &events.ContextUpdate{ID: question, AppID: "app", ChatID: "chat", Variable: "choice", Value: "a"}))
		return oneturntest.Check(h.Facts, map[string]bool{})
	}
	require.Empty(t, update("t1/1", "1", "choice"))
	for name, found := range map[string][]oneturntest.Violation{
		"another turn":     update("t2/1", "1", "choice"),
		"another question": update("t1/2", "1", "choice"),
		"never asked":      update("t1/2", "2", "choice"),
		"another variable": update("t1/1", "1", "other"),
	} {
		require.Len(t, found, 1, name)
		require.Equal(t, "I8", found[0].Invariant, name)
	}
}

func TestTurnMayBeAtRestWithAnOpenQuestion(t *testing.T) {
	t.Parallel()
	h := history(t)
	h.claim()
	h.note("enter", "", 1)
	h.ask("1")
	h.park(1, "A", "parked", "1")
	require.NotEmpty(t, oneturntest.Check(h.Facts, map[string]bool{}))
	h.Accepted[0].MayWait = true
	require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{}))
}

func TestQuestionOfAnOwnerThatHadLostItsTurnMayComeAfterTheResponse(t *testing.T) {
	t.Parallel()
	h := waited(t)
	h.note("ask", "2", 1)
	h.ask("2")
	require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{}))
}

func TestAckMayComeAfterTheResponse(t *testing.T) {
	t.Parallel()
	h := waited(t)
	h.Journal = slices.DeleteFunc(h.Journal, func(r idempotency.Record) bool { return r.Key == key.Public("ack", "1") })
	h.Copies = slices.DeleteFunc(h.Copies, func(c oneturntest.Copy) bool { return c.Key == key.Public("ack", "1") })
	last := &h.Journal[len(h.Journal)-1]
	last.Seq, h.Copies[len(h.Copies)-1].Seq = 90, 90
	h.ack("1")
	h.Journal[len(h.Journal)-1].Seq, h.Copies[len(h.Copies)-1].Seq = 91, 91
	require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{}))
}

// TestEveryRuleOfQuestionsIsSeenBroken: each line breaks one of them.
func TestEveryRuleOfQuestionsIsSeenBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want   string // the beginning of a violation, after its turn
		good   func(t *testing.T) *asked
		damage func(h *asked)
	}{
		"two answers": {"I13: stored twice", waited, func(h *asked) { h.answer("1", `"yes"`) }},
		"an answer to nothing": {"I13: question 9 has records", waited, func(h *asked) {
			h.answer("9", `"yes"`)
		}},
		"answered before it was asked":  {"I13: question 1 was decided before", waited, func(h *asked) { h.find("ask", "1").Seq = 99 }},
		"an answer that does not match": {"I13: the answer to question 1 does not match", waited, func(h *asked) { h.find("answer", "1").Data = []byte(`7`) }},
		"is not closed": {"I13: question 1 is answered and was not closed", waited, func(h *asked) {
			h.Journal = slices.DeleteFunc(h.Journal, func(r idempotency.Record) bool { return r.Key == key.Public("ack", "1") })
		}},
		"closed as something else":  {"I13: the close event of question 1", waited, func(h *asked) { h.find("ack", "1").Meta.Outcome = "expired" }},
		"closed as another outcome": {"I13: question 1 is expired and closed as", waited, func(h *asked) { h.find("answer", "1").Meta.Outcome = "expired" }},
		"closed, not decided": {"I13: question 1 is taken or closed", waited, func(h *asked) {
			h.Journal = slices.DeleteFunc(h.Journal, func(r idempotency.Record) bool { return r.Key == key.Private("answer", "1") })
		}},
		"passed on too early":        {"I13: the answer to question 1 was passed on", waited, func(h *asked) { h.find("taken", "1").Seq = 2 }},
		"passed on, not stored":      {"I13: epoch 1 got the answer", waited, func(h *asked) { h.note("answered", "2", 1) }},
		"cancelled without a cancel": {"I13: question 1 was cancelled", waited, func(h *asked) { h.find("answer", "1").Meta.Outcome = "cancelled" }},
		"displayed twice": {"I13: question 2 is displayed, but its tool", waited, func(h *asked) {
			h.ask("2")
		}},
		"id of another": {"I13: question 1 has id", waited, func(h *asked) { h.find("ask", "1").Data = h.event(events.KindToolCall, h.call("2")) }},
		"reported as accepted, not stored": {"I13: an answer to question 1 was reported", waited, func(h *asked) {
			h.Answers = []oneturntest.SentAnswer{sent("no", events.AnswerAccepted)}
		}},
		"reported as refused, but stored": {"I13: an answer to question 1 was reported", waited, func(h *asked) {
			h.Answers = []oneturntest.SentAnswer{sent("yes", events.AnswerConflict)}
		}},
		"lost wake-up": {"I1: parked, though question 2 is answered", resumed, func(h *asked) {
			at := slices.IndexFunc(h.Journal, func(r idempotency.Record) bool { return r.Key == key.Private("takeover", "3") })
			h.Journal, h.Accepted[0].MayWait = h.Journal[:at], true
		}},
		"cancelled and parked": {"I1: parked, though it is cancelled", resumed, func(h *asked) {
			at := slices.IndexFunc(h.Journal, func(r idempotency.Record) bool { return r.Key == key.Private("answer", "2") })
			h.Journal, h.Accepted[0].MayWait = h.Journal[:at], true
			h.record(key.Public("cancel"), "c", 1, "", nil)
		}},
		"no end of the epoch before": {"I6: taken over as epoch 3", resumed, func(h *asked) {
			h.Journal = slices.DeleteFunc(h.Journal, func(r idempotency.Record) bool { return r.Key == key.Private("park", "2") })
		}},
		"parked by its own message": {"I6: epoch 2 was parked, and taken over by its own", resumed, func(h *asked) {
			h.find("takeover", "3").Meta.Lease = idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 2}
		}},
		"another run of the same delivery": {"I6: delivery 1 of its message took epoch 2", resumed, func(h *asked) { h.find("takeover", "2").Meta.Nonce = "C" }},
		"ended twice":                      {"I6: a second end of epoch 1", resumed, func(h *asked) { h.park(1, "C", "sealed") }},
		"unsafe and parked":                {"I6: epoch 2 is parked, though its tool is unsafe", resumed, func(h *asked) { h.Journal[0].Meta.Effect = "unsafe" }},
		"unsafe and entered again":         {"I2: effect unsafe, entered 2 times", resumed, func(h *asked) { h.Journal[0].Meta.Effect = "unsafe" }},
		"entered again without a question": {"I2: effect replay, entered again by epoch 3", resumed, func(h *asked) {
			h.find("taken", "2").Seq = h.find("takeover", "3").Seq - 1
		}},
		"entered twice by one run": {"I2: effect replay, entered 2 times by epoch 3", resumed, func(h *asked) { h.note("enter", "", 3) }},
		"code after an answer twice": {"I2: the code after the answer to 2 ran in epoch 1", resumed, func(h *asked) {
			h.note("answered", "2", 1)
		}},
		"two ends":                {"I2: effect replay, and 2 of its runs", resumed, func(h *asked) { h.note("exit", "", 1) }},
		"a step once more":        {"I2: step charge was entered by epoch 3", resumed, func(h *asked) { h.note("step", "charge", 3) }},
		"entered after its end":   {"I2: entered by epoch 3, which began after the response", resumed, func(h *asked) { h.find("tool_response", "").Seq = 3 }},
		"taken over without need": {"I7: taken over as epoch 2 without a fault", resumed, func(h *asked) { h.find("takeover", "2").Meta.Lease.Delivery = 2 }},
		"the ack of another chat": {"I8: record", waited, func(h *asked) {
			e := h.call("1")
			e.ChatID = "other"
			h.find("ack", "1").Data = h.event(events.KindToolCallAck, e.Ack(events.AckAccepted, ""))
		}},
		"ended late": {"I12: ended", waited, func(h *asked) {
			h.Accepted[0].At, h.Within = time.Unix(0, 1), 3*time.Second
		}},
	} {
		h := c.good(t)
		c.damage(h)
		var found []string
		for _, v := range oneturntest.Check(h.Facts, map[string]bool{}) {
			found = append(found, v.Invariant+": "+v.Text)
		}
		require.True(t, slices.ContainsFunc(found, func(text string) bool { return len(text) >= len(c.want) && text[:len(c.want)] == c.want }),
			"%s: want %s, found %v", name, c.want, found)
	}
}

// find returns a record by its kind and id.
func (h *asked) find(kind, id string) *idempotency.Record {
	h.t.Helper()
	names := []string{key.Public(kind), key.Private(kind)}
	if id != "" {
		names = []string{key.Public(kind, id), key.Private(kind, id)}
	}
	at := slices.IndexFunc(h.Journal, func(r idempotency.Record) bool { return slices.Contains(names, r.Key) })
	require.GreaterOrEqual(h.t, at, 0, "%s %s", kind, id)
	return &h.Journal[at]
}

func TestTimeUntilAQuestionIsAnsweredIsNotTheTurns(t *testing.T) {
	t.Parallel()
	h := waited(t)
	h.Accepted[0].At, h.Within = time.Unix(0, 1), 5*time.Second
	require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{}))
}
