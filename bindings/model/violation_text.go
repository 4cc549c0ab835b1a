package model

import "strings"

// Reason returns why arguments are refused, for the error messages of tools: of the first violation
// `bad_int:<path>` (bad_bool, bad_str) if an integer, boolean or text is expected, else
// `<path>: <what was expected>`. A path is the keys with slashes between them, nothing for the whole.
// Like a [Violation] it contains no value. It is empty without violations.
func Reason(violations []Violation) string {
	if len(violations) == 0 {
		return ""
	}
	f := &violations[0]
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
type Refused struct { //nolint:errname // it is a result before it is an error
	Model      string // its name, for [Feedback]
	Violations []Violation
}

// Error implements error: [Reason].
func (r *Refused) Error() string { return Reason(r.Violations) }
