package handlers_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

// H22: see docs/faults.md. Beyond the budget, whatever the reason is, nothing that a tenant can send
// any number of keeps a place. What its sender can send again is refused, a new turn that a full store cannot
// claim becomes a dead letter, and an expiry, of which there is one for each question, keeps its place.
func TestMessagesThatCannotBeDeferredAreDecided(t *testing.T) {
	t.Parallel()
	noRoom := func(code jetstream.ErrorCode) error {
		return fmt.Errorf("deferred it: %w", &jetstream.APIError{ErrorCode: code})
	}
	causes := map[string]error{
		"beyond the bound": nil, "refused for ever": idempotency.ErrRefused, "account full": noRoom(10002), "server full": noRoom(10023),
		"storage full": noRoom(10047), "disk full": noRoom(10077),
	}
	for kind, m := range map[string]func(k *kit, a *asker, seq uint64) *inbound.Message{
		"turn": func(k *kit, _ *asker, seq uint64) *inbound.Message { return k.message(seq, 1) },
		"answer": func(k *kit, a *asker, seq uint64) *inbound.Message {
			return k.answers(seq, a.question("1"), yes()).Message
		},
		"early answer": func(k *kit, a *asker, seq uint64) *inbound.Message {
			return k.answers(seq, a.question("2"), yes()).Message
		},
		"expiry": func(k *kit, a *asker, seq uint64) *inbound.Message { return k.expiry(seq, a, "soon").Message },
	} {
		for cause, err := range causes {
			for _, full := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, full store %t", kind, cause, full), func(t *testing.T) {
					t.Parallel()
					k := newKit(t, toolFunc(nothing))
					owner := k.asker("asks", "")
					owner.ask("1")
					owner.ask("soon", func(e *events.ToolCall) { e.Answer.ExpiresAt = time.Now().Add(30 * time.Second) })
					h, deferred := k.bounded(func(c *handlers.Config) {
						if kind != "expiry" {
							k.without(c)
						}
						c.Full = func() (bool, time.Time) { return full, time.Time{} }
						c.DeferralQuota = func(context.Context, string, int) (bool, error) { return err != nil, nil }
					})
					deferred.err = err
					for i := range uint64(4) {
						d := h.Handle(t.Context(), m(k, owner, 2+i))
						if i < 2 || kind == "expiry" && err != nil {
							require.Equal(t, inbound.Nak, d.Do)
							require.Positive(t, d.Delay)
							require.LessOrEqual(t, d.Delay, time.Minute)
							continue
						}
						require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, d.Do)
					}
					require.Equal(t, idempotency.Open, owner.outcome("1"))
					k.ended(kind, full)
				})
			}
		}
	}
}

// ended requires the outcome of messages of a kind that were not deferred.
func (k *kit) ended(kind string, full bool) {
	k.t.Helper()
	switch letters := k.deadReasons(); {
	case kind == "turn" && full:
		require.Equal(k.t, []string{"undeliverable", "undeliverable"}, letters)
	case kind == "turn":
		require.Equal(k.t, events.CodeNoBinding, k.response().Code)
		fallthrough
	default:
		require.Empty(k.t, letters)
	}
}

// deadReasons returns the reasons of the dead letters.
func (k *kit) deadReasons() (reasons []string) {
	k.t.Helper()
	dead, err := k.js.Stream(k.t.Context(), k.space.DeadStream())
	require.NoError(k.t, err)
	for seq := range dead.CachedInfo().State.LastSeq {
		m, err := dead.GetMsg(k.t.Context(), seq+1)
		require.NoError(k.t, err)
		reasons = append(reasons, m.Header.Get(deadletter.HeaderReason))
	}
	return reasons
}

