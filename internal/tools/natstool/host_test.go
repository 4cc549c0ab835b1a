package natstool_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// at does an operation of the host of a request, within the patience of the test.
func (k *kit) at(m *nats.Msg, kind, body string) (string, error) {
	ctx, cancel := context.WithTimeout(k.Context(), patience)
	defer cancel()
	data, err := hostOperation(ctx, k.services, m.Reply, kind, body)
	return string(data), err
}

func TestServiceUsesAllOperationsOfTheHost(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var replies []string
	k.serve("asks", func(m *nats.Msg) {
		replies = nil
		for _, do := range [][2]string{
			{"ask", `{"tool":"Color","name":"color","payload":{"label":"Which?"},"schema":{"type":"string"},"timeout":60}`},
			{"show", `{"tool":"Chart","name":"chart","payload":{"rows":3}}`},
			{"dismiss", `{"id":"turn/s:chart"}`},
			{"step", `{"name":"charge"}`},
			{"step", `{"name":"charge","value":{"paid":true}}`},
			{"progress", `{"percent":50,"message":"half"}`},
		} {
			if do[0] == "progress" {
				p := nats.NewMsg(m.Reply)
				p.Header.Set("Oneturn-Kind", do[0])
				p.Data = []byte(do[1])
				_ = k.services.PublishMsg(p)
				continue
			}
			reply, err := k.at(m, do[0], do[1])
			replies = append(replies, fmt.Sprint(reply, err))
		}
		respond(m, `"done"`)
	})
	host := &memhost.Host{Reenterable: true}
	host.Answer("color", "blue")
	tool := k.tool(&target.NATS{Subject: "asks"})
	for range 2 {
		host.NewRun()
		call := k.call(nil)
		call.Host = host
		result, err := k.invoke(tool, call)
		require.NoError(t, err)
		require.Equal(t, `"done"`, string(result.Value))
	}
	require.Equal(t, []string{
		`{"id":"turn/color","done":false,"value":"blue"}<nil>`, `{"id":"turn/s:chart","done":false}<nil>`, `{"done":false}<nil>`,
		`{"done":true,"value":{"paid":true}}<nil>`, `{"done":true,"value":{"paid":true}}<nil>`,
	}, replies, "in the second run the step is done")
	require.JSONEq(t, `{"label":"Which?"}`, string(host.Asked()[0].Question.Payload))
	require.Equal(t, time.Minute, host.Asked()[0].Question.Timeout)
	require.Len(t, host.Reported(), 2)
	require.True(t, host.Shown()[0].Dismissed)
}

func TestQuestionsWithoutNamesAreNumberedAsTheyCome(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("asks", func(m *nats.Msg) {
		inbox := k.services.NewInbox()
		sub, err := k.services.SubscribeSync(inbox)
		if err != nil {
			return
		}
		for _, tool := range []string{"A", "B", "C"} { // all at the same time, in this order
			ask := nats.NewMsg(m.Reply)
			ask.Reply = inbox
			ask.Header.Set("Oneturn-Kind", "ask")
			ask.Data = fmt.Appendf(nil, `{"tool":%q}`, tool)
			_ = k.services.PublishMsg(ask)
		}
		for range 3 {
			_, _ = sub.NextMsg(patience)
		}
		_ = sub.Unsubscribe()
		respond(m, `null`)
	})
	host := &memhost.Host{}
	for i, answer := range []string{"a", "b", "c"} {
		host.Answer(strconv.Itoa(i+1), answer)
	}
	host.NewRun()
	call := k.call(nil)
	call.Host = host
	_, err := k.invoke(k.tool(&target.NATS{Subject: "asks"}), call)
	require.NoError(t, err)
	got := map[string]string{}
	for _, asked := range host.Asked() {
		got[asked.Question.Tool] = string(asked.Answer)
	}
	require.Equal(t, map[string]string{"A": `"a"`, "B": `"b"`, "C": `"c"`}, got)
}

