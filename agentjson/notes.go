package agentjson

// What a reader had to do to get at an object: names that are part of the wire contract, since
// they are stored with the message. Sets of them are bits while reading, and lists in a fixed
// order afterwards.

// Repair names one kind of deviation from JSON that was repaired. None changes a string value.
type Repair string

// The repairs.
const (
	TrailingComma     Repair = "trailing_comma"     // one comma before a closing bracket
	MissingComma      Repair = "missing_comma"      // before a member on white space, or between objects of a list
	Comment           Repair = "comment"            // //, /* */ and #
	SingleQuotes      Repair = "single_quotes"      // 'text'
	SmartQuotes       Repair = "smart_quotes"       // “text”
	EscapedApostrophe Repair = "escaped_apostrophe" // \' in double quotes
	PythonLiteral     Repair = "python_literal"     // True, False, None
	UnquotedKey       Repair = "unquoted_key"       // a name as in JavaScript before a colon
	RawNewline        Repair = "raw_newline"        // a line break or tab inside a string, kept as it is
	NumberForm        Repair = "number_form"        // +1, .5, 5.
	FullWidth         Repair = "fullwidth"          // ： and ， between values
	Invisible         Repair = "invisible"          // no-break and zero-width space between values
)

// Surrounding names something around the object that was dropped or unwrapped.
type Surrounding string

// The surroundings.
const (
	Prose   Surrounding = "prose"  // any other text
	Fence   Surrounding = "fence"  // ``` or ~~~
	Prefix  Surrounding = "prefix" // the word json before the object, and nothing else
	Think   Surrounding = "think"  // thoughts of the model
	BOM     Surrounding = "bom"    // a byte order mark
	List    Surrounding = "list"   // the object was the only element of a list
	Encoded Surrounding = "string" // the object was encoded as a string
)

// Warning names something that is valid and yet looks wrong.
type Warning string

// SuspectEscape warns of \f or \b before a letter: an escape of JSON that was probably meant as a
// command of LaTeX, such as \frac. The value has the form feed or backspace of JSON.
const SuspectEscape Warning = "suspect_escape"

// set is a set of repairs or of surroundings, one bit for each place in its list.
type set uint16

func (s *set) add(bits set) { *s |= bits }

// Bits of repairs, in the order of [repairNames].
const (
	trailingComma set = 1 << iota
	missingComma
	comment
	singleQuotes
	smartQuotes
	escapedApostrophe
	pythonLiteral
	unquotedKey
	rawNewline
	numberForm
	fullWidth
	invisible
)

func repairNames() []Repair {
	return []Repair{
		TrailingComma, MissingComma, Comment, SingleQuotes, SmartQuotes, EscapedApostrophe,
		PythonLiteral, UnquotedKey, RawNewline, NumberForm, FullWidth, Invisible,
	}
}

// Bits of surroundings, in the order of [surroundingNames].
const (
	prose set = 1 << iota
	fence
	prefix
	think
	bom
	list
	encoded
)

func surroundingNames() []Surrounding {
	return []Surrounding{Prose, Fence, Prefix, Think, BOM, List, Encoded}
}

// names lists what is in s.
func names[T any](s set, all []T) []T {
	var in []T
	for i, name := range all {
		if s&(1<<i) != 0 {
			in = append(in, name)
		}
	}
	return in
}
