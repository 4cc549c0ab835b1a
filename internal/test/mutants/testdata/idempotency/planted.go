package idempotency

import "os"

// planted reports whether a fault is planted. It is not inlined, so that a test finds the name in the binary.
//
//go:noinline
func planted(name string) bool { return os.Getenv("ONETURN_MUTANT") == name }