func TestServiceGetsTheReasonWhyTheCallEnded(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	refusal, asked := make(chan events.Code, 1), make(chan struct{})
	k.serve("long", func(m *nats.Msg) {
		for range 20 { // a service that asks again and again takes no more room
			_ = k.services.PublishMsg(&nats.Msg{Subject: m.Reply, Reply: "_INBOX.nobody", Header: nats.Header{"Oneturn-Kind": {"end"}}})
		}
		answers, err := k.services.SubscribeSync(k.services.NewInbox())
		require.NoError(t, err)
		end := nats.NewMsg(m.Reply)
		end.Reply = answers.Subject
		end.Header.Set(target.HeaderKind, "end")
		require.NoError(t, k.services.PublishMsg(end)) // the newest request is the one that is answered
		go func() {
			answer, err := answers.NextMsg(patience)
			if err == nil {
				refusal <- events.Code(answer.Header.Get("Oneturn-Error-Code"))
			}
		}()
		_, _ = k.at(m, "step", `{"name":"x"}`) // comes after them on the same connection
		asked <- struct{}{}
	})
	tool := k.tool(&target.NATS{Subject: "long"})
	for code, cause := range map[events.Code]error{
		"parked": tools.ErrParked, events.CodeTimeout: events.ErrTimeout, events.CodeCancelled: errors.New("the turn was cancelled"),
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := tool.Invoke(ctx, k.call(nil))
			done <- err
		}()
		<-asked
		require.Empty(t, refusal, "an end that has not come is not reported")
		cancel(cause)
		err := <-done
		require.Error(t, err)
		require.False(t, tools.IsRetryable(err))
		require.Equal(t, errors.Is(cause, tools.ErrParked), errors.Is(err, tools.ErrParked))
		require.Equal(t, code, <-refusal)
	}
}

func TestParkedQuestionEndsTheCall(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ended := make(chan error, 1)
	k.serve("asks", func(m *nats.Msg) {
		_, err := k.at(m, "ask", `{"name":"color"}`)
		ended <- err
		respond(m, "", "Oneturn-Error-Code", "parked")
	})
	host := &memhost.Host{}
	host.NewRun()
	call := k.call(nil)
	call.Host = host
	_, err := k.invoke(k.tool(&target.NATS{Subject: "asks"}), call)
	require.ErrorIs(t, err, tools.ErrParked)
	require.False(t, tools.IsRetryable(err))
	require.Equal(t, events.Code("parked"), events.CodeOf(<-ended))
}

func TestRefusalsOfTheHostReachTheService(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("asks", func(m *nats.Msg) {
		_, err := k.at(m, "ask", `{"name":"color"}`)
		respond(m, "", "Oneturn-Error-Code", string(events.CodeOf(err)), "Nats-Service-Error", "too late")
	})
	host := &memhost.Host{}
	host.Expire("color")
	host.NewRun()
	call := k.call(nil)
	call.Host = host
	_, err := k.invoke(k.tool(&target.NATS{Subject: "asks"}), call)
	require.ErrorIs(t, err, events.ErrExpired, "it may repeat the code that it got")
	require.Contains(t, err.Error(), "too late")
}

// broken is a host that cannot be reached.
type broken struct {
	tools.Host

	err error
}

func (b broken) Ask(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{}, b.err
}

func (b broken) Show(context.Context, tools.Surface) (string, error) { return "", b.err }

func TestHostThatCannotBeReachedEndsTheCall(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("asks", func(m *nats.Msg) {
		kind := "ask"
		if m.Header.Get("Oneturn-User") != "" {
			kind = m.Header.Get("Oneturn-User")
		}
		_, _ = k.at(m, kind, `{"name":"color"}`)
		respond(m, `"as if it were answered"`)
	})
	tool := k.tool(&target.NATS{Subject: "asks"})
	for _, end := range []error{errors.New("the journal is away"), &events.Error{Code: events.CodeStateCorrupt, Msg: "a record"}} {
		call := k.call(nil)
		call.Host = broken{err: end}
		_, err := k.invoke(tool, call)
		require.ErrorIs(t, err, end)
	}
	call := k.call(nil)
	call.Host, call.UserID = broken{err: errors.New("the journal is away")}, "show"
	_, err := k.invoke(tool, call)
	require.NoError(t, err, "what only changes the screen ends nothing")
}

// slowHost keeps every question open until the call ends.
type slowHost struct{ tools.Host }

func (slowHost) Ask(ctx context.Context, _ tools.Question) (tools.Answer, error) {
	<-ctx.Done()
	return tools.Answer{}, context.Cause(ctx)
}

