package secrets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/secrets"
)

func TestPayloadSaysWhetherItAsksForASecret(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]bool{
		``:                                     false,
		`{}`:                                   false,
		`{"maskInput":true}`:                   true,
		`{"mask_input":true}`:                  true,
		`{"MaskInput":"true"}`:                 true,
		`{"password":true}`:                    true,
		`{"secret":true}`:                      true,
		`{"maskInput":false}`:                  false,
		`{"password":"hunter2"}`:               false,
		`{"secret":null}`:                      false,
		`{"secret":1}`:                         true,
		`{"secret":0}`:                         false,
		`{"secret":0e5}`:                       false,
		`{"password":1}`:                       true,
		`{"password":"yes"}`:                   true,
		`{"is-password": "1 "}`:                true,
		`{"mask-input":true}`:                  true,
		`{"masked":"yes"}`:                     true,
		`{"isPassword":true}`:                  true,
		`{"secureTextEntry":1}`:                true,
		`{"format":"password"}`:                true,
		`{"widget":"password"}`:                true,
		`{"ui:widget":"Password "}`:            true,
		`{"inputMode":"password"}`:             true,
		`{"variant":" PASSWORD\t"}`:            true,
		`{"type":["string","password"]}`:       true,
		`{"component":"PasswordInput"}`:        true,
		`{"autocomplete":"new-password"}`:      true,
		`{"p\u0061ssword":true}`:               true,
		`{"type":"\u0070\u0061\u0073sword"}`:   true,
		`{"component":"PasswordReset"}`:        false,
		`{"format":"date","title":"password"}`: false,
		`{"fields":[{"name":"a"},{"name":"b","type":"password"}]}`:                 true,
		`{"fields":{"key":{"label":"API key","maskInput":true}}}`:                  true,
		`{"form":{"sections":[{"fields":[{"name":"k","inputType":"password"}]}]}}`: true,
		`{"label":"your password","description":"a secret mask"}`:                  false,
		`{"type":"object"}`: false,
		`{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"secret":true}}}}}}}}`:                       true,
		`{"rows":[` + strings.Repeat(`{"a":1},`, 20_000) + `{"secret":true}],"mask":"x"}`: true,
	} {
		require.Equal(t, want, secrets.Asks([]byte(payload)), "%.80s", payload)
	}
}

// A model that fills a payload with data must not push the mark of a field out of sight.
func TestNoSizeOfAPayloadHidesASecretField(t *testing.T) {
	t.Parallel()
	const field = `"fields":[{"name":"api_key","type":"password"}]`
	for _, n := range []int{3, 9_990, 10_001, 90_000, 200_000} {
		payload := `{"services":["a"` + strings.Repeat(`,"a"`, n-1) + `],` + field + `}`
		require.True(t, secrets.Asks([]byte(payload)), "%d values", n)
	}
	for _, depth := range []int{1, 6, 7, 40, 200, 100_000} {
		payload := strings.Repeat(`{"a":[`, depth) + `{"password":true}` + strings.Repeat(`]}`, depth)
		require.True(t, secrets.Asks([]byte(payload)), "depth %d", depth)
	}
}

func TestWhatCannotBeReadAsksForASecret(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{"secret":true`, `{"type":"password","type":"text"}`, `{"n":1e9999999,"type":"password"}`, "{\"type\":\"password\",\"x\":\"\xff\"}", `{"type":"password"} {}`,
	} {
		require.True(t, secrets.Asks([]byte(payload)), payload)
	}
	require.False(t, secrets.Asks([]byte(`{"title":`)), "there is nothing that could be a mark")
}

func FuzzAsks(f *testing.F) {
	f.Add(`{"fields":[{"maskInput":true}]}`)
	f.Fuzz(func(t *testing.T, payload string) {
		first := secrets.Asks([]byte(payload))
		require.Equal(t, first, secrets.Asks([]byte(payload)), "the order of a map decides nothing")
	})
}

func BenchmarkAsksLargePayloadWithoutMask(b *testing.B) {
	payload := []byte(`{"rows":[` + strings.Repeat(`{"name":"a row of a table"},`, 10_000) + `0]}`)
	for b.Loop() {
		if secrets.Asks(payload) {
			b.Fatal(fmt.Errorf("%d bytes without a mask", len(payload)))
		}
	}
}
