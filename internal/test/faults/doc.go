// Package faults holds the fault rows that need neither killed processes (package crash) nor
// broken servers and networks (package chaos): storms of duplicates, damaged records, poison,
// lost rights and credentials, deploys. docs/faults.md lists every row with its tests.
//
//	main_test.go         the server and workers of a test, and what is checked at its end
//	duplicates_test.go   a turn that is published many times, with other data, or out of order
//	messages_test.go     messages of one chat, published at the same time over several connections
//	record_test.go       damaged and expired records, a journal with a size limit
//	poison_test.go       messages that cannot be handled, tools that crash
//	late_result_test.go  a tool that returns after its timeout
//	questions_test.go    many open questions
//	credentials_test.go  credentials that expire or are revoked
//	deploy_test.go       rolling restarts, manifests that change
package faults
