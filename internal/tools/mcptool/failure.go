package mcptool

import (
	"fmt"

	"github.com/oneturn/oneturn/events"
)

// maxText bounds the text of an error of a server, in bytes.
const maxText = 1024

// unknown ends an error when the effect of the call is not known.
const unknown = "its effect may or may not have happened"

func failf(code events.Code, op, format string, args ...any) error {
	return &events.Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...)}
}
