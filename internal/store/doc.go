// Package store reads and writes what turns store outside the journal: large payloads and the documents of context
// variables.
//
// [Blobs] keeps payloads that are too large for a record in the object store (blobs.go, blobs_read.go,
// blobs_write.go; blob_chunks.go reads them chunk by chunk). [Documents] is the bucket of context variables
// (documents.go), whose rules are in package variables. Reads of documents are answered by the leader of a bucket. Blobs may
// be read from a replica, since their hash shows whether they are whole. [Retries] tries again until there is an outcome,
// [Context] bounds that by the lease of the message and the end of the worker, and [Refused] distinguishes what can never be
// stored (retry.go). [Shares] divides the room of the store among tenants (tenant_shares.go).
package store
