package dotenv_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/dotenv"
)

var outer = []string{"OUTER=outer"}

func TestFilesAreReadAsPythonDotenvReadsThem(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "cases.json"))
	require.NoError(t, err)
	var cases []struct {
		Text   string            `json:"text"`
		Values map[string]string `json:"values"`
	}
	require.NoError(t, json.Unmarshal(data, &cases))
	require.NotEmpty(t, cases)
	for _, c := range cases {
		require.Equal(t, c.Values, read(t, c.Text), "%q", c.Text)
	}
}

func TestByteOrderMarkIsNotPartOfTheFirstName(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{"A": "b"}, read(t, "\ufeffA=b\n"))
}

func TestStatementsThatSetNothingAreNamedByLineWithoutWhatTheyHold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A=b\n\n=sesame":                 "3 has no name",
		"# c\nA='sesame\nB=c":            "2 the quote is not closed",
		"'sesame=b\nB=c":                 "1 the quote is not closed",
		"A='b\nc' sesame\nB=c":           "1 something follows the closing quote",
		"A=b\nsesame open\nB=c":          "2 is not an assignment",
		"A=-BEGIN-\nsesame\nB=c":         "2 a name without a value",
		"A=\"-BEGIN-\nsesame\n-END-\nB=": "1 the quote is not closed",
	} {
		f, err := dotenv.Parse([]byte(text))
		require.NoError(t, err)
		require.NotEmpty(t, f.Problems, "%q", text)
		p := f.Problems[0]
		line, words, _ := strings.Cut(want, " ")
		require.Equal(t, line, strconv.Itoa(p.Line), "%q", text)
		require.Contains(t, p.Message, words)
		require.NotEmpty(t, p.Fix)
		require.NotContains(t, p.Message+p.Fix, "sesame")
	}
}

func TestBytesThatNoVariableHoldsAreNamedByLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"A=b\nB=\xff": "line 2 is not UTF-8", "A=b\n\nB=c\x00d": "line 3 has a zero byte", "\xff\xfeA\x00": "line 1 is not UTF-8"} {
		_, err := dotenv.Parse([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

func TestReferencesFillNoMemory(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("A=" + strings.Repeat("x", 1000) + "\n")
	for range 60 {
		b.WriteString("A=${A}${A}\n")
	}
	for _, text := range []string{b.String(), "A=" + strings.Repeat("x", 1<<14) + "\nB=" + strings.Repeat("${A}", 1<<13)} {
		f, err := dotenv.Parse([]byte(text))
		require.NoError(t, err)
		_, err = f.Variables(nil)
		require.ErrorContains(t, err, "over 128 KiB")
	}
}

func FuzzEveryStatementSetsAVariableOrIsNamed(f *testing.F) {
	for _, seed := range []string{"A=b", "export A='b\\'c' # d", "A=\"b\nc\"\nB=${A:-d}", "'A'=b\r\nA", "=\n'"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > dotenv.MaxSize {
			return
		}
		file, err := dotenv.Parse(data)
		if err != nil {
			return
		}
		vars, err := file.Variables(outer)
		if err != nil {
			return
		}
		names := file.Names()
		require.Len(t, vars, len(names))
		for _, v := range vars {
			require.True(t, names[v.Name])
			require.NotContains(t, v.Name, "=")
		}
	})
}

func read(t *testing.T, text string) map[string]string {
	t.Helper()
	f, err := dotenv.Parse([]byte(text))
	require.NoError(t, err)
	vars, err := f.Variables(outer)
	require.NoError(t, err)
	values := make(map[string]string)
	for _, v := range vars {
		values[v.Name] = v.Value
	}
	return values
}
