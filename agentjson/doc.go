// Package agentjson finds the JSON object in what a language model wrote.
//
// Models put prose, code fences and reasoning around their JSON, and write it almost right: a comma too many, the words of
// Python, curly quotes. [Extract] reads such a text once, in linear time, and returns the object as strict JSON, together
// with a list of what it had to repair. Three rules hold:
//
//   - Valid JSON is returned byte for byte.
//   - No character of a string value is altered, dropped or added.
//   - A text with two readings, one that was cut off and one that omits data is an [Error] with feedback for the
//     model. Nothing is guessed, and part of an object is never taken for the whole.
//
// The package depends on package events and the standard library only.
//
// The files, in reading order:
//
//   - extract.go, finish_reason.go: the entry points, their limits, and what the endpoint reports
//   - search.go: the way through a text; search_object.go, search_list.go and search_encoded.go read what they find there,
//     choose.go decides among several objects
//   - reasoning.go, search_reasoning.go, without_reasoning.go: the reasoning of a model is never searched
//   - read_object.go, read_list.go, read_string.go, read_scalar.go, read_space.go: the lenient reader of one object; reader.go has its state
//   - notes.go, error.go: what is reported: repairs, surroundings, warnings, errors
package agentjson
