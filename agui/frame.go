package agui

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// appendFrame appends one event of a stream of server-sent events. The parts of AG-UI clients that read frames know line
// feeds only, so there are no carriage returns, and the data is one line.
func appendFrame(dst []byte, id string, data []byte) ([]byte, error) {
	if strings.ContainsAny(id, "\r\n\x00") {
		return dst, fmt.Errorf("the id %.50q of a frame has a line break or NUL", id)
	}
	if bytes.ContainsAny(data, "\r\n") {
		return dst, errors.New("the data of a frame has a line break")
	}
	if id != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...), nil
}
