package model

import "strings"

// Reason says why arguments are refused, for the error messages of tools: of the first fault
// `bad_int:<path>` (bad_bool, bad_str) if a value is none where one is expected, as seed 003 has
// it, else `<path>: <what was expected>`. A path is the keys with slashes between them, nothing
// for the whole. Like a [Fault] it holds no value. It is empty if there are no faults.
func Reason(faults []Fault) string {
	if len(faults) == 0 {
		return ""
	}
	f := &faults[0]
	path := strings.TrimPrefix(f.Path, "/")
	if f.Rule == RuleType && path != "" {
		switch f.Expected {
		case "integer":
			return "bad_int:" + path
		case "boolean":
			return "bad_bool:" + path
		case "string":
			return "bad_str:" + path
		}
	}
	return strings.TrimPrefix(path+f.line(), ": ")
}

// Refused is the error of arguments that do not fit a model, or of a result.
type Refused struct { //nolint:errname // it is a verdict before it is an error
	Model  string // its name, for [Feedback]
	Faults []Fault
}

// Error implements error: [Reason].
func (r *Refused) Error() string { return Reason(r.Faults) }
