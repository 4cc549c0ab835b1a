package hostile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// order is what the tool of these tests shall return.
type order struct {
	What         string `json:"what"`
	Size         int    `json:"size"`
	AgentMessage string `json:"agent_message,omitempty"`
}

func deliver(ctx context.Context, in order) (any, error) {
	text := strings.Repeat("<", in.Size)
	switch in.What {
	case "text":
		return text, nil
	case "plain": // needs no escapes
		return strings.Repeat("x", in.Size), nil
	case "message":
		return map[string]any{"status": "success", "message": text}, nil
	case "error":
		return nil, errors.New(text)
	case "user error":
		return nil, &events.Error{Code: events.CodeUserError, Msg: text}
	case "code":
		return nil, &events.Error{Code: events.Code(text), Msg: "a separate code"}
	case "panic":
		panic(text)
	case "variables":
		return "set", tool.Vars(ctx).Set("x", text)
	case "names":
		for i := range in.Size {
			if err := tool.Vars(ctx).Set(fmt.Sprintf("%0200d", i), true); err != nil {
				return nil, err
			}
		}
		return "set", nil
	case "zeros":
		return json.RawMessage("[" + strings.Repeat("0,", in.Size) + "0]"), nil
	case "raw":
		return json.RawMessage(in.AgentMessage), nil
	case "not UTF-8":
		return "\xff\xfe" + text, nil
	case "invalid":
		return json.RawMessage("{"), nil
	case "cycle":
		loop := map[string]any{}
		loop["loop"] = loop
		return loop, nil
	}
	return make(chan int), nil
}

func deliverTool() oneturn.Tool {
	return oneturn.NewTool("deliver", deliver, oneturn.ToolOptions{Workflow: "Echo", Agent: "Echoer", Model: "Echo", Effect: oneturn.Idempotent})
}

// TestH18EveryTurnEndsWhateverItsToolReturns: at every limit and beyond it, readable by a
// client that heard no live copy, and without running an idempotent tool again and again.
func TestH18EveryTurnEndsWhateverItsToolReturns(t *testing.T) {
	t.Parallel()
	l := newLab(t, deliverTool())
	for i, c := range []struct {
		what    string
		size    int
		raw     string
		code    events.Code
		success bool
	}{
		{what: "plain", size: store.InlineLimit - 2, success: true},
		{what: "plain", size: store.InlineLimit - 1, success: true},
		{what: "text", size: store.InlineLimit - 2, success: true},
		{what: "plain", size: 260_000, raw: strings.Repeat("x", 255_000), success: true}, // its records take two pages
		{what: "text", size: 1<<20 - 4096, success: true},
		{what: "text", size: 3 << 20, success: true},
		{what: "message", size: store.InlineLimit, success: true},
		{what: "message", size: 1<<20 - 8192, success: true},
		{what: "message", size: 3 << 20, success: true},
		{what: "error", size: 300 << 10, code: events.CodeToolError},
		{what: "error", size: 3 << 20, code: events.CodeToolError},
		{what: "user error", size: 3 << 20, code: events.CodeUserError},
		{what: "code", size: 3 << 20, code: events.CodeToolError},
		{what: "panic", size: 3 << 20, code: events.CodeToolError},
		{what: "variables", size: 100 << 10, success: true},
		{what: "variables", size: 3 << 20, code: events.CodeTooLarge},
		{what: "names", size: 1000, success: true},
		{what: "names", size: 5000, code: events.CodeTooLarge},
		{what: "zeros", size: events.MaxNodes - 102, success: true},
		{what: "zeros", size: events.MaxNodes - 2, code: events.CodeToolError}, // by itself it may be read, in its event not
		{what: "zeros", size: events.MaxNodes, code: events.CodeToolError},
		{what: "raw", raw: `1e400`, code: events.CodeToolError},
		{what: "raw", raw: `{"a":1,"a":2}`, code: events.CodeToolError},
		{what: "raw", raw: strings.Repeat("[", 60) + strings.Repeat("]", 60), success: true},
		{what: "raw", raw: strings.Repeat("[", 64) + strings.Repeat("]", 64), code: events.CodeToolError},
		{what: "not UTF-8", success: true}, // encoding/json replaces what is not UTF-8
		{what: "invalid", code: events.CodeToolError},
		{what: "cycle", code: events.CodeToolError},
		{what: "channel", code: events.CodeToolError},
	} {
		name := fmt.Sprintf("%d %s of %d %.20s", i, c.what, c.size, c.raw)
		one := turn("c", name)
		one.Data = map[string]any{"what": c.what, "size": number(strconv.Itoa(c.size)), "agent_message": c.raw}
		began := time.Now()
		r := l.ends(one)
		t.Log(name, time.Since(began))
		require.Equal(t, c.code, r.Code, "%s: %.200s", name, r.Content)
		require.Equal(t, c.success, r.Success, name)
		require.LessOrEqual(t, len(r.Content), 100<<10, name)
		require.Equal(t, l.await(one.TurnID), r, "read again, from the journal alone")
	}
	require.Zero(t, l.metric("oneturn_redeliveries_total"), l.log)
	l.goesOnWith(order{What: "text"})
	l.drained()
}

func (l *lab) goesOnWith(in order) {
	l.Helper()
	one := turn("bystander", "last")
	one.Data = map[string]any{"what": in.What, "size": number("1")}
	require.True(l, l.ends(one).Success)
}

