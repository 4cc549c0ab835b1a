// Package examples embeds the files of the first examples: publisher example prints turns of
// 01-hello without a clone of the repository, and examples/demo runs the workflows of both.
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
