// Package catalog is the list of workflows that the workers of an installation have, for processes without manifests, such
// as a gateway for browsers. It is a KV bucket with a small record for each workflow and pool, which workers write and which
// the server drops a week after its last write: a workflow that no worker has any more vanishes by itself.
//
// The list decides nothing. A worker resolves each turn by its own manifests, and works as well without the bucket.
//
//   - workflow.go: [Workflow], and the record of it
//   - bucket.go: reads and writes the bucket
//   - announcer.go: [Announcer] keeps the records of a worker
//   - workflows.go: [Workflows] reads the list, and keeps what it has read while no server answers
package catalog
