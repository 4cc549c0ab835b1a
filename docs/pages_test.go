package docs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
)

// pages are all texts for users, relative to this folder.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "notes/*.md", "../README.md", "../CHANGELOG.md", "../examples/*/README.md", "../clients/*/README.md"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			found[name] = string(data)
		}
	}
	return found
}

// block is a fenced block of a page.
type block struct {
	lang string
	text string
	line int // of its first line, from 1
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// blocks returns the fenced blocks of a page in order.
func blocks(t *testing.T, name string) []block {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	var found []block
	for _, m := range fence.FindAllSubmatchIndex(data, -1) {
		found = append(found, block{string(data[m[2]:m[3]]), string(data[m[4]:m[5]]), bytes.Count(data[:m[4]], []byte("\n")) + 1})
	}
	return found
}

// fenced returns the blocks of one language.
func fenced(t *testing.T, name, lang string) []block {
	t.Helper()
	return slices.DeleteFunc(blocks(t, name), func(b block) bool { return b.lang != lang })
}

// prose is a page without its fenced blocks.
func prose(text string) string { return fence.ReplaceAllString(text, "") }

// anchors of a page: of its headings, as GitHub makes them, and those that it names itself, which stay when a
// heading changes.
func anchors(text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(prose(text), -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		found = append(found, strings.ReplaceAll(plain, " ", "-"))
	}
	for _, m := range regexp.MustCompile(`(?m)^<a id="([a-z0-9-]+)"></a>$`).FindAllStringSubmatch(prose(text), -1) {
		found = append(found, m[1])
	}
	return found
}

func TestLinksOfAllPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`).FindAllStringSubmatch(prose(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := filepath.Join(filepath.Dir(name), filepath.FromSlash(m[1]))
			if m[1] == "" {
				target = name
			}
			require.NoError(t, func() error { _, err := os.Stat(target); return err }(), "%s: %s", name, m[0])
			if m[2] == "" {
				continue
			}
			data, err := os.ReadFile(target)
			require.NoError(t, err)
			require.Contains(t, anchors(string(data)), m[2], "%s: %s", name, m[0])
		}
	}
}

// TestTextsOfLinksNameTheFilesOfTheirTargets finds links that follow a moved file while their text does not.
func TestTextsOfLinksNameTheFilesOfTheirTargets(t *testing.T) {
	t.Parallel()
	found := 0
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile("\\[`?([^\\]`\\s]+\\.(?:go|py|md))`?\\]\\(([^)#\\s]+)").FindAllStringSubmatch(prose(text), -1) {
			found++
			require.True(t, strings.HasSuffix("/"+m[2], "/"+m[1]), "%s: %s leads to %s", name, m[1], m[2])
		}
	}
	require.Greater(t, found, 100)
}

// TestNoPagePromisesMoreOfAToolThanThePromise keeps a phrase that is often misread next to what
// it means here.
func TestNoPagePromisesMoreOfAToolThanThePromise(t *testing.T) {
	t.Parallel()
	for name, text := range pages(t) {
		if strings.Contains(strings.ToLower(strings.ReplaceAll(text, "\n", " ")), "exactly once") {
			require.Contains(t, text, "entered at most once", name)
		}
	}
}

// documentedCommands are the commands with a help text of their flags.
var documentedCommands = []string{
	"worker", "worker version", "gateway", "gateway version", "publisher publish", "publisher message", "publisher answer", "publisher cancel", "publisher example", "publisher version",
	"turnctl check", "turnctl show", "turnctl retry", "turnctl ls", "turnctl provision", "turnctl doctor", "turnctl version",
	"turnctl dead ls", "turnctl dead show", "turnctl dead redrive", "turnctl dead drop", "turnctl repair",
	"turnctl questions ls", "turnctl questions show", "turnctl questions expire", "turnctl questions cancel",
	"turnctl tools ls", "turnctl tools pin", "turnctl call", "turnctl plan check", "turnctl handoff explain", "turnctl handoff eval", "turnctl nats-config",
}

func TestFlagsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	known := map[string]map[string]bool{"": {}} // "" = any command
	flag := regexp.MustCompile(`--([a-z][a-z-]*[a-z])`)
	for _, c := range documentedCommands {
		help := helpOf(t, c)
		known[c] = map[string]bool{}
		_, flags, _ := strings.Cut(help, "Flags:")
		for _, m := range flag.FindAllStringSubmatch(flags, -1) {
			known[c][m[1]], known[""][m[1]] = true, true
		}
	}
	call := regexp.MustCompile(`^(?:bin/)?(worker|gateway|publisher|turnctl)(?: (publish|message|answer|cancel|example|check|show|retry|ls|provision|doctor|version|repair|call|nats-config|tools (?:ls|pin)|plan (?:check)|handoff (?:explain|eval)|dead (?:ls|show|redrive|drop)|questions (?:ls|show|expire|cancel)))?\b(.*)$`)
	for name, text := range pages(t) {
		var lines []string
		for _, b := range blocks(t, name) {
			if b.lang == "sh" {
				lines = append(lines, strings.FieldsFunc(b.text, func(r rune) bool { return r == '\n' || r == '|' })...)
			}
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(prose(text), -1) {
			lines = append(lines, m[1])
		}
		for _, line := range lines {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			c := ""
			if m := call.FindStringSubmatch(line); m != nil {
				c = strings.TrimSpace(m[1] + " " + m[2])
			} else if !strings.HasPrefix(line, "--") {
				continue // another program's
			}
			for _, m := range flag.FindAllStringSubmatch(line, -1) {
				require.True(t, known[c] != nil && known[c][m[1]], "%s: %q: %q has no --%s", name, line, c, m[1])
			}
		}
	}
}

// TestTestsThatPagesCiteExist checks that each cited test is in the file of the link before it, in the same line or list
// item.
func TestTestsThatPagesCiteExist(t *testing.T) {
	t.Parallel()
	cited := 0
	for name, text := range pages(t) {
		file := ""
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "  ") { // not the continuation of a list item
				file = ""
			}
			for _, m := range regexp.MustCompile("\\]\\(([^)]+_test\\.go)\\)|`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(line, -1) {
				if m[1] != "" {
					data, err := os.ReadFile(filepath.Join(filepath.Dir(name), m[1]))
					require.NoError(t, err)
					file = string(data)
					continue
				}
				cited++
				require.Contains(t, file, "func "+m[2]+"(t *testing.T)", "%s: %s", name, m[2])
			}
		}
	}
	require.Greater(t, cited, 20)
}

// TestGoOfThePagesIsRunAsATest finds each Go block, to the letter, in a Go file.
func TestGoOfThePagesIsRunAsATest(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, pattern := range []string{"*_test.go", "../examples/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			code.Write(data)
		}
	}
	for name := range pages(t) {
		for _, b := range fenced(t, name, "go") {
			require.Contains(t, code.String(), b.text, "%s:%d", name, b.line)
		}
	}
}

// TestJSONOfThePagesMatchesTheSchemas decodes every JSON block, as an event if it is one; plans are checked where they run.
func TestJSONOfThePagesMatchesTheSchemas(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name := range pages(t) {
		for _, b := range fenced(t, name, "json") {
			tree, err := events.Decode([]byte(b.text))
			require.NoError(t, err, "%s:%d", name, b.line)
			if object, _ := tree.(map[string]any); object["type"] == "tool_calls" || object["type"] == "direct_response" {
				continue // a plan
			}
			m, err := events.Parse([]byte(b.text))
			require.NoError(t, err, "%s:%d", name, b.line)
			if m.Kind == "" { // not an event
				continue
			}
			seen[m.Kind] = true
			requireSchema(t, "envelope", tree)
			requireSchema(t, m.Kind, m.Data)
		}
	}
	for _, kind := range []string{
		events.KindStructuredOutputReady, events.KindCancel, events.KindToolCall, events.KindToolResponse, events.KindTurnConflict,
		events.KindToolCallAck, events.KindToolCallDismiss, events.KindToolProgress, events.KindRunComplete, events.KindToolCallResponse,
		events.KindToolCallRejected, events.KindUIToolComplete, events.KindUIToolDismiss, events.KindExpire,
		events.KindPlanReady, events.KindPlanStarted, events.KindPlanFinished,
	} {
		require.True(t, seen[kind], "no page shows %s", kind)
	}
}

func requireSchema(t *testing.T, name string, value any) {
	t.Helper()
	text, ok := events.Schema(name)
	require.True(t, ok, name)
	schema, err := jsonschema.CompileString(name+".json", string(text))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(value), name)
}

func TestPagesOfTheRequestAPIAreDecodedByTheLibrary(t *testing.T) {
	t.Parallel()
	var records, steps int
	for _, b := range fenced(t, "wire-contract.md", "json") {
		if !strings.Contains(b.text, `"records"`) {
			continue
		}
		var page api.Page
		d := json.NewDecoder(strings.NewReader(b.text))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&page))
		records, steps = records+len(page.Records), steps+len(page.Steps)
		text, err := json.Marshal(page)
		require.NoError(t, err)
		require.JSONEq(t, b.text, string(text))
	}
	require.Equal(t, 1, records)
	require.Equal(t, 2, steps)
}