// TestH01LargestTurnsEndAndCanBeRead: the claim repeats what came in, so it must not outgrow
// the message.
func TestH01LargestTurnsEndAndCanBeRead(t *testing.T) {
	t.Parallel()
	l := newLab(t, deliverTool())
	limit := int(l.nc.MaxPayload()) - 2048
	for i, data := range []string{
		`{"what":"text","size":300000,"agent_message":"` + strings.Repeat("x", limit-500) + `"}`,
		`{"what":"text","size":200000,"agent_message":"` + strings.Repeat("<", limit-500) + `"}`,
		`{"what":"text","size":200000,"agent_message":"` + strings.Repeat(`\b`, limit/2-500) + `"}`,
		`{"what":"text","size":200000,"agent_message":"` + strings.Repeat(`\u0001`, limit/6-500) + `"}`,
		`{"what":"text","size":200000,"agent_message":"` + strings.Repeat("x", 512<<10) + `"}`,
	} {
		key := strconv.Itoa(i)
		l.send("c", nil, raw("c", key, data))
		r := l.await(turn("c", key).TurnID)
		require.True(t, r.Success, "%s: %.200s", key, r.Content)
	}
	require.Zero(t, l.metric("oneturn_redeliveries_total"), l.log)
	l.drained()
}

// TestH01TurnsEndOnAServerOfSmallMessages: what the server does not take as a record is a blob
// or an error.
func TestH01TurnsEndOnAServerOfSmallMessages(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, func(o *embedded.Options) { o.MaxPayload = 64 << 10 })
	l := newLabOn(t, s, oneturn.Config{Tools: []oneturn.Tool{deliverTool()}})
	for i, c := range []struct {
		what    string
		size    int
		success bool
	}{{"text", 100, true}, {"text", 50_000, true}, {"text", 300_000, true}, {"message", 40_000, true}, {"message", 300_000, false}, {"variables", 100_000, false}} {
		one := turn("c", strconv.Itoa(i))
		one.Data = map[string]any{"what": c.what, "size": number(strconv.Itoa(c.size))}
		r := l.ends(one)
		require.Equal(t, c.success, r.Success, "%s of %d: %s", c.what, c.size, r.Code)
		if !c.success {
			require.Equal(t, events.CodeTooLarge, r.Code)
		}
	}
	l.send("c", nil, []byte(strings.Repeat("x", 63<<10)))
	l.letter("undecodable")
	l.goesOnWith(order{What: "text"})
	l.drained()
}

// TestH02WidestTurnEndsThoughItsEventsHoldMoreThanItself: the claim wraps the arguments.
func TestH02WidestTurnEndsThoughItsEventsHoldMoreThanItself(t *testing.T) {
	t.Parallel()
	wide := oneturn.NewTool("wide", func(_ context.Context, in struct {
		List []int `json:"list"`
	},
	) (int, error) {
		return len(in.List), nil
	}, oneturn.ToolOptions{Workflow: "Echo", Agent: "Echoer", Model: "Echo"})
	l := newLab(t, wide)
	for _, spare := range []int{14, 60, 110} {
		key := "too wide by " + strconv.Itoa(spare)
		l.send("c", nil, raw("c", key, `{"list":[`+strings.Repeat("0,", events.MaxNodes-spare-1)+"0]}"))
		require.Equal(t, events.CodeValidationFailed, l.await(turn("c", key).TurnID).Code)
	}
	accepted := []int{116, 120, 200}
	for _, spare := range accepted {
		n := events.MaxNodes - spare
		key := strconv.Itoa(n)
		l.send("c", nil, raw("c", key, `{"list":[`+strings.Repeat("0,", n-1)+"0]}"))
	}
	for _, spare := range accepted {
		n := events.MaxNodes - spare
		r := l.await(turn("c", strconv.Itoa(n)).TurnID)
		require.True(t, r.Success, "%d: %.200s", n, r.Content)
		require.Equal(t, number(strconv.Itoa(n)), r.Payload)
	}
	var page api.Page
	require.NoError(t, json.Unmarshal(l.ask("oneturn.api.app.history", `{"chat_id":"c"}`).Data, &page))
	for _, r := range page.Records {
		_, err := events.Parse(r.Event)
		require.NoError(t, err, r.Kind)
	}
	l.drained()
}

// TestH01ContextVariablesOfTheLargestSizeReachTheTool: they are part of no record.
func TestH01ContextVariablesOfTheLargestSizeReachTheTool(t *testing.T) {
	t.Parallel()
	size := oneturn.NewTool("size", func(ctx context.Context, _ echo) (int, error) {
		v, _ := tool.Vars(ctx).Get("big")
		s, _ := v.(string)
		return len(s), nil
	}, oneturn.ToolOptions{Workflow: "Echo", Agent: "Echoer", Model: "Echo"})
	l := newLab(t, size)
	one := turn("c", "k")
	n := int(l.nc.MaxPayload()) - 2048
	one.ContextVariables = map[string]any{"big": strings.Repeat("x", n)}
	require.Equal(t, number(strconv.Itoa(n)), l.ends(one).Payload)
	l.drained()
}

// TestH01PublisherGetsTheErrorOfTheServer: before anything is stored.
func TestH01PublisherGetsTheErrorOfTheServer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	one := turn("c", "k")
	one.Data = map[string]any{"text": strings.Repeat("x", int(l.nc.MaxPayload()))}
	_, err := l.client.Publish(t.Context(), one)
	require.ErrorContains(t, err, "maximum payload")
	require.Less(t, len(err.Error()), 1024)
	require.NotEmpty(t, subjects.DefaultPool)
}
