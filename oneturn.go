// Package oneturn runs the tool that an AI agent's structured output calls for, once per
// agent turn, and reports each step to every frontend.
//
// A [Worker] takes structured_output_ready events from a JetStream work queue, finds the tool
// bound to the event's workflow, agent and model, validates the data, claims the turn in the
// journal, runs the tool and stores the response. Claim and response are the events
// chat.tool_call and chat.tool_response. A [Client] publishes turns and waits for their
// responses; it also publishes what agents and users have written ([Message]), from which workers make turns.
//
// Both take the caller's NATS connection and keep no global state. The streams and buckets
// must exist: package provision creates them, and so does the embedded server of cmd/worker.
//
// The guarantee: every accepted turn ends in exactly one response. A tool whose effect is
// unsafe (the default) is entered at most once per turn; if its worker dies inside it, the
// response has the code interrupted. See docs/guarantees.md for what that does not cover.
//
// config.go, worker.go and tool.go are the worker's side; turn.go, message.go, client.go, retry.go, await.go, await_message.go with
// await_message_turn.go, questions.go, steps.go, blob.go and context_variables.go the client's; check_plan.go is the dry run of a
// plan. What a running tool uses is package tool, the wire types of the request API are package api, and package oneturntest tests
// tools.
package oneturn
