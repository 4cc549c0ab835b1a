package tools

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type base struct {
	ID int `json:"id"`
}

type upper string

func (u *upper) UnmarshalJSON(data []byte) error {
	if string(data) == `"bad"` {
		return errors.New("bad")
	}
	*u = upper("<" + string(data) + ">")
	return nil
}

type level int

func (l *level) UnmarshalText(text []byte) error {
	*l = level(len(text))
	return nil
}

// everything has a field for each rule of encoding/json that another decoder could see
// differently.
type everything struct {
	base

	Name     string
	Tagged   string           `json:"a_name"`
	Quoted   int              `json:"quoted,string"`
	Hidden   string           `json:"-"`
	Small    int8             `json:"small"`
	Float    float32          `json:"float"`
	Bytes    []byte           `json:"bytes"`
	Pair     [2]int           `json:"pair"`
	List     []string         `json:"list"`
	Next     *everything      `json:"next"`
	Map      map[string]int   `json:"map"`
	ByNumber map[int]bool     `json:"by_number"`
	ByLevel  map[level]string `json:"by_level"`
	Raw      json.RawMessage  `json:"raw"`
	At       time.Time        `json:"at"`
	For      time.Duration    `json:"for"`
	Upper    upper            `json:"upper"`
	Level    level            `json:"level"`
}

func TestArgumentsAreDecodedByTheRulesOfEncodingJSON(t *testing.T) {
	t.Parallel()
	decode := decoderFor(reflect.TypeFor[everything]())
	for _, data := range []string{
		`{}`, `null`, `[]`, `"x"`, `{"id":7,"NAME":"folded","A_Name":"folded","unknown":{"a":[1]}}`,
		`{"Name":null,"small":null,"list":null,"next":null,"map":null,"pair":null,"raw":null,"at":null,"upper":null}`,
		`{"quoted":"12"}`, `{"quoted":12}`, `{"quoted":"x"}`, `{"Hidden":"x","-":"y"}`,
		`{"small":127}`, `{"small":128}`, `{"small":1.0}`, `{"small":1e2}`, `{"small":"1"}`, `{"float":1e300}`, `{"float":0.1}`,
		`{"bytes":"aGk="}`, `{"bytes":"aGk"}`, `{"bytes":[104,105]}`, `{"pair":[1]}`, `{"pair":[1,2,3]}`, `{"pair":[]}`,
		`{"list":[]}`, `{"list":["a",null]}`, `{"list":["a",1]}`, `{"list":{}}`, `{"next":{"next":{"Name":"deep"}}}`,
		`{"map":{"a":1,"b":null}}`, `{"by_number":{"1":true,"-2":false}}`, `{"by_number":{"x":true}}`, `{"by_level":{"abc":"x"}}`,
		`{"raw":{"b":1,"a":[2]}}`,
		`{"at":"2026-01-02T03:04:05.678Z"}`, `{"at":"2026-01-02"}`, `{"for":1500}`, `{"for":"1.5s"}`,
		`{"upper":"good"}`, `{"upper":"bad"}`, `{"upper":[1]}`, `{"level":"abc"}`, `{"level":3}`, `{"id":"x"}`,
	} {
		var want, got everything
		wantErr := json.Unmarshal([]byte(data), &want) //nolint:musttag // a name without tag is one of the cases
		gotErr := decode([]byte(data), &got)
		require.Equal(t, wantErr == nil, gotErr == nil, "%s: %v, but encoding/json: %v", data, gotErr, wantErr)
		if wantErr == nil {
			require.Equal(t, want, got, data)
		}
	}
}

func TestDecodedArgumentsShareNoBytesWithTheirJSON(t *testing.T) {
	t.Parallel()
	data := []byte(`{"Name":"a name","raw":{"a":1}}`)
	var got everything
	require.NoError(t, decoderFor(reflect.TypeFor[everything]())(data, &got))
	clear(data)
	require.Equal(t, everything{Name: "a name", Raw: json.RawMessage(`{"a":1}`)}, got)
}

func TestNumbersWithoutTypeAreJSONNumbers(t *testing.T) {
	t.Parallel()
	type deep struct {
		Items []struct {
			Value any         `json:"value"`
			Exact json.Number `json:"exact"`
		} `json:"items"`
	}
	var got deep
	require.NoError(t, decoderFor(reflect.TypeFor[deep]())([]byte(`{"items":[{"value":[1.50],"exact":1.50}]}`), &got))
	require.Equal(t, []any{json.Number("1.50")}, got.Items[0].Value)
	require.Equal(t, json.Number("1.50"), got.Items[0].Exact)
	require.False(t, holdsNumber(reflect.TypeFor[everything](), map[reflect.Type]bool{}))
	for _, with := range []reflect.Type{
		reflect.TypeFor[any](), reflect.TypeFor[map[string]any](), reflect.TypeFor[*[3]error](), reflect.TypeFor[map[any]int](), reflect.TypeFor[[]json.Number](),
	} {
		require.True(t, holdsNumber(with, map[reflect.Type]bool{}), with)
	}
}
