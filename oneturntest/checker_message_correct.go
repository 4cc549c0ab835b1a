package oneturntest

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// The corrections of an output that cannot be used: which call of the model comes when, what is made of its reply, and how they are counted.

// correctionFacts has what is stored of one correction of a message.
type correctionFacts struct {
	call, reply *idempotency.Record // of the model
	read        events.Correction   // what was read in the reply
	failed      bool                // the model has not replied
	unknown     bool                // the reply is outside of the record, or cannot be read

	claim, response *idempotency.Record // of its turn, if that was claimed for the message
	called          events.ToolCall
	ended           events.ToolResponse
}

// corrections returns the corrections of a message, by number; 0 is its own turn.
func (m *messageFacts) corrections() map[int]*correctionFacts {
	all := map[int]*correctionFacts{}
	of := func(n int) *correctionFacts {
		if all[n] == nil {
			all[n] = &correctionFacts{}
		}
		return all[n]
	}
	for token, f := range m.calls {
		n, err := strconv.Atoi(strings.TrimPrefix(token, "c"))
		if err != nil { // of the decider
			continue
		}
		k := of(n)
		if k.call, k.reply = f.call, f.response; k.reply != nil {
			k.readReply()
		}
	}
	for _, t := range m.turns {
		claim, response := t.own().call, t.own().response
		if claim == nil {
			continue
		}
		var called events.ToolCall
		_ = parse(claim.Data, &called) // one that cannot be read is reported by the rules of turns
		n, corrects := 0, false
		if number, found := strings.CutPrefix(called.Turn, m.event.Turn+"~"); found {
			var err error
			n, err = strconv.Atoi(number)
			corrects = err == nil
		}
		if !corrects && called.Turn != m.event.Turn {
			continue
		}
		k := of(n)
		if k.claim, k.response, k.called = claim, response, called; response != nil {
			_ = parse(response.Data, &k.ended) // likewise
		}
	}
	return all
}

func (k *correctionFacts) readReply() {
	var r events.ToolResponse
	if parse(k.reply.Data, &r) != nil {
		k.unknown = true
		return
	}
	if k.failed = r.Code != ""; k.failed {
		return
	}
	if _, outside := events.BlobOf(r.Payload); outside {
		k.unknown = true
		return
	}
	var err error
	k.read, err = events.ReadCorrection(r.Payload)
	k.unknown = err != nil
}

// ends reports whether no other correction follows this one, whatever its turn ends with.
func (k *correctionFacts) ends() bool { return k.failed || k.read.Final }

// checkCorrections: the model is asked as often as the text allows, each time after the output before has failed. Its reply is stored before
// the turn that it makes is claimed, and that turn has its object. The calls are counted.
func (c *checker) checkCorrections(m *messageFacts) {
	all := m.corrections()
	for _, n := range slices.Sorted(maps.Keys(all)) {
		k, before := all[n], all[n-1]
		if before == nil {
			before = &correctionFacts{}
		}
		switch {
		case n > m.event.Corrections:
			c.failf(invariantMessage, m.name, "it is corrected %d times, and its text allows %d", n, m.event.Corrections)
			return
		case n > 0:
			c.checkAsked(m, n, k, before)
		}
		if k.claim != nil {
			c.checkCorrected(m, n, k, before, all)
		}
	}
	c.checkOutputUsage(m, all)
}

// checkAsked: the model is asked after the output before is known to be of no use, and its reply is stored.
func (c *checker) checkAsked(m *messageFacts, n int, k, before *correctionFacts) {
	switch {
	case k.call == nil:
	case m.event.Turn != "" && (before.response == nil || !before.ended.Correcting || before.response.Seq > k.call.Seq):
		c.failf(invariantMessage, m.name, "a model is asked for correction %d, and its turn before is not to be corrected", n)
	case m.event.Turn == "" && n == 1 && m.event.Unread == nil:
		c.failf(invariantMessage, m.name, "a model is asked for a correction, and its output can be used")
	case n > 1 && (before.reply == nil || before.reply.Seq > k.call.Seq):
		c.failf(invariantMessage, m.name, "a model is asked for correction %d, and the reply before is not stored", n)
	}
}

