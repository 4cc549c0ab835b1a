package model

import (
	"strconv"
	"strings"
)

// MaxViolations is how many violations one check reports at most.
const MaxViolations = 20

// Names of rules in a [Violation]: stable, named as in JSON Schema where it has one. Keywords
// that only the full schema check covers (for example `not`) appear under their own name.
const (
	RuleRequired             = "required"
	RuleType                 = "type"
	RuleEnum                 = "enum"
	RuleConst                = "const"
	RuleMinimum              = "minimum"
	RuleMaximum              = "maximum"
	RuleExclusiveMinimum     = "exclusiveMinimum"
	RuleExclusiveMaximum     = "exclusiveMaximum"
	RuleMultipleOf           = "multipleOf"
	RuleMinLength            = "minLength"
	RuleMaxLength            = "maxLength"
	RulePattern              = "pattern"
	RuleMinItems             = "minItems"
	RuleMaxItems             = "maxItems"
	RuleUniqueItems          = "uniqueItems"
	RuleMinProperties        = "minProperties"
	RuleMaxProperties        = "maxProperties"
	RuleAnyOf                = "anyOf"                // no alternative fits
	RuleAdditionalProperties = "additionalProperties" // a key that the schema does not know
	RuleTooComplex           = "too_complex"          // the check would take too long
)

// Violation is one reason why a value does not fit its model. It holds nothing of the value but
// names of keys that are short and printable.
type Violation struct {
	Path       string `json:"path"`                   // JSON pointer into the checked value, "" is the whole
	Rule       string `json:"rule"`                   // one of the Rule constants, or a JSON Schema keyword
	Expected   string `json:"expected"`               // as text
	GotType    string `json:"got_type"`               // JSON type, or "absent"
	Allowed    []any  `json:"allowed,omitempty"`      // values the manifest allows, for enum and const
	DidYouMean string `json:"did_you_mean,omitempty"` // the manifest's field name or value that was probably meant
}

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

// Summary returns what is wrong with a result, for messages: the first violation, as `/n: expected integer, got string`, and how many
// more there are. Like a [Violation] it contains no value. It is empty without violations.
func Summary(violations []Violation) string {
	if len(violations) == 0 {
		return ""
	}
	text := strings.TrimSuffix(violations[0].String(), ".")
	if more := len(violations) - 1; more > 0 {
		text += " (and " + strconv.Itoa(more) + " more)"
	}
	return text
}

// Refused is the error of arguments that do not fit a model, or of a result.
type Refused struct { //nolint:errname // it is a result before it is an error
	Model      string // its name, for [Feedback]
	Violations []Violation
}

// Error implements error: [Reason].
func (r *Refused) Error() string { return Reason(r.Violations) }
