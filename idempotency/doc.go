// Package idempotency is the turn journal: the record of every agent turn, and the rules by
// which workers own one.
//
// A turn's record is a handful of facts, each created once under its own key of a JetStream
// KV bucket: `tool_call` is the claim, `tool_response` the end, and both are the events that
// subscribers see. Whoever creates a key owns the fact. Nothing is ever updated, so no read
// decides anything: a [Journal] acts on what a create returned.
//
// The lease of a claim is the inbound message it came from: as long as its worker keeps that
// message in progress, JetStream gives it to nobody else. A worker that receives it again
// with a higher delivery number may take the turn over; no clocks are compared.
//
// The package knows neither tools nor manifests. [Journal] works on a [Store]: [KV] is the
// real one, [Memory] is for tests, and package storetest holds both to one suite.
package idempotency
