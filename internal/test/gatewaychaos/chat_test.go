//go:build chaos

package gatewaychaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/test/gatewaychaos"
)

// messagesOfAChat is how many messages a user writes before another chat begins.
const messagesOfAChat = 8

// userChat is one chat: tabs with WebSockets, and a user with a client of AG-UI who writes, answers and stops.
type userChat struct {
	stage *stage
	id    string
	app   string
	token string
	rng   *rand.Rand
	tabs  []*tab

	closing   atomic.Bool   // nothing new happens in the chat: tabs keep their logs
	through   atomic.Uint64 // sequence that every tab has got
	displayed []json.RawMessage
	runNumber int
	runs      []*gatewaychaos.RunLog

	mu       sync.Mutex
	stored   []string // messages that a gateway has confirmed
	answered []string // questions likewise
}

func (c *userChat) confirmed(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored = append(c.stored, message)
}

func (c *userChat) confirmedAnswer(question string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = append(c.answered, question)
}

// run keeps the chat until the user has written all messages, or all faults were injected.
func (c *userChat) run(ctx context.Context) {
	open, closeTabs := context.WithCancel(ctx)
	var reading sync.WaitGroup
	for _, s := range c.tabs {
		reading.Go(func() { s.run(open) })
	}
	defer reading.Wait()
	defer closeTabs()
	for n := range messagesOfAChat {
		if c.stage.healed.Load() || !c.write(ctx, n) {
			break
		}
		_ = pause.For(ctx, c.stage.think(c.rng))
	}
	c.settle(ctx)
}

// kinds are what users ask for: more often what is cheap.
var kinds = []string{"work", "work", "ask", "ask", "paint", "plan", "talk", "sleep", "gallery"}

// write writes a message, and does what follows until the turn of it has ended.
func (c *userChat) write(ctx context.Context, n int) bool {
	id := fmt.Sprintf("%s-m%d", c.id, n)
	text := kinds[c.rng.IntN(len(kinds))] + " " + id
	within, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	var stopping sync.WaitGroup
	defer stopping.Wait()
	if strings.HasPrefix(text, "sleep") {
		rng := rand.New(rand.NewPCG(c.rng.Uint64(), 1))
		stopping.Go(func() { c.stop(within, rng, id, text) })
	}
	bySocket := c.rng.IntN(3) == 0
	var open []agui.Interrupt
	ended := func() bool { return c.stage.journal.Ended(c.id, reaction(id, text)) }
	for !ended() && within.Err() == nil {
		var in *inputOf
		endpoint := "/connect"
		stored := c.stage.journal.Stored(c.id, id) > 0
		switch {
		case !stored && bySocket:
			c.tabs[c.rng.IntN(len(c.tabs))].send(within, map[string]any{"type": "user.input.submit", "text": text, "message_id": id})
			in = c.input()
		case !stored:
			endpoint, in = "", c.input(userMessage(id, text))
		case len(open) > 0:
			endpoint, in = c.answer(within, open)
		default:
			in = c.input()
		}
		end, _ := c.stream(within, c.stage.anyGateway(c.rng), endpoint, in)
		open = nil
		if end.Outcome != nil && end.Outcome.Type == agui.OutcomeInterrupt {
			open = end.Outcome.Interrupts
		}
		_ = pause.For(within, time.Duration(c.rng.IntN(300))*time.Millisecond)
	}
	if !ended() && ctx.Err() == nil {
		c.stage.verdict.Brokenf("G6", "chat %s: what follows from message %q has not ended:%s", c.id, text, c.stage.journal.History(c.id))
		return false
	}
	c.stage.count("turns")
	return ctx.Err() == nil
}

