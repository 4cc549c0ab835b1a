// Package subjects builds and parses every name that oneturn uses on NATS: subjects, journal
// keys, streams, consumers and buckets. It does no I/O, and no other package builds a name.
//
// An id from outside (tenant, chat, workflow, turn key) becomes one subject token by [Token]:
// never empty, never a wildcard, at most 64 characters. The real id travels in the body.
//
//	<prefix>.in.<pool>.<kind>.<app>.<workflow>.<chat>                inbound
//	$KV.<PREFIX>_TURNS.e.<app>.<chat>.<turn>.<call>.<kind>[.<id>]    journal, public
//	$KV.<PREFIX>_TURNS.p.<app>.<chat>.<turn>.<call>.<kind>[.<id>]    journal, private
//	<prefix>.events.<app>.<chat>.<turn>.<call>.<kind>[.<id>]         live copies of the public part
//	<prefix>.live.<app>.<chat>.<kind>                                not stored
//	<prefix>.timer.ask.<app>.<chat>.<turn>.<call>.<id>               schedule of a question's end
//	<prefix>.due.ask.<app>.<chat>.<turn>.<call>.<id>                 that end
//	$KV.<PREFIX>_LIMITS.<hash>[.<hash>]                              rate of a tool, or of a tool for a tenant
//	$KV.<PREFIX>_WORKFLOWS.<workflow>.<pool>                         a workflow that workers of a pool have
//	<prefix>.dead.<app>.<kind>                                       dead letters
//	<prefix>.api.<app>.<verb>                                        request API
//	<prefix>.verdict.<app>.<random>                                  verdict on one answer
//	<prefix>.gateway.>                                               what gateways send each other
//
// The files: token.go (ids as tokens), key.go (journal keys), call.go (their call tokens), installation_names.go ([Space], all names of one installation: streams, buckets, consumers, inbound
// and live subjects); then the names of one feature each: question.go, sweep.go, deferral.go, dead_letter.go, workflow.go, gateway.go,
// answer_result_subject.go. inbox.go and reply_check.go have the inboxes of workers and clients, and which reply subjects a
// worker may publish to.
package subjects
