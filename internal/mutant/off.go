//go:build !mutants

package mutant

// Enabled reports whether faults can be planted in this build.
const Enabled = false

// Planted reports whether the fault is in force: never in this build.
func Planted(Name) bool { return false }
