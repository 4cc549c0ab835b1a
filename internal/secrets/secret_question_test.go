package secrets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/secrets"
)

func TestPayloadMarksAQuestionForASecret(t *testing.T) {
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

// Each frontend has other marks for a field that hides typed text; names are spelt as the
// language of the tool has it.
func TestMarksOfPasswordFieldsAreKnown(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		`"type":"password"`, `"type":"PASSWORD"`, `"attrs":{"input_type":"PASSWORD"}`, `"type":{"name":"password"}`, `"type":["null",{"id":"password"}]`, // HTML
		`"autocomplete":"current-password"`, `"autoComplete":"new-password"`, `"auto-complete":"one-time-code"`, `"autocomplete":"section-a cc-csc current-password"`, `"autocomplete":"cc-csc"`, `"autocomplete":"section-a cc-csc"`,
		`"obscureText":true`, `"obscure_text":true`, `"obscuringCharacter":"•"`, `"keyboardType":"visiblePassword"`, // Flutter
		`"inputType":"textPassword"`, `"android:inputType":"text|numberPassword"`, `"input_type":"textWebPassword"`, `"android:inputType":129`, `"inputType":"0x81"`, `"inputType":524433`, `"inputType":18`, // Android
		`"visualTransformation":"PasswordVisualTransformation"`, `"android:password":"true"`, `"autofillHints":["password"]`,
		`"echoMode":"Password"`, `"echo_mode":"NoEcho"`, `"echoMode":"QLineEdit.PasswordEchoOnEdit"`, `"echoMode":2`, `"inputMethodHints":"ImhHiddenText"`, // Qt
		`"component":"Input.Password"`, `"x-component":"Password"`, `"component":"a-input-password"`, // Ant Design
		`"show-password":true`, `"showPassword":true`, `"show_password":"true"`, // Element
		`"ui:widget":"password"`, `"ui:widget":"PasswordWidget"`, `"uiSchema":{"key":{"ui:options":{"inputType":"password"}}}`, `"options":{"format":"password"}`, // JSON Schema forms
		`"schema":{"properties":{"key":{"type":"string","writeOnly":true}}}`, `"write_only":true`, `"format":"password"`, `"x-secret":true`, `"x-sensitive":true`, `"x-descriptors":["urn:alm:descriptor:com.tectonic.ui:password"]`,
		`"kind":"SecureField"`, `"view":{"type":"secure_field"}`, `"textContentType":"oneTimeCode"`, `"isSecureTextEntry":true`, // SwiftUI, UIKit
		`"secureTextEntry":true`, `"secure-text-entry":"true"`, `"props":{"textContentType":"newPassword"}`, // React Native
		`"type":"Input.Text","style":"Password"`, `"style":"password"`, // Adaptive Cards
		`"class":"PasswordBox"`, `"PasswordChar":"*"`, `"UseSystemPasswordChar":true`, `"InputScope":"Password"`, `"toggleMask":true`, `"inputPurpose":"PASSWORD"`, `"show":"*"`, `"mask":"*"`, `"maskChar":"●"`,
		`"hide_input":true`, `"is_password":true`, `"no_echo":true`, `"echo":false`, `"echo":"off"`, `"concealed":true`, `"sensitive":true`, `"style":{"-webkit-text-security":"disc"}`,
		`"type":"secret_key"`, `"type":"passwordInputField"`, `"type":"p\u0061ssword"`, `"type":"раssword"`, `"type":"\u0440\u0430ssword"`, `"type":"ｐａｓｓｗｏｒｄ"`, `"type":"pass\u200bword"`,
		`"props":[{"name":"type","value":"password"}]`, `"attributes":[{"key":"maskInput","value":true}]`,
		`"html":"<input name='k' type='password'>"`, `"html":"<label>Key</label><INPUT TYPE=password />"`, `"jsx":"<TextInput secureTextEntry />"`, `"jsx":"<TextField secret={true}/>"`, `"vue":"<el-input v-model=\"k\" show-password></el-input>"`, `"xaml":"<PasswordBox/>"`,
		`"spec":"{\"fields\":[{\"type\":\"password\"}]}"`,
	} {
		for _, form := range []string{`{%s}`, `{"form":{"steps":[{"fields":{"k":[{"label":"Key",%s}]}}]}}`} {
			require.True(t, secrets.Asks(fmt.Appendf(nil, form, field)), field)
		}
	}
}

func TestComponentThatHidesWhatIsTypedAsksForASecret(t *testing.T) {
	t.Parallel()
	for component, want := range map[string]bool{
		"PasswordInput": true, "SecureField": true, "Input.Password": true, "password-prompt": true, "ApiSecretForm": true,
		"": false, "InputText": false, "AgentAPIKeyInput": false, "PasswordReset": false, "SecretaryPicker": false,
	} {
		require.Equal(t, want, secrets.AsksAs(component, nil, []byte(`{"label":"Key"}`)), component)
	}
	require.True(t, secrets.AsksAs("Form", nil, []byte(`{"writeOnly":true}`)))
}

// A worker without keys must be able to ask a question that is not secret.
func TestWhatOnlySoundsLikeAMarkIsNone(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		`"caseSensitive":true`, `"case_insensitive":true`, `"mask":"(999) 999-9999"`, `"mask":"99/99/9999"`, `"subnetMask":"255.255.255.0"`, `"bitmask":7`, `"unmasked":true`, `"insecure":true`,
		`"mode":"passwordless"`, `"role":"secretary"`, `"type":"text"`, `"inputType":"textEmailAddress"`, `"inputType":1`, `"inputType":33`, `"echoMode":0`, `"echoMode":"Normal"`, `"echo":true`, `"show":"all"`,
		`"obscureText":false`, `"showPassword":false`, `"writeOnly":false`, `"secureTextEntry":"false"`, `"style":"email"`, `"autocomplete":"off"`, `"autocomplete":"one-time-offer"`,
		`"label":"Type your password as type=password"`, `"html":"<p>Never send a password or a secret</p>"`, `"html":"a < b, password > c"`, `"required_mark":"*"`, `"type":"hidden"`, `"name":"type","value":"text"`, `"text":"{\"type\":\"text\"}"`,
		`"properties":{"secret":{"type":"string"}}`,
	} {
		require.False(t, secrets.Asks([]byte(`{"fields":[{`+field+`}]}`)), field)
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
