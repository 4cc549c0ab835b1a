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
	return path + f.line()
}
