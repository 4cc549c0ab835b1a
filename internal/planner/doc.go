// Package planner asks agents for programs and for the answers that follow them. It is pure: it makes requests and
// reads replies; its caller calls the agents that a manifest names.
//
// A [Planner] turns the prompt of a user into a program: PLAN. The text that instructs the agent is fixed; what comes
// from users, manifests and earlier results is data in the user message, so that it is never read as an instruction
// of the product. A reply is exactly one JSON object. An agent is asked once more, with what is wrong, and no further:
// [Planner.Plan] has the rules. What is compiled is the reply alone, so that a worker that continues a turn compiles
// the stored reply ([Planner.Compile]) and does not ask again.
//
// A [Correction] asks for the correction of an agent's output that cannot be used.
//
// A [Responder] turns the outcome of a program into a text for the user: RESPOND. It gets a summary of the calls
// ([PlanSummary], [OrchestrationSummary], [RefusedSummary]); if it fails after a call has failed, [Fallback] is the text.
//
// The files, in reading order: request.go has the [Request], planner.go the rounds, instructions.go the fixed texts,
// data.go the user message with its bounds, reply_schema.go the JSON Schema of replies, reply.go reads replies,
// refusal.go the refusals; responder.go and summary.go are RESPOND, correction.go corrects outputs.
package planner
