// Package events is the wire of oneturn: the event types, their envelope, the strict JSON
// decoder that every inbound byte passes, and the ids that follow from a turn's identity.
// It does no I/O.
//
// Reading: [Decode] turns bytes into a value tree (nil, bool, string, [json.Number], []any,
// map[string]any); [Parse] opens the envelope; [DecodeTurn], [DecodeAnswer] and [DecodeCancel]
// give typed events; [ExtractObject] finds the object in what an agent wrote. Writing:
// [AppendJSON] is canonical JSON of a value tree, [Encode] an event in its envelope,
// [EncodeTurn], [EncodeAnswer] and [EncodeCancel] what a publisher sends.
//
//	{"type":"chat.<kind>","data":{"kind":"<kind>",…},"timestamp":"2026-01-02T03:04:05.678Z"}
//
// [Schema] returns the JSON Schema of each kind's data and of the envelope.
//
// Names that other packages share are defined here once: kinds of messages and events (kinds.go), kinds
// of journal records (records.go), effects of tools (effect.go), error codes (error.go) and the results of
// answers (answer_result.go). Inbound messages are in turn.go, answer.go, resume.go and expire.go, the
// decoder in decode.go with its limits in json_limits.go, the encoder in encode.go and json_writer.go, ids in
// ids.go and question_id.go. docs/wire-contract.md is the contract.
package events