func TestServiceThatBreaksTheProtocolEndsItsCall(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var mu sync.Mutex
	var reached []string
	for _, subject := range []string{"$JS.API.STREAM.NAMES", "victim", "_INBOXES.victim", "_INBOX.a.*"} {
		if sub, err := k.services.Subscribe(subject, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			reached = append(reached, m.Subject)
		}); err == nil {
			defer func() { _ = sub.Unsubscribe() }()
		}
	}
	k.serve("rude", func(m *nats.Msg) {
		send := func(kind, body, reply string) {
			ask := nats.NewMsg(m.Reply)
			ask.Reply = reply
			ask.Header.Set("Oneturn-Kind", kind)
			ask.Data = []byte(body)
			_ = k.services.PublishMsg(ask)
		}
		switch m.Header.Get("Oneturn-User") {
		case "body":
			send("ask", `{"name":`, "_INBOX.b.c")
		case "kind":
			send("steal", `{}`, "_INBOX.b.c")
		case "no-reply":
			send("ask", `{}`, "")
		case "subject":
			send("ask", `{}`, "victim")
		case "like-an-inbox":
			send("ask", `{}`, "_INBOXES.victim")
		case "server":
			send("step", `{"name":"x"}`, "$JS.API.STREAM.NAMES")
		case "flood":
			for range operation.MaxOpen + 1 {
				send("ask", `{}`, "_INBOX.b.c")
			}
		}
	})
	tool := k.tool(&target.NATS{Subject: "rude"})
	for _, how := range []string{"body", "kind", "no-reply", "subject", "like-an-inbox", "server", "flood"} {
		call := k.call(nil)
		call.UserID, call.Host = how, slowHost{}
		_, err := k.invoke(tool, call)
		require.ErrorIs(t, err, events.ErrToolError, how)
		require.Contains(t, err.Error(), "broke the protocol", how)
		require.False(t, tools.IsRetryable(err), how)
	}
	require.NoError(t, k.worker.Flush())
	require.NoError(t, k.services.Flush())
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, reached, "nothing was published there with the worker's rights")
}

func TestFloodOfProgressHarmsNoOtherCall(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("chatty", func(m *nats.Msg) {
		word := nats.NewMsg(m.Reply)
		word.Header.Set("Oneturn-Kind", "progress")
		for i := range 20_000 {
			word.Data = fmt.Appendf(nil, `{"percent":%d}`, i)
			_ = k.services.PublishMsg(word)
		}
		word.Data = []byte(`no JSON`)
		_ = k.services.PublishMsg(word)
		respond(m, `"done"`)
	})
	host := &memhost.Host{}
	host.NewRun()
	call := k.call(nil)
	call.Host = host
	result, err := k.invoke(k.tool(&target.NATS{Subject: "chatty"}), call)
	require.NoError(t, err)
	require.Equal(t, `"done"`, string(result.Value))
	require.NotEmpty(t, host.Reported())
}

// weary is a host that takes longer over a word than a service over the next.
type weary struct {
	memhost.Host

	word func() // sends the next one
}

func (d *weary) Progress(context.Context, tools.Progress) error {
	d.word()
	return nil
}

func TestServiceThatReportsItsProgressHasAnswered(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	words := make(chan *nats.Msg, 1)
	word := func(m *nats.Msg) {
		report := nats.NewMsg(m.Reply)
		report.Header.Set("Oneturn-Kind", "progress")
		report.Data = []byte(`{"percent":1}`)
		_ = k.services.PublishMsg(report)
	}
	k.serve("endless", func(m *nats.Msg) {
		for range 10 {
			word(m)
		}
		words <- m
		respond(m, `"done"`)
	})
	var request *nats.Msg
	reported := 0
	host := &weary{word: func() {
		if request == nil {
			request = <-words
		}
		if reported++; reported > 1000 {
			return
		}
		word(request)
		word(request)
		_ = k.services.Flush()
		_ = k.worker.Flush()
	}}
	host.NewRun()
	call := k.call(nil)
	call.Host = host
	result, err := k.invoke(k.tool(&target.NATS{Subject: "endless"}), call)
	require.NoError(t, err)
	require.Equal(t, `"done"`, string(result.Value))
	require.LessOrEqual(t, reported, 500)
}

func TestOperationAfterTheEndIsRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	late := make(chan *nats.Msg, 1)
	k.serve("quick", func(m *nats.Msg) {
		respond(m, `1`)
		late <- m
	})
	host := &memhost.Host{}
	host.NewRun()
	call := k.call(nil)
	call.Host = host
	_, err := k.invoke(k.tool(&target.NATS{Subject: "quick"}), call)
	require.NoError(t, err)
	m := <-late
	for _, kind := range []string{"ask", "step", "end", "show"} {
		_, err := k.at(m, kind, `{}`)
		require.Equal(t, events.CodeCancelled, events.CodeOf(err), kind)
	}
	respond(m, `2`) // and another answer is dropped
	require.Empty(t, host.Asked())
}
