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
		``:                       false,
		`{}`:                     false,
		`{"maskInput":true}`:     true,
		`{"mask_input":true}`:    true,
		`{"MaskInput":"true"}`:   true,
		`{"password":true}`:      true,
		`{"secret":true}`:        true,
		`{"maskInput":false}`:    false,
		`{"password":"hunter2"}`: false,
		`{"secret":null}`:        false,
		`{"secret":1}`:           false,
		`{"fields":[{"name":"a"},{"name":"b","type":"password"}]}`:                 true,
		`{"fields":{"key":{"label":"API key","maskInput":true}}}`:                  true,
		`{"form":{"sections":[{"fields":[{"name":"k","inputType":"password"}]}]}}`: true,
		`{"label":"your password","description":"a secret mask"}`:                  false,
		`{"type":"object"}`: false,
		`{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"secret":true}}}}}}}}`: false,
		`{"secret":true`: false,
		`{"rows":[` + strings.Repeat(`{"a":1},`, 20_000) + `{"secret":true}],"mask":"x"}`: false,
	} {
		require.Equal(t, want, secrets.Asks([]byte(payload)), "%.80s", payload)
	}
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
