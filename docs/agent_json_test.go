package docs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agentjson"
)

// rowsOf returns the cells of the table of a page that has the given header.
func rowsOf(t *testing.T, name, header string) [][]string {
	t.Helper()
	_, body, ok := strings.Cut(text(t, name), "\n"+header+"\n")
	require.True(t, ok, "%s: no table %s", name, header)
	var rows [][]string
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			break
		}
		if !strings.HasPrefix(line, "|--") {
			rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	require.NotEmpty(t, rows)
	return rows
}

// agentText returns the text of a cell: as it is, or a JSON string.
func agentText(t *testing.T, cell string) string {
	t.Helper()
	if cell = code(cell); strings.HasPrefix(cell, `"`) {
		written, ok := decode(t, cell).(string)
		require.True(t, ok)
		return written
	}
	return cell
}

func TestPageAboutJSONFromAgentsShowsWhatIsRepairedAndDropped(t *testing.T) {
	t.Parallel()
	repairs, around := map[string]bool{}, map[string]bool{}
	for _, row := range rowsOf(t, "agent-json.md", "| text | object | repair |") {
		found, err := agentjson.Extract(agentText(t, row[0]), agentjson.Options{})
		require.NoError(t, err, row)
		require.Equal(t, decode(t, code(row[1])), any(found.Object), row)
		require.Equal(t, []agentjson.Repair{agentjson.Repair(code(row[2]))}, found.Repairs, row)
		require.Empty(t, found.Around, row)
		repairs[code(row[2])] = true
	}
	for _, row := range rowsOf(t, "agent-json.md", "| text | object | around |") {
		found, err := agentjson.Extract(agentText(t, row[0]), agentjson.Options{})
		require.NoError(t, err, row)
		require.Equal(t, decode(t, code(row[1])), any(found.Object), row)
		require.Equal(t, []agentjson.Surrounding{agentjson.Surrounding(code(row[2]))}, found.Around, row)
		require.Empty(t, found.Repairs, row)
		around[code(row[2])] = true
	}
	require.Len(t, repairs, 12, "a row for each repair")
	require.Len(t, around, 7, "a row for each surrounding")
}

func readPlan(text, finishReason string) (plan map[string]any, feedback string) {
	found, err := agentjson.Extract(text, agentjson.Options{
		Fits:         func(object map[string]any) bool { return object["title"] != nil },
		FinishReason: finishReason,
	})
	if e := new(agentjson.Error); errors.As(err, &e) {
		return nil, e.Feedback() // for the model that wrote the text
	}
	return found.Object, ""
}

func TestGoOfThePageAboutJSONFromAgents(t *testing.T) {
	t.Parallel()
	plan, feedback := readPlan(`{"draft":1} {"title":"Tea shop"}`, "stop")
	require.Equal(t, map[string]any{"title": "Tea shop"}, plan)
	require.Empty(t, feedback)
	_, feedback = readPlan(`{"title":"Tea shop"}`, "length")
	require.Contains(t, feedback, "truncated")
}

func TestPageAboutJSONFromAgentsShowsWhatIsAnError(t *testing.T) {
	t.Parallel()
	for _, row := range rowsOf(t, "agent-json.md", "| text | error |") {
		_, err := agentjson.Extract(agentText(t, row[0]), agentjson.Options{})
		var e *agentjson.Error
		require.ErrorAs(t, err, &e, row)
		require.Equal(t, agentjson.Code(code(row[1])), e.Code, row)
	}
}

func TestCommandsOfThePageAboutJSONFromAgentsPrintWhatItShows(t *testing.T) {
	t.Parallel()
	piped, _, ok := strings.Cut(fenced(t, "agent-json.md", "sh")[0].text, " | turnctl extract\n")
	require.True(t, ok)
	_, written, ok := strings.Cut(piped, " '%s' '")
	require.True(t, ok)
	extract := command(t, "", "turnctl", "extract")
	extract.Stdin = strings.NewReader(strings.TrimSuffix(written, "'"))
	var stdout, stderr strings.Builder
	extract.Stdout, extract.Stderr = &stdout, &stderr
	require.NoError(t, extract.Run())
	require.Equal(t, fenced(t, "agent-json.md", "text")[0].text, stdout.String()+stderr.String())

	lines := fenced(t, "agent-json.md", "jsonl")
	require.Len(t, lines, 2)
	extract = command(t, "", "turnctl", "extract", "--jsonl")
	extract.Stdin = strings.NewReader(lines[0].text)
	got, code := output(t, extract)
	require.Equal(t, 1, code)
	require.Equal(t, lines[1].text, got)
}
