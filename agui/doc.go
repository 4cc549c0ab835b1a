// Package agui is the AG-UI protocol 1.0 for servers (https://docs.ag-ui.com): the events that an agent sends to a frontend,
// the input that starts a run, and the stream between them. It knows nothing of NATS and of turns, and imports no other
// package of oneturn.
//
// A handler reads the input with [ReadInput], opens a [Stream] and sends events, each a pointer to a struct with the fields of
// AG-UI. Clients from before 1.0, which CopilotKit still has, reject some of what 1.0 allows: the stream sends them what
// [Downgrade] returns. A [Verifier] refuses events that would make clients end the run or show it wrongly.
//
//	in, err := agui.ReadInput(r.Body, agui.InputLimits{})     // an *InputError has the status and names the field
//	stream, err := agui.NewStream(w, agui.StreamOptions{Peer: in.Peer(), Verifier: agui.NewVerifier(in)})
//	stream.Send(&agui.RunStarted{ThreadID: in.ThreadID, RunID: in.RunID, ProtocolVersion: agui.ProtocolVersion})
//
// The files, in reading order:
//
//   - event.go: the types of events and their common fields; run_events.go, text_events.go, tool_call_events.go, state_events.go,
//     reasoning_events.go, subagent_events.go, custom_events.go: the events; encode.go: their JSON
//   - content.go, message.go, tool.go, outcome.go, patch.go: what events and inputs consist of
//   - input.go, input_lists.go, input_document.go, input_error.go: the input of a run; peer.go, downgrade.go: versions of clients
//   - stream.go: the stream of a run; frame.go: server-sent events, also for other streams
//   - verifier.go, verify_ids.go, verify_run.go, verify_messages.go, verify_calls.go, verify_chunks.go: the rules of streams
//   - capabilities.go, runtime.go: what a server offers; ids.go: ids that follow from a turn
package agui
