package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 7_000_000, time.UTC)

func mustDecode(tb testing.TB, doc string) any {
	tb.Helper()
	v, err := events.Decode([]byte(doc))
	require.NoError(tb, err)
	return v
}

func mustAppend(tb testing.TB, v any) string {
	tb.Helper()
	b, err := events.AppendJSON(nil, v)
	require.NoError(tb, err)
	return string(b)
}

// nest returns n arrays inside each other.
func nest(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// nested is the same as a value tree.
func nested(n int) any {
	var v any = []any{}
	for range n - 1 {
		v = []any{v}
	}
	return v
}

func number(s string) json.Number { return json.Number(s) }
