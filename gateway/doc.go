// Package gateway serves the chats of oneturn to frontends: WebSockets, plain requests and event streams. [New] returns an
// [http.Handler]; cmd/gateway is a server around it, and a Go program may mount it into its own. docs/gateway.md describes
// the endpoints.
//
// A gateway holds no state of chats. It reads the journal and follows its end (internal/feed), publishes what users send,
// and returns the verdicts of workers. So every replica answers every request, also while no worker runs.
//
// In reading order:
//
//   - gateway.go: [Options], [Gateway], how it starts, drains and ends. journal.go: how it reads the journal. metrics.go: what it counts.
//     traces.go: its spans. rights.go: rights that its user lacks.
//   - routes.go: the table of endpoints, and how a request is routed to its endpoint. reply.go: replies and refusals. refused.go: tokens
//     and origins that are refused, for the operator. body.go: reads bodies.
//     bodies.go: what they and frames may cost.
//   - chat_access.go: whose a chat is. owner_reads.go: requests share the reads of that. frame.go: events as frontends get them.
//   - Endpoints for requests: events.go (pages, and a stream that stream.go writes), questions.go (open questions), respond.go (answers),
//     cancel.go, messages.go (texts of users), blobs.go (large payloads).
//   - The endpoint for WebSockets: socket.go (handshake and close codes), socket_wire.go (its connection), socket_events.go (what it sends), socket_frames.go (what it
//     receives), socket_messages.go (messages of the user, in their order).
//   - The endpoints for AG-UI: agui_endpoints.go (inputs, and the envelopes of CopilotKit), agui_run.go (one run), agui_load.go (how it begins),
//     loaded_chats.go (what runs read of their chats), memory.go (of their snapshots), agui_plan.go (what an input asks for),
//     agui_answers.go (what a run publishes), agui_end.go (when it is over), agui_stop.go (stop requests), released_waits.go
//     (messages that no run waits for after one).
package gateway
