// Package events is the wire of oneturn: the event types, their envelope, the strict JSON
// decoder that every inbound byte passes, and the ids that follow from a turn's identity.
// It does no I/O.
//
// Reading: [Decode] turns bytes into a value tree (nil, bool, string, [json.Number], []any,
// map[string]any); [Parse] opens the envelope; [DecodeTurn], [DecodeAnswer] and [DecodeCancel]
// give typed events. Writing: [AppendJSON] is canonical JSON of a value tree, [Encode] an event in its
// envelope, [EncodeTurn], [EncodeAnswer] and [EncodeCancel] what a publisher sends.
//
//	{"type":"chat.<kind>","data":{"kind":"<kind>",…},"timestamp":"2026-01-02T03:04:05.678Z"}
//
// [Schema] returns the JSON Schema of each kind's data and of the envelope.
//
// docs/wire-contract.md is the contract. The files, in reading order:
//
//   - event_kinds.go, record_kinds.go, effect.go, error.go: names that other packages share: kinds of events and of journal
//     records, effects of tools, error codes
//   - turn.go, retry.go, answer.go, resume.go, expire.go: the inbound messages; envelope.go opens one, decode_turn.go and
//     field_reader.go read its fields, unreadable_event.go finds the sender of one that cannot be read
//   - message.go, decode_message.go: messages of agents and users, and the events that follow from them; correction.go, usage.go: what a
//     model was asked to correct, and its cost
//   - question.go, answer_result.go, program.go, unstored_events.go: questions and surfaces, the results of answers, the steps
//     of programs, events that are not stored; schema.go has the JSON Schema of each
//   - ids.go, question_id.go, step_id.go, normalize_name.go: ids of calls, questions and steps, and the form in which names are compared
//   - decode.go, json_literal.go, json_limits.go: the strict decoder
//   - encode.go, json_writer.go, json_append.go, canonical.go: the encoder, and canonical JSON
//   - component_payload.go: what frontends do with events: the payload of a component, and which messages are visible
//   - input_text.go, log_text.go, text_limit.go: texts for tools, logs and people
package events
