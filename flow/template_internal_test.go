package flow

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// render writes a template so that a test can compare it: paths between angle brackets.
func render(t template) string {
	var b strings.Builder
	for _, f := range t {
		if f.path != nil {
			b.WriteString("<" + strings.Join(f.path, "/") + ">")
			continue
		}
		b.WriteString(f.text)
	}
	return b.String()
}

func TestTemplatesAreTextAndPaths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		"no braces":                "no braces",
		"{{a}}":                    "<a>",
		"{{ .a.b }}":               "<a/b>",
		"{{\n result.k.0.x-y \t}}": "<result/k/0/x-y>",
		"x {{a}} y {{ b }} z":      "x <a> y <b> z",
		"{{a}}{{b}}":               "<a><b>",
		`\{{ a }}`:                 "{{ a }}",
		`\{{ a }} {{b}}`:           "{{ a }} <b>",
		"} } {":                    "} } {",
		"closed }} only":           "closed }} only",
		"{ {a} }":                  "{ {a} }",
		"{{ größe.schön }}":        "<größe/schön>",
		"{{ @id }}":                "<@id>",
	} {
		parsed, err := parseTemplate(text, maxReferences)
		require.NoError(t, err, text)
		require.Equal(t, want, render(parsed), text)
	}
	for _, text := range []string{
		"{{", "{{ a", "{{}}", "{{ }}", "{{ . }}", "{{ a..b }}", "{{ a. }}", "{{ a b }}", `{{ "a" }}`, "{{ a|b }}", "{{ (a) }}",
		"{{ f() }}", "{{{ a }}}", "{{# if }}", "{{/x}}", "{{ a[0] }}", "{{ a\x00 }}", "{{ $a }}",
		"{{ " + strings.Repeat("a.", maxSegments) + "a }}",
	} {
		_, err := parseTemplate(text, maxReferences)
		require.Error(t, err, text)
	}
}

func TestReferencesAreWholeTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$0.output":            "0",
		"$0.output.a":          "0/a",
		"$007.output.a.b":      "7/a/b",
		"$0.output..":          "0//",
		"$0.output.a.output.b": "0/a/output/b",
	} {
		require.True(t, isReference(text), text)
		ref, err := parseReference(text)
		require.NoError(t, err, text)
		require.Equal(t, want, strings.Join(append([]string{itoa(ref.call)}, ref.path...), "/"))
	}
	ref, err := parseReference("$0.output. a b ")
	require.NoError(t, err)
	require.Equal(t, []string{" a b "}, ref.path, "spaces belong to the name")
	for _, text := range []string{
		"$x.output.a", "$.output.a", "$0.output.", "${0.output.a}", "$-1.output.a", "$1.5.output.a", "$٠.output.a", "$0x.output.a",
		"$99999999999999999999.output", "$0.output.a\nb", "$ 0.output.a", "$0.outputs.output.a",
		"$0.output." + strings.Repeat("a.", maxSegments) + "a",
	} {
		require.True(t, isReference(text), text)
		_, err := parseReference(text)
		require.Error(t, err, text)
	}
	for _, text := range []string{"", "$", "$0", "$0.output2", "$x.output", "0.output.a", " $0.output.a", "$0.outputs.a"} {
		require.False(t, isReference(text), text)
	}
}

func itoa(n int) string { return string(rune('0' + n)) }

func FuzzTemplate(f *testing.F) {
	f.Add("x {{ a.b }} \\{{ y")
	f.Add("{{{{}}")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseTemplate(text, maxReferences)
		if err != nil || parsed.references() > 0 {
			return
		}
		require.Equal(t, strings.ReplaceAll(text, `\{{`, "{{"), render(parsed), "a text without references stays as it is")
	})
}

func FuzzReference(f *testing.F) {
	f.Add("$0.output.a")
	f.Add("$$0.output")
	f.Fuzz(func(t *testing.T, text string) {
		if !isReference(text) {
			return
		}
		ref, err := parseReference(text)
		if err == nil {
			require.LessOrEqual(t, len(ref.path), maxSegments)
			require.GreaterOrEqual(t, ref.call, 0)
			require.False(t, isEscaped(text))
		}
	})
}
