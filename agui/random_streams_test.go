package agui_test

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

// streamsFile receives the streams, one a line, to be read by clients in other languages.
var streamsFile = flag.String("streams", "", "write the random streams to this file")

// randomStream is a stream that the verifier has accepted event by event.
type randomStream struct {
	Input  *agui.RunAgentInput `json:"input"`
	Events []agui.Event        `json:"events"`
}

// Whatever a producer tries to send: what passes the verifier matches the schemas of the client, and the run can end.
func TestRandomStreamsThatAreAcceptedMatchTheSchemas(t *testing.T) {
	t.Parallel()
	schemas := map[bool]func(any) error{
		true:  schema(t, schemaOld, "definitions/Event").Validate,
		false: schema(t, schema1, "$defs/Event").Validate,
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(0, seed))
	streams := make([]randomStream, 100)
	if *streamsFile != "" {
		streams = make([]randomStream, 4000)
	}
	finishedRuns := 0
	for i := range streams {
		in := trace{}.input([]string{"", "1.0"}[i%2])
		v := agui.NewVerifier(in)
		stream := randomStream{Input: in}
		try := func(e agui.Event) bool {
			if e = agui.Downgrade(e, in.Peer()); e == nil || v.Check(e) != nil {
				return false
			}
			stream.Events = append(stream.Events, e)
			return true
		}
		require.True(t, try(started()))
		for range 60 {
			try(randomEvent(r))
		}
		closeAll(try)
		if try(finished(nil)) {
			finishedRuns++
		} else {
			require.True(t, try(&agui.RunError{Message: "x"}))
		}
		require.NoError(t, v.End())
		for _, e := range stream.Events {
			require.NoError(t, schemas[in.Peer().Before1()](decode(t, encode(t, e))), "%s", encode(t, e))
		}
		streams[i] = stream
	}
	require.Greater(t, finishedRuns, len(streams)/10)
	if *streamsFile == "" {
		return
	}
	f, err := os.Create(*streamsFile)
	require.NoError(t, err)
	defer f.Close()
	for _, stream := range streams {
		require.NoError(t, json.NewEncoder(f).Encode(stream))
	}
}

// randomEvent uses few ids, so that events meet.
func randomEvent(r *rand.Rand) agui.Event {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	id := func() string { return pick("a", "b", "c", "u1", "s1") }
	sub := func() string { return pick("", "", "s1", "s2") }
	json := func() string { return pick("{}", "{", "}") }
	replace := r.IntN(2) == 0
	events := []func() agui.Event{
		func() agui.Event {
			return &agui.TextMessageStart{MessageID: id(), SubagentRunID: sub(), Role: agui.Role(pick("", "user", "assistant", "tool"))}
		},
		func() agui.Event { return &agui.TextMessageContent{MessageID: id(), Delta: "x", SubagentRunID: sub()} },
		func() agui.Event { return &agui.TextMessageEnd{MessageID: id(), SubagentRunID: sub()} },
		func() agui.Event {
			return &agui.TextMessageChunk{MessageID: pick("", id()), Delta: "x", SubagentRunID: sub(), Role: agui.Role(pick("", "user"))}
		},
		func() agui.Event {
			return &agui.ToolCallStart{ToolCallID: id(), ToolCallName: "f", ParentMessageID: pick("", id()), SubagentRunID: sub()}
		},
		func() agui.Event { return &agui.ToolCallArgs{ToolCallID: id(), Delta: json(), SubagentRunID: sub()} },
		func() agui.Event { return &agui.ToolCallEnd{ToolCallID: id(), SubagentRunID: sub()} },
		func() agui.Event {
			return &agui.ToolCallChunk{ToolCallID: pick("", id()), ToolCallName: pick("", "f"), Delta: json(), SubagentRunID: sub()}
		},
		func() agui.Event {
			return &agui.ToolCallResult{MessageID: id(), ToolCallID: id(), SubagentRunID: sub()}
		},
		func() agui.Event { return &agui.StepStarted{StepName: id(), SubagentRunID: sub()} },
		func() agui.Event { return &agui.StepFinished{StepName: id(), SubagentRunID: sub()} },
		func() agui.Event { return &agui.ReasoningStart{MessageID: id(), SubagentRunID: sub()} },
		func() agui.Event { return &agui.ReasoningEnd{MessageID: id(), SubagentRunID: sub()} },
		func() agui.Event { return &agui.ReasoningMessageStart{MessageID: id(), SubagentRunID: sub()} },
		func() agui.Event { return &agui.ReasoningMessageContent{MessageID: id(), SubagentRunID: sub()} },
		func() agui.Event { return &agui.ReasoningMessageEnd{MessageID: id(), SubagentRunID: sub()} },
		func() agui.Event {
			return &agui.ReasoningMessageChunk{MessageID: pick("", id()), SubagentRunID: sub(), Delta: "x"}
		},
		func() agui.Event {
			return &agui.ReasoningEncryptedValue{Subtype: pick("tool-call", "message"), EntityID: id(), SubagentRunID: sub()}
		},
		func() agui.Event {
			return &agui.SubagentStarted{SubagentRunID: pick("s1", "s2"), Name: "n", ParentSubagentRunID: sub()}
		},
		func() agui.Event { return &agui.SubagentFinished{SubagentRunID: pick("s1", "s2")} },
		func() agui.Event { return &agui.SubagentError{SubagentRunID: pick("s1", "s2")} },
		func() agui.Event {
			return &agui.ActivitySnapshot{MessageID: id(), ActivityType: "x", SubagentRunID: sub(), Replace: &replace}
		},
		func() agui.Event {
			return &agui.ActivityDelta{MessageID: id(), ActivityType: "x", SubagentRunID: sub(), Patch: agui.Patch{agui.Add("/a", nil)}}
		},
		func() agui.Event { return &agui.StateSnapshot{} },
		func() agui.Event { return &agui.Custom{Name: "x", SubagentRunID: sub()} },
		func() agui.Event { return &agui.Raw{} },
		func() agui.Event {
			return &agui.MessagesSnapshot{Messages: []agui.Message{
				agui.UserMessage("u1", "x"),
				{ID: id(), Role: agui.Role(pick("assistant", "reasoning")), SubagentRunID: sub()},
				{ID: id(), Role: agui.RoleAssistant, ToolCalls: []agui.ToolCall{agui.Call(id(), "f", "{}")}, SubagentRunID: sub()},
			}}
		},
	}
	return events[r.IntN(len(events))]()
}

// closeAll closes what is open.
func closeAll(try func(agui.Event) bool) {
	try(&agui.ToolCallChunk{Delta: "{}"})
	try(&agui.ToolCallChunk{Delta: "}"})
	try(&agui.Custom{Name: "x"})
	for _, id := range []string{"a", "b", "c", "u1", "s1", "s2"} {
		if !try(&agui.ToolCallEnd{ToolCallID: id}) {
			try(&agui.ToolCallArgs{ToolCallID: id, Delta: "{}"})
			try(&agui.ToolCallEnd{ToolCallID: id})
		}
		try(&agui.TextMessageEnd{MessageID: id})
		try(&agui.ReasoningMessageEnd{MessageID: id})
		try(&agui.ReasoningEnd{MessageID: id})
		for _, subagent := range []string{"", "s1", "s2"} {
			try(&agui.StepFinished{StepName: id, SubagentRunID: subagent})
		}
		try(&agui.SubagentFinished{SubagentRunID: id})
	}
}
