package python

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzReplyNeverPanicsAndKeepsToItsLimit(f *testing.F) {
	const limit = 1 << 10
	f.Add(frame([]byte(`{"id":1,"value":[1],"set":{"a":1},"remove":["b"]}`)))
	f.Add(frame([]byte(`{"id":2,"error":{"code":"tool_error","type":"E","message":"m"}}`)))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readReply(bytes.NewReader(data), limit)
		if err != nil {
			return
		}
		require.LessOrEqual(t, binary.BigEndian.Uint32(data), uint32(limit))
		if _, err := r.result(); err != nil {
			require.NotEmpty(t, r.Set)
		}
		if r.Error != nil {
			require.Error(t, r.Error.toError("op", nil))
		}
	})
}
