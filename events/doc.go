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
package events
