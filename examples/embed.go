// Package examples holds the files of the first examples, for publisher example and publisher
// demo: they work without a clone of the repository.
package examples

import "embed"

// Hello is the folder 01-hello.
//
//go:embed 01-hello
var Hello embed.FS

// Approval is the folder of workflows of 02-approval.
//
//go:embed 02-approval/workflows
var Approval embed.FS
