// Package hostile attacks a worker with what a model, a producer, a tool or another tenant
// could send it, and checks three promises: whatever comes in ends as a response or as a
// dead letter with its bytes and a reason; handling it takes at most 100 ms of CPU and 64 MiB
// of memory and never panics; and the turns of other chats continue meanwhile.
//
// It has tests only. Their names carry the row of the hostile-input matrix:
//
//	H01 large messages and header blocks     here, idempotency
//	H02 deep, wide and split documents       here, events
//	H03 text that is not what it seems       here, events
//	H04 keys that two readers read apart     here, events
//	H05 numbers that explode                 here, events
//	H06 references in a circle               here, bindings/model
//	H07 references to files and the network  here, bindings, bindings/model
//	H08 schemas that double                  here, bindings/model
//	H09 patterns that run for ever           here, bindings/model
//	H10 values in error messages             here, bindings/model
//	H12 manifests that leave their folder    bindings/hostile_test.go
//	H13 ids that are subjects                here, subjects
//	H14 headers that command                 here
//	H15 another turn's Nats-Msg-Id          here
//	H17 lines in the log                     here
//	H18 output of tools                      here, tools/python
//	H19 labels of metrics                    here
//
// The files by what they attack with:
//
//	size_test.go, defaults_test.go, headers_test.go  the largest messages, results and header blocks
//	budget_test.go, manifest_test.go                 documents, schemas and manifests that cost too much to read
//	ids_test.go                                      ids that deceive, or that are subjects
//	canary_test.go, secret*_test.go                  values and secrets that must not be shown
//	flood_test.go, log_flood_test.go                 cancels, metric labels and log lines in large numbers
//	searches_test.go, deferral_budget_test.go        what one tenant can use up
//	api_test.go, turn_page_test.go                   the request API
//	usage*_test.go                                   measure CPU and memory
//
// H11 (references between steps) comes with plans, H16 (forged events) is a matter of rights
// on subjects: docs/permissions_test.go.
package hostile
