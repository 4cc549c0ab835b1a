package cli

import (
	"io"
	"log" //nolint:depguard // to silence it
)

// Quiet silences the standard logger of Go. Nothing of the product writes to it, but net/http does:
// bytes that an endpoint sends without being asked, which may be anything.
func Quiet() { log.SetOutput(io.Discard) }
