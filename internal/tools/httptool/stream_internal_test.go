package httptool

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzStreamIsReadToItsEnd: whatever a server sends, each event costs bytes, and what is read of
// the stream is in it.
func FuzzStreamIsReadToItsEnd(f *testing.F) {
	f.Add([]byte("event: progress\ndata: {}\n\nevent: result\r\ndata:1\r\ndata: 2\r\n\r\n"))
	f.Add([]byte(":\n\n\n\ndata\n\nevent:\n:x\nid: 7\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReader(bytes.NewReader(stream))
		for events := 0; ; events++ {
			name, data, err := next(r)
			if err != nil {
				require.LessOrEqual(t, events, len(stream)/2)
				return
			}
			require.Contains(t, string(stream), name)
			for line := range bytes.SplitSeq(data, []byte("\n")) {
				require.True(t, bytes.Contains(stream, line))
			}
		}
	})
}
