package cli

import (
	"io"
	"log" //nolint:depguard // to silence it
)

// Quiet silences the standard logger of Go. The product does not use it, but net/http logs
// unexpected bytes of an endpoint to it, which may be anything.
func Quiet() { log.SetOutput(io.Discard) }