// H22: see docs/faults.md. Of every kind, wherever the subject is wrong. It takes no place, is not
// deferred, and the sender of an answer gets its result.
func TestMessageOnASubjectThatNoIDsGiveIsRefusedImmediately(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	for name, ids := range map[string]string{
		"workflow": "app.W!F.chat", "chat": "app.WF.c!hat", "chat too long": "app.WF." + long, "workflow too long": "app." + long + ".chat",
		"escape of nothing": "app.W=F.chat", "lower case escape": "app.=2d.chat", "plain escape": "app.=57F.chat", "tenant": "a!pp.WF.chat",
		"too many": "app.WF.chat.more", "too few": "app.WF",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			owner := k.asker("asks", "")
			owner.ask("1")
			h, deferred := k.bounded(k.without)
			answered := 0
			for _, kind := range []string{
				events.KindStructuredOutputReady, events.KindToolCallResponse, events.KindDeferredResponse, events.KindUserInputSubmit,
				events.KindCancel, events.KindResume, events.KindExpire,
			} {
				resume, err := events.EncodeResume(&events.Resume{TurnID: owner.id, Workflow: "WF"}, time.Now())
				require.NoError(t, err)
				cancel, err := events.EncodeCancel(&events.Cancel{TurnID: owner.id, Workflow: "WF"}, time.Now())
				require.NoError(t, err)
				for i, body := range [][]byte{
					k.message(2, 1).Data, k.answers(2, owner.question("1"), "swordfish").Data, k.answers(2, owner.question("2"), "swordfish").Data,
					k.answers(2, "x@00000000/1", "swordfish", func(r *events.ToolCallResponse) { r.Workflow = "" }).Data,
					resume, cancel, k.expiry(2, owner, "1").Data, []byte(`{"swordfish": 1`),
				} {
					m := k.mail(uint64(100+i), kind, body)
					m.Subject = "oneturn.in.default." + kind + "." + ids
					results, err := k.js.Conn().SubscribeSync("oneturn.verdict.app.x")
					require.NoError(t, err)
					m.Header = nats.Header{subjects.HeaderReply: {"oneturn.verdict.app.x"}}
					require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, h.Handle(t.Context(), m.Message).Do, "%s %s", kind, body)
					require.NoError(t, k.js.Conn().Flush())
					if n, _, _ := results.Pending(); n > 0 {
						answered++
					}
					require.NoError(t, results.Unsubscribe())
				}
			}
			require.Empty(t, deferred.all)
			require.Equal(t, idempotency.Open, owner.outcome("1"))
			if name != "tenant" {
				require.GreaterOrEqual(t, answered, 7*3)
			}
			k.noLetterHolds("swordfish")
		})
	}
}

// noLetterHolds requires that what may be an answer is in no dead letter of a kind of answers.
func (k *kit) noLetterHolds(text string) {
	k.t.Helper()
	dead, err := k.js.Stream(k.t.Context(), k.space.DeadStream())
	require.NoError(k.t, err)
	for seq := range dead.CachedInfo().State.LastSeq {
		m, err := dead.GetMsg(k.t.Context(), seq+1)
		require.NoError(k.t, err)
		if strings.HasSuffix(m.Subject, "."+events.KindToolCallResponse) {
			require.NotContains(k.t, string(m.Data), text)
		}
	}
}

// H22: see docs/faults.md. Messages are requeued with a delay in few functions, which count the place, or
// handle what workers alone send.
func TestPlacesAreKeptWithinTheBudgetOnly(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var callers, makers []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "NakAfter" && !now(n.Args[0]) {
						callers = append(callers, f.Name.Name)
					}
				case *ast.Ident:
					if n.Name == "Nak" {
						makers = append(makers, f.Name.Name)
					}
				}
				return true
			})
		}
	}
	slices.Sort(callers)
	slices.Sort(makers)
	require.Equal(t, []string{"deferMessage", "nakWithinBudget", "requeueAlways"}, slices.Compact(callers))
	require.Empty(t, makers, "messages are redelivered with inbound.NakAfter")
}

// now reports whether a delay is none: then the message takes no place.
func now(delay ast.Expr) bool {
	literal, ok := delay.(*ast.BasicLit)
	return ok && literal.Value == "0"
}

// TestLargeMessagesThatWaitLeaveTheInboundStreamSooner: it is bounded for all tenants, and what keeps a place stays in it.
func TestLargeMessagesThatWaitLeaveTheInboundStreamSooner(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	owner := k.asker("asks", "")
	h, deferred := k.bounded(func(c *handlers.Config) { c.MaxAckPending = 312 * 64 })
	const size, n = 900 << 10, 30
	kept := 0
	for i := range uint64(n) {
		if h.Handle(t.Context(), k.answers(2+i, owner.question("1"), strings.Repeat("x", size)).Message).Do == inbound.Nak {
			kept += size
		}
	}
	require.Positive(t, kept)
	require.LessOrEqual(t, kept, 10<<20)
	require.Len(t, deferred.all, n-kept/size)
	require.Equal(t, inbound.Nak, h.Handle(t.Context(), k.answers(99, owner.question("1"), "small").Message).Do)
}
