package model

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
