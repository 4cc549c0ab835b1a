// Package examples holds the files of the first example, for publisher example and publisher
// demo: they work without a clone of the repository.
package examples

import "embed"

// Hello is the folder 01-hello.
//
//go:embed 01-hello
var Hello embed.FS
