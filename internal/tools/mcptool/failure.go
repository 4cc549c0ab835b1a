package mcptool

import (
	"fmt"

	"github.com/oneturn/oneturn/events"
)

// maxText bounds the text of an error of a server, in bytes.
const maxText = 1024

func failf(code events.Code, op, format string, args ...any) error {
	return &events.Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...)}
}
