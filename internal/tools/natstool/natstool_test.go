package natstool_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestWithoutASubscriberNothingHasHappened(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	tool := k.tool(&target.NATS{Subject: "orders.place"})
	_, err := k.invoke(tool, k.call(nil))
	require.ErrorIs(t, err, events.ErrToolError)
	require.True(t, tools.IsRetryable(err))
	k.serve("orders.place", func(m *nats.Msg) { respond(m, `{"number":1}`) })
	result, err := k.invoke(tool, k.call(nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"number":1}`, string(result.Value))
}

func TestWithoutAConnectionNothingIsSent(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("orders.place", func(m *nats.Msg) { respond(m, `1`) })
	tool := k.tool(&target.NATS{Subject: "orders.place"})
	_, err := k.invoke(tool, k.call(nil))
	require.NoError(t, err)
	require.NoError(t, k.server.Stop())
	eventually(t, func() bool { return k.worker.Status() != nats.CONNECTED }, "the worker has lost its connection")
	_, err = k.invoke(tool, k.call(nil))
	require.ErrorIs(t, err, events.ErrToolError)
	require.True(t, tools.IsRetryable(err))
	require.Contains(t, err.Error(), "nothing was sent")
}

func TestConnectionClosedUnderACallIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	entered := make(chan struct{})
	k.serve("orders.place", func(*nats.Msg) { close(entered) })
	tool := natstool.New(&target.NATS{Subject: "orders.place"}, natstool.Options{Conn: k.worker})
	done := make(chan error, 1)
	go func() {
		_, err := k.invoke(tool, k.call(nil))
		done <- err
	}()
	<-entered
	k.worker.Close()
	err := <-done
	require.ErrorIs(t, err, events.ErrToolError)
	require.False(t, tools.IsRetryable(err))
	require.Contains(t, err.Error(), "may or may not have happened")
	require.NoError(t, tool.Close(t.Context()))
}

func TestErrorsOfServicesHaveCodes(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	tool := k.tool(&target.NATS{Subject: "fails"})
	k.serve("fails", func(m *nats.Msg) {
		var headers []string
		for name, value := range map[string]string{
			"Nats-Service-Error-Code": m.Header.Get("Oneturn-Agent"), "Oneturn-Error-Code": m.Header.Get("Oneturn-Workflow"),
			"Retry-After": m.Header.Get("Oneturn-User"), "Nats-Service-Error": "it broke",
		} {
			if value != "" {
				headers = append(headers, name, value)
			}
		}
		respond(m, `{"ignored":true}`, headers...)
	})
	for _, c := range []struct {
		status, word, after string
		code                events.Code
		retryable           bool
		wait                time.Duration
	}{
		{status: "400", code: events.CodeBadArgs},
		{status: "404", code: events.CodeUserError},
		{status: "409", code: events.CodeUserError},
		{status: "422", code: events.CodeUserError},
		{status: "408", code: events.CodeTimeout},
		{status: "504", code: events.CodeTimeout},
		{status: "413", code: events.CodeTooLarge},
		{status: "429", after: "2.5", code: events.CodeToolError, retryable: true, wait: 2500 * time.Millisecond},
		{status: "503", after: "1e300", code: events.CodeToolError, retryable: true, wait: 24 * time.Hour},
		{status: "503", after: "NaN", code: events.CodeToolError, retryable: true},
		{status: "503", after: "-3", code: events.CodeToolError, retryable: true},
		{status: "500", after: "5", code: events.CodeToolError},
		{status: "TEAPOT", code: events.CodeToolError},
		{code: events.CodeToolError},
		{status: "503", word: "user_error", code: events.CodeUserError},
		{status: "400", word: "retryable", code: events.CodeToolError, retryable: true},
		{word: "bad_args", code: events.CodeBadArgs},
		{word: "timeout", code: events.CodeTimeout},
		{word: "too_large", code: events.CodeTooLarge},
		{word: "tool_error", code: events.CodeToolError},
		{word: "cancelled", code: events.CodeToolError}, // not a code that a service may choose
		{word: "expired", code: events.CodeToolError},
		{word: "parked", code: events.CodeToolError},
		{word: "interrupted", code: events.CodeToolError},
	} {
		call := k.call(nil)
		call.Agent, call.Workflow, call.UserID = c.status, c.word, c.after
		_, err := k.invoke(tool, call)
		require.Equal(t, c.code, events.CodeOf(err), "%+v: %v", c, err)
		require.Contains(t, err.Error(), "it broke")
		wait, retryable := tools.RetryDelay(err)
		require.Equal(t, c.retryable, retryable, "%+v", c)
		require.Equal(t, c.wait, wait, "%+v", c)
		var failed *natstool.ServiceError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, natstool.ServiceError{Code: c.word, Status: c.status}, *failed)
	}
}

func TestAnswersOfServicesAreReadAsTheyAreMeant(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var body string
	var headers []string
	k.serve("replies", func(m *nats.Msg) { respond(m, body, headers...) })
	tool := k.tool(&target.NATS{Subject: "replies"})
	for _, c := range []struct {
		body    string
		headers []string
		want    string
	}{
		{"", nil, `null`},
		{" \r\n", nil, `null`},
		{"\ufeff[1]\n", nil, `[1]`},
		{"7", nil, `7`},
		{"pong", []string{"Content-Type", "text/plain"}, `"pong"`},
		{"pong", []string{"content-type", "Text/Plain; charset=utf-8"}, `"pong"`},
		{`{"a":1}`, []string{"Content-Type", "application/octet-stream"}, `{"a":1}`},
		{`{"a":1}`, []string{"Nats-Service-Error-Code", "0"}, `{"a":1}`},
		{`{"a":1}`, []string{"Nats-Service-Error-Code", "200", "Nats-Service-Error", ""}, `{"a":1}`},
		{``, []string{"Status", "active"}, `null`},
	} {
		body, headers = c.body, c.headers
		result, err := k.invoke(tool, k.call(nil))
		require.NoError(t, err, "%q %v", c.body, c.headers)
		require.Equal(t, c.want, string(result.Value), "%q %v", c.body, c.headers)
	}
	for _, c := range []struct {
		body    string
		headers []string
		code    events.Code
		want    string
	}{
		{"pong", nil, events.CodeToolError, "(4 bytes) cannot be used: invalid JSON at byte 0"},
		{`{"a":NaN}`, nil, events.CodeToolError, "it has NaN where a value is expected"},
		{"<html>", nil, events.CodeToolError, "it is a page or XML"},
		{"\xff\xfe1\x00", nil, events.CodeToolError, "it is UTF-16"},
		{"x", []string{"Content-Type", "image/png"}, events.CodeToolError, `Content-Type is "image/png"`},
		{"", []string{"nats-service-error-code", "404", "nats-service-error", "no such order"}, events.CodeUserError, "no such order"},
		{`{"error":{"message":"no such order"}}`, []string{"Nats-Service-Error-Code", "404"}, events.CodeUserError, "no such order"},
		{"no such order", []string{"Nats-Service-Error-Code", "500", "Content-Type", "text/plain"}, events.CodeToolError, "no such order"},
		{"", []string{"Nats-Service-Error-Code", "500"}, events.CodeToolError, "the service failed with status 500"},
		{"", []string{"Nats-Service-Error-Code", "200", "Nats-Service-Error", "it broke"}, events.CodeToolError, "it broke"},
		{"", []string{"Status", "408"}, events.CodeTimeout, "the service failed with status 408"},
	} {
		body, headers = c.body, c.headers
		_, err := k.invoke(tool, k.call(nil))
		require.Equal(t, c.code, events.CodeOf(err), "%q %v: %v", c.body, c.headers, err)
		require.ErrorContains(t, err, c.want)
		require.False(t, tools.IsRetryable(err))
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("talks", func(m *nats.Msg) { respond(m, string(m.Data)) })
	k.serve("rails", func(m *nats.Msg) {
		respond(m, "", "Nats-Service-Error-Code", strings.Repeat("5", 1000), "Nats-Service-Error", strings.Repeat("é", 10_000))
	})
	tool := k.tool(&target.NATS{Subject: "talks"}, func(o *natstool.Options) { o.MaxAnswer = 100 })
	_, err := k.invoke(tool, k.call(map[string]any{"text": strings.Repeat("x", 100)}))
	require.ErrorIs(t, err, events.ErrTooLarge)
	require.False(t, tools.IsRetryable(err), "it has happened")
	_, err = k.invoke(k.tool(&target.NATS{Subject: "rails"}), k.call(nil))
	require.ErrorIs(t, err, events.ErrToolError)
	require.Less(t, len(err.Error()), 5000)
	_, err = k.invoke(tool, k.call(map[string]any{"text": strings.Repeat("x", 2<<20)}))
	require.ErrorIs(t, err, events.ErrTooLarge, "more than the server takes")
}

func TestServiceGetsTheTimeoutOfTheCall(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("times", func(m *nats.Msg) { respond(m, strconv.Quote(m.Header.Get("Oneturn-Timeout"))) })
	tool := k.tool(&target.NATS{Subject: "times"})
	result, err := tool.Invoke(t.Context(), k.call(nil))
	require.NoError(t, err)
	require.Equal(t, `""`, string(result.Value), "no deadline")
	result, err = k.invoke(tool, k.call(nil))
	require.NoError(t, err)
	ms, err := strconv.Atoi(strings.Trim(string(result.Value), `"`))
	require.NoError(t, err)
	require.Positive(t, ms)
	require.LessOrEqual(t, ms, int(patience.Milliseconds()))
}

func TestServiceGetsTheTraceOfTheTurn(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("traced", func(m *nats.Msg) { respond(m, strconv.Quote(m.Header.Get("traceparent"))) })
	call := k.call(nil)
	call.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	result, err := k.invoke(k.tool(&target.NATS{Subject: "traced"}), call)
	require.NoError(t, err)
	require.Equal(t, strconv.Quote(call.Trace), string(result.Value))
}

func TestManyCallsShareOneSubscription(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	const calls = 2000
	var mu sync.Mutex
	var held []*nats.Msg
	k.serve("holds", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if held = append(held, m); len(held) == calls {
			for _, m := range held {
				respond(m, string(m.Data))
			}
		}
	})
	tool := k.tool(&target.NATS{Subject: "holds"})
	before := k.worker.NumSubscriptions()
	var wg sync.WaitGroup
	errs := make([]error, calls)
	for i := range calls {
		wg.Go(func() {
			result, err := k.invoke(tool, k.call(map[string]any{"call": strconv.Itoa(i)}))
			if want := `{"call":"` + strconv.Itoa(i) + `"}`; err == nil && string(result.Value) != want {
				err = errors.New("got the answer of another call")
			}
			errs[i] = err
		})
	}
	eventually(t, func() bool { return k.worker.NumSubscriptions() > before }, "it listens")
	require.Equal(t, before+1, k.worker.NumSubscriptions())
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestClosedToolWaitsForItsCalls(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	entered, answer := make(chan struct{}, 1), make(chan struct{})
	k.serve("slow", func(m *nats.Msg) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-answer
		respond(m, `1`)
	})
	tool := natstool.New(&target.NATS{Subject: "slow"}, natstool.Options{Conn: k.worker})
	before := k.worker.NumSubscriptions()
	done, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := k.invoke(tool, k.call(nil))
		done <- err
	}()
	<-entered
	go func() { closed <- tool.Close(t.Context()) }()
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := tool.Invoke(ctx, k.call(nil))
		return err != nil && strings.Contains(err.Error(), "closed")
	}, "nothing begins any more")
	close(answer)
	require.NoError(t, <-done)
	require.NoError(t, <-closed)
	require.Equal(t, before, k.worker.NumSubscriptions())
}