// checkCorrected checks the turn of a message, or of a correction, that was claimed for it.
func (c *checker) checkCorrected(m *messageFacts, n int, k, before *correctionFacts, all map[int]*correctionFacts) {
	fail := func(format string, args ...any) {
		c.failf(invariantMessage, m.name, "turn %q: "+format, append([]any{k.called.Turn}, args...)...)
	}
	if n > 0 {
		switch {
		case before.response == nil || !before.ended.Correcting || before.response.Seq > k.claim.Seq:
			fail("it is claimed, and the turn before is not to be corrected")
		case k.called.CorrectionOf != before.called.Turn:
			fail("it corrects %q, and the turn before is %q", k.called.CorrectionOf, before.called.Turn)
		}
		k.checkUse(m, n, all, fail)
	}
	if k.response == nil {
		return
	}
	code := events.Code(k.claim.Meta.Outcome)
	due := code == events.CodeValidationFailed && k.ended.Code == code && n < m.event.Corrections && !k.ends()
	if k.ended.Correcting != due && !k.unknown {
		fail("correcting is %t, it ended with %q (claimed with %q), and %d of %d corrections are made", k.ended.Correcting, k.ended.Code, code, n, m.event.Corrections)
	}
	next := subjects.TurnKey(m.event.AppID, m.event.ChatID, m.event.RunID, m.event.CorrectedTurn(n+1))
	if t := c.turns[next.String()]; k.ended.Correcting && (t == nil || t.own().call == nil) {
		fail("it is to be corrected, and no turn follows")
	}
}

// checkUse: the turn of a correction has the object of its reply, and the calls of the model so far are counted.
func (k *correctionFacts) checkUse(m *messageFacts, n int, all map[int]*correctionFacts, fail func(string, ...any)) {
	code, data := events.Code(k.claim.Meta.Outcome), k.claim.Meta.Fingerprint
	// A delivery that has found no model to ask claims it without a reply, and another one may have asked meanwhile.
	unasked := data == m.fingerprintOf(nil) && !k.failed && !k.unknown && k.data() != nil
	used := k.reply != nil && k.reply.Seq < k.claim.Seq && !unasked
	switch {
	case !used && (code == "" || code == events.CodeValidationFailed):
		fail("it is claimed without the reply to correction %d, or before that is stored", n)
		return
	case used && !k.unknown && data != m.fingerprintOf(k.data()):
		fail("it is claimed with other data than the reply to correction %d", n)
	case !used:
		n--
	}
	want, known := usageOf(all, n)
	for _, has := range []*events.Usage{k.called.Usage, k.ended.Usage} {
		if known && (has == k.called.Usage || k.response != nil) && sumOf(has) != want {
			fail("its usage is %+v, and %d calls of the model have %+v", sumOf(has), n, want)
		}
	}
}

// data is the data of the turn that the reply makes.
func (k *correctionFacts) data() any {
	switch {
	case k.failed:
		return nil
	case k.read.Unread != nil:
		return k.read.Content
	}
	return k.read.StructuredOutput
}

// fingerprintOf is the fingerprint of a turn of the message with some data.
func (m *messageFacts) fingerprintOf(data any) string {
	sum := events.Fingerprint(&events.StructuredOutputReady{Workflow: m.event.WorkflowName, Agent: m.event.Agent, Model: m.event.Model, Data: data})
	return hex.EncodeToString(sum[:])
}

// usageOf sums up what the replies up to a number have cost.
func usageOf(all map[int]*correctionFacts, n int) (sum events.Usage, known bool) {
	for i := 1; i <= n; i++ {
		k := all[i]
		if k == nil || k.reply == nil || k.unknown {
			return sum, false
		}
		sum = (&sum).Plus(events.Usage{Calls: 1, PromptTokens: k.read.PromptTokens, CompletionTokens: k.read.CompletionTokens})
	}
	return sum, true
}

func sumOf(u *events.Usage) events.Usage { return u.Plus(events.Usage{}) }

// checkOutputUsage: the structured output of an agent without a tool counts the calls of the model. Another delivery may have asked again
// since then, unless the output could be used.
func (c *checker) checkOutputUsage(m *messageFacts, all map[int]*correctionFacts) {
	var e events.StructuredOutput
	if m.output == nil || parse(m.output.Data, &e) != nil {
		return
	}
	n := sumOf(e.Usage).Calls
	if want, known := usageOf(all, n); known && sumOf(e.Usage) != want {
		c.failf(invariantMessage, m.name, "the usage of its structured output is %+v, and %d calls of the model have %+v", sumOf(e.Usage), n, want)
	}
	last := all[n]
	switch {
	case n > 0 && (last == nil || last.reply == nil || last.reply.Seq > m.output.Seq):
		c.failf(invariantMessage, m.name, "its structured output counts %d calls of the model, and the replies are not stored before", n)
	case e.Success && all[n+1] != nil && all[n+1].reply != nil:
		c.failf(invariantMessage, m.name, "its structured output is corrected, though %d calls of the model have made one that can be used", n)
	}
}
