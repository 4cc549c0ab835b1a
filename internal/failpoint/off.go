//go:build !failpoints

package failpoint

// Enabled reports whether failpoints are compiled in.
const Enabled = false

// Hit is a point of a turn with an effect.
func Hit(_, _, _ string) {}

// Before is a write about to be sent. An error means: report it as unknown and send nothing.
func Before(string) error { return nil }

// After is a write that was stored. An error means: report it as unknown.
func After(string) error { return nil }