func TestToolThatHasToCloseEndsItsCalls(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	entered := make(chan struct{})
	k.serve("slow", func(*nats.Msg) { close(entered) })
	tool := natstool.New(&target.NATS{Subject: "slow"}, natstool.Options{Conn: k.worker})
	done := make(chan error, 1)
	go func() {
		_, err := k.invoke(tool, k.call(nil))
		done <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, tool.Close(ctx))
	err := <-done
	require.ErrorIs(t, err, events.ErrCancelled)
	require.False(t, tools.IsRetryable(err))
}

func TestLostServiceEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.serve("dies", func(*nats.Msg) {})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := k.tool(&target.NATS{Subject: "dies"}).Invoke(ctx, k.call(nil))
	require.ErrorIs(t, err, events.ErrTimeout)
	require.False(t, tools.IsRetryable(err))
}

func TestInvalidSubjectIsAnError(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, subject := range []string{"orders.*", "orders.>", "a b", ".a", "a.", "a..b", "a\r\nPUB x 0", "", "oneturn", "oneturn.in.default.cancel.a.w.c"} {
		_, err := k.invoke(k.tool(&target.NATS{Subject: subject, Service: map[bool]string{true: "no good name"}[subject == ""]}), k.call(nil))
		require.ErrorIs(t, err, events.ErrToolError, "%q", subject)
		require.False(t, tools.IsRetryable(err))
	}
}