// answer answers the open questions by one of the endpoints. It returns what the client of AG-UI does next.
func (c *userChat) answer(ctx context.Context, open []agui.Interrupt) (endpoint string, in *inputOf) {
	value := map[string]bool{"approved": c.rng.IntN(2) == 0}
	in = c.input()
	switch c.rng.IntN(4) {
	case 0:
		for _, q := range open {
			code := c.request(ctx, c.rng, "answer", "/api/tool-call/respond", map[string]any{"chat_id": c.id, "tool_call_id": q.ToolCallID, "response": value})
			if code == "accepted" || code == "replayed" {
				c.confirmedAnswer(q.ToolCallID)
			}
		}
		return "/connect", in
	case 1:
		for _, q := range open {
			c.tabs[c.rng.IntN(len(c.tabs))].send(ctx, map[string]any{"type": "tool_call_response", "tool_call_id": q.ToolCallID, "response": value})
		}
		return "/connect", in
	}
	status := agui.ResumeResolved
	if c.rng.IntN(8) == 0 {
		status = agui.ResumeCancelled
	}
	data := json.RawMessage(fmt.Sprintf(`{"approved":%v}`, value["approved"]))
	for _, q := range open {
		in.Resume = append(in.Resume, agui.ResumeEntry{InterruptID: q.ID, Status: status, Payload: data})
	}
	return "", in
}

// stop stops the turn of a message by one of the endpoints, until it has ended.
func (c *userChat) stop(ctx context.Context, rng *rand.Rand, id, text string) {
	for ctx.Err() == nil && !c.stage.journal.Ended(c.id, reaction(id, text)) {
		_ = pause.For(ctx, time.Second+time.Duration(rng.IntN(1500))*time.Millisecond)
		if c.stage.journal.Stored(c.id, id) == 0 {
			continue
		}
		switch rng.IntN(3) {
		case 0:
			c.request(ctx, rng, "stop", "/agui/"+workflow+"/stop/"+c.id, map[string]any{})
		case 1:
			c.request(ctx, rng, "cancel", "/api/chats/"+c.app+"/"+c.id+"/cancel", map[string]any{"turn": reaction(id, text), "reason": "stopped"})
		default:
			c.tabs[rng.IntN(len(c.tabs))].send(ctx, map[string]any{"type": "chat.cancel", "turn": reaction(id, text), "reason": "stopped"})
		}
	}
}

// settle waits until every tab has all events of the chat, and reads the chat once more from each gateway.
func (c *userChat) settle(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	c.closing.Store(true)
	last := c.last()
	for _, g := range c.stage.gateways {
		for within.Err() == nil {
			_, log := c.stream(within, g, "/connect", c.input())
			if log != nil && log.Cursor >= last {
				log.Through = last
				break
			}
			_ = pause.For(within, 200*time.Millisecond)
		}
	}
	for quiet := 0; quiet < 2 && within.Err() == nil; {
		quiet++
		for _, s := range c.tabs {
			if s.last.Load() < last {
				quiet = 0
			}
		}
		_ = pause.For(within, 300*time.Millisecond)
	}
	switch {
	case within.Err() == nil:
		c.through.Store(last)
	case ctx.Err() == nil:
		c.stage.verdict.Brokenf("G6", "chat %s: a client does not get what the journal has up to %d: tabs are at %v", c.id, last, c.at())
	}
}

// at returns the last sequences of the tabs.
func (c *userChat) at() []uint64 {
	at := make([]uint64, 0, len(c.tabs))
	for _, s := range c.tabs {
		at = append(at, s.last.Load())
	}
	return at
}

// last returns the sequence of the last record of the chat that people see.
func (c *userChat) last() (last uint64) {
	for _, r := range c.stage.journal.Records(c.id) {
		if r.Visible {
			last = max(last, r.Sequence)
		}
	}
	return last
}

// check compares what the clients got with the journal.
func (c *userChat) check(j *gatewaychaos.Journal, v *gatewaychaos.Verdict) {
	for _, s := range c.tabs {
		for _, l := range s.logs {
			l.Check(j, v)
		}
	}
	for _, l := range c.runs {
		l.Check(j, v)
	}
	for _, id := range c.stored {
		if j.Stored(c.id, id) == 0 {
			v.Brokenf("G4", "chat %s: message %s was confirmed, and is not in the journal", c.id, id)
		}
	}
	for _, id := range c.answered {
		if !j.Decided(c.id, id) {
			v.Brokenf("G4", "chat %s: the answer to %s was confirmed, and is not in the journal", c.id, id)
		}
	}
}
