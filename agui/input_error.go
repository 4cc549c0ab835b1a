package agui

import (
	"net/http"
	"strings"
)

// Codes of an [InputError].
const (
	CodeBadJSON            = "bad_json"            // not one JSON document, a key twice, or too deep
	CodeMissingField       = "missing_field"       // a required field is absent or empty
	CodeInvalidField       = "invalid_field"       // a field has another type or value than required
	CodeUnsupportedVersion = "unsupported_version" // another major version of AG-UI
	CodeTooLarge           = "too_large"           // more bytes or values than the limits allow
)

// InputError is why a request is refused. It names fields, but has no values of them except of protocolVersion.
type InputError struct {
	Code  string // one of the codes above
	Field string // for example messages[2].id; "" is the document
	Msg   string // what is wrong, and the fix
}

// Error implements error.
func (e *InputError) Error() string {
	var b strings.Builder
	b.WriteString("read the request: ")
	b.WriteString(e.Code)
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// memberError is an error of a value of a list, or of a member that is decoded on its own. The errors around it have the rest of
// the pointer.
type memberError struct {
	pointer   string
	code, msg string // of the [InputError]
	err       error  // in place of code and msg
}

func (e *memberError) Error() string {
	if e.err != nil {
		return e.pointer + ": " + e.err.Error()
	}
	return e.pointer + ": " + e.msg
}

func (e *memberError) Unwrap() error { return e.err }

// Status returns the HTTP status for the error.
func (e *InputError) Status() int {
	if e.Code == CodeTooLarge {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}
