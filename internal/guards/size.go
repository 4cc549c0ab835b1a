package guards

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/internal/tools"
)

// size refuses what is too long as JSON.
type size struct{ most int }

func newSize(on string, most int) (check, error) {
	if most < 0 {
		return nil, refused("max_bytes", "write for example max_bytes: 64KiB", "invalid size %d on %s", most, on)
	}
	return size{most}, nil
}

func (s size) refuse(_ context.Context, _ *tools.Call, v *value) error {
	text, err := v.text()
	if err != nil {
		return &Refusal{Reason: v.name + " cannot be read by a guard", Err: err}
	}
	if len(text) > s.most {
		return &Refusal{Reason: fmt.Sprintf("%s may take %d bytes, here are %d", v.name, s.most, len(text))}
	}
	return nil
}
