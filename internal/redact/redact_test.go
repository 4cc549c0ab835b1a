package redact_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/internal/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleSet_JSON() {
	s := redact.New(redact.Options{Lines: true}, `it's "secret"`)
	fmt.Println(string(s.JSON(json.RawMessage(`{"text":"it's \u0022secret\u0022","n":1}`))))
	// Output: {"text":"[secret]","n":1}
}

func TestSecretIsFoundHoweverAStringIsEscaped(t *testing.T) {
	t.Parallel()
	s := redact.New(redact.Options{Lines: true}, `a&"b/c`, "short", "abc")
	for value, want := range map[string]string{
		`"x a&\"b/c y"`:                `"x [secret] y"`,
		`"a\u0026\u0022b\/c"`:          `"[secret]"`,
		`["\u0073hort",{"short":1}]`:   `["[secret]",{"[secret]":1}]`,
		`{"a":"abc","b":"\\\"","c":2}`: `{"a":"abc","b":"\\\"","c":2}`,
		`[]`:                           `[]`,
		`"\\"`:                         `"\\"`,
		`12`:                           `12`,
	} {
		require.Equal(t, want, string(s.JSON(json.RawMessage(value))))
	}
}

func TestValueStaysJSONWhateverTheSecretIs(t *testing.T) {
	t.Parallel()
	value := `{"ok":true,"n":12345,"text":"true 12345"}`
	require.JSONEq(t, `{"ok":true,"n":12345,"text":"[secret] [secret]"}`, string(redact.New(redact.Options{Lines: true}, "true", "12345").JSON(json.RawMessage(value))))
	require.JSONEq(t, value, string(redact.Set{}.JSON(json.RawMessage(value))))
}

func TestEachLineOfASecretIsOne(t *testing.T) {
	t.Parallel()
	s := redact.New(redact.Options{Lines: true}, "line one\r\nline two\n")
	require.Equal(t, "[secret], [secret]", s.Text("line two, line one"))
	require.Equal(t, "[secret]", s.Text("line one\r\nline two"))
}

func FuzzValueStaysJSON(f *testing.F) {
	f.Add(`{"a":"b\u0022\\"}`, "true", `b"\`)
	f.Add(`["\ud83d\ude00",1e5]`, "😀", "1e5a")
	f.Fuzz(func(t *testing.T, value, one, other string) {
		if !json.Valid([]byte(value)) {
			return
		}
		require.True(t, json.Valid(redact.New(redact.Options{Lines: true}, one, other).JSON(json.RawMessage(value))))
	})
}
