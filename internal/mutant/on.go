//go:build mutants

package mutant

import "os"

// Enabled reports whether faults can be planted in this build.
const Enabled = true

// Variable is the environment variable that names the fault in force.
const Variable = "ONETURN_MUTANT"

// Planted reports whether the fault is in force.
func Planted(n Name) bool { return os.Getenv(Variable) == string(n) }
