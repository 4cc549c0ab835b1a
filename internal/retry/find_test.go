package retry_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/retry"
)

func TestTurnThatCannotBeRetriedIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	one := func(e *events.ToolCall) { e.Effect, e.ToolName = "", "greet" }
	rejected := func(resumeOf string) func(e *events.ToolCall) {
		return func(e *events.ToolCall) { e.Rejected, e.Code, e.ResumeOf = true, events.CodeValidationFailed, resumeOf }
	}
	partial := newJournal(t, "turn").claim(nil).program("", plan("0"), nil)
	partial.add(events.KindToolResponse, &events.ToolResponse{ToolCallID: "turn", Status: events.StatusOK})
	for want, j := range map[string]*journal{
		"has no records":                         newJournal(t, "turn"),
		"has not ended: wait for its response":   newJournal(t, "turn").claim(nil),
		"is one call of tool greet":              newJournal(t, "turn").claim(one).ends("", events.CodeInterrupted),
		"has succeeded":                          newJournal(t, "turn").claim(nil).ends("", ""),
		"its failures were tolerated":            partial,
		"was refused and ran nothing":            newJournal(t, "turn").claim(rejected("")).ends("", events.CodeValidationFailed),
		`retry "first" instead`:                  newJournal(t, "turn").claim(rejected("first")).ends("", events.CodeValidationFailed),
		`ran nothing (cancelled): retry "first"`: newJournal(t, "turn").claim(func(e *events.ToolCall) { e.ResumeOf = "first" }).ends("", events.CodeCancelled),
		"send a corrected turn under a new turn": newJournal(t, "turn").claim(rejected("")).ends("", events.CodeCancelled),
	} {
		err := j.read().Check("turn")
		require.ErrorIs(t, err, events.ErrBadArgs, want)
		require.ErrorContains(t, err, want)
	}
	err := newJournal(t, "turn").read().Check("turn@0123abcd")
	require.ErrorIs(t, err, events.ErrBadArgs)
	require.ErrorContains(t, err, `name turn "turn" and the run id`)
	require.ErrorContains(t, err, "a turn under a reused key (on_key_reuse: run) cannot be retried: send it again under a new turn key")
	require.NoError(t, newJournal(t, "turn").claim(nil).ends("", events.CodeTimeout).read().Check("turn"), "it failed before its program was stored")
}

// turns are the turns of a chat by their keys.
type turns map[string]*journal

func (s turns) read(id events.TurnID) (*retry.Past, error) {
	if j := s[id.Turn]; j != nil {
		return retry.Read(j.records, inline)
	}
	return retry.Read(nil, inline)
}

func TestKeyOfARetryIsTheFirstThatNoRefusedRetryHas(t *testing.T) {
	t.Parallel()
	failed := newJournal(t, "t").claim(nil).ends("", events.CodeToolError)
	refused := newJournal(t, "x").claim(func(e *events.ToolCall) { e.Rejected, e.Code, e.ResumeOf = true, events.CodeBadArgs, "t" }).ends("", events.CodeBadArgs)
	retries := func(e *events.ToolCall) { e.ResumeOf = "t" }
	ran := newJournal(t, "x").claim(retries).program("", plan("0"), &retry.Copies{}).ends("", events.CodeToolError)
	cancelled := newJournal(t, "x").claim(retries).ends("", events.CodeCancelled)
	unseen := newJournal(t, "x").claim(func(e *events.ToolCall) { e.Rejected, e.Code = true, events.CodeCancelled }).ends("", events.CodeCancelled)
	running := newJournal(t, "x").claim(retries)
	answered := newJournal(t, "x").claim(retries).ends("", "")
	other := newJournal(t, "x").claim(nil)
	for _, c := range []struct {
		name, of, key string
		turns         turns
		want          string
		exists        bool
		err           string
	}{
		{name: "the first", of: "t", turns: turns{"t": failed}, want: "t~retry1"},
		{name: "a second one after a refusal", of: "t", turns: turns{"t": failed, "t~retry1": refused}, want: "t~retry2"},
		{name: "of the refused one", of: "t~retry1", turns: turns{"t": failed, "t~retry1": refused}, want: "t~retry2"},
		{name: "the same again", of: "t", turns: turns{"t": failed, "t~retry1": ran}, want: "t~retry1", exists: true},
		{name: "the same while it runs", of: "t", turns: turns{"t": failed, "t~retry1": running}, want: "t~retry1", exists: true},
		{name: "the same after an answer without calls", of: "t", turns: turns{"t": failed, "t~retry1": answered}, want: "t~retry1", exists: true},
		{name: "after one that was cancelled before it ran", of: "t", turns: turns{"t": failed, "t~retry1": cancelled}, want: "t~retry2"},
		{name: "after one that was cancelled before it came", of: "t", turns: turns{"t": failed, "t~retry1": unseen}, want: "t~retry2"},
		{name: "of one that was cancelled before it ran", of: "t~retry1", turns: turns{"t": failed, "t~retry1": cancelled}, want: "t~retry2"},
		{name: "of the retry", of: "t~retry1", turns: turns{"t": failed, "t~retry1": ran}, want: "t~retry2"},
		{name: "a key of another turn", of: "t", turns: turns{"t": failed, "t~retry1": other}, err: "belongs to another turn"},
		{name: "a chosen key", of: "t", key: "mine", turns: turns{"t": failed, "t~retry1": ran}, want: "mine"},
		{name: "a chosen key of a refused retry", of: "t", key: "t~retry1", turns: turns{"t": failed, "t~retry1": refused}, err: "ran nothing"},
		{name: "of a turn without records", of: "t", turns: turns{}, err: "has no records"},
		{name: "of what was refused for ever", of: "t", turns: turns{"t": refused}, err: "name each other"},
	} {
		of, _, err := retry.Find(events.TurnID{Turn: c.of}, c.turns.read)
		var id events.TurnID
		var exists bool
		if err == nil {
			id, exists, err = retry.Key(of, c.key, c.turns.read)
		}
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, id.Turn, c.name)
		require.Equal(t, c.exists, exists, c.name)
	}
}

func TestRetriesThatNameEachOtherAreReadOnce(t *testing.T) {
	t.Parallel()
	refused := func(key, of string) *journal {
		return newJournal(t, key).claim(func(e *events.ToolCall) { e.Rejected, e.Code, e.ResumeOf = true, events.CodeBadArgs, of }).ends("", events.CodeBadArgs)
	}
	reads := 0
	counted := func(all turns) func(events.TurnID) (*retry.Past, error) {
		return func(id events.TurnID) (*retry.Past, error) {
			reads++
			return all.read(id)
		}
	}
	_, _, err := retry.Find(events.TurnID{Turn: "a"}, counted(turns{"a": refused("a", "b"), "b": refused("b", "c"), "c": refused("c", "a")}))
	require.ErrorIs(t, err, events.ErrBadArgs)
	require.ErrorContains(t, err, `"c" and "a" ran nothing and name each other`)
	require.Equal(t, 3, reads)

	chain := turns{}
	for i := range 1000 {
		chain[strconv.Itoa(i)] = refused(strconv.Itoa(i), strconv.Itoa(i+1))
	}
	reads = 0
	_, _, err = retry.Find(events.TurnID{Turn: "0"}, counted(chain))
	require.ErrorContains(t, err, "over 20 retries of retries that ran nothing")
	require.Equal(t, 20, reads)

	keys := turns{}
	for i := range 1000 {
		key := fmt.Sprintf("t~retry%d", i+1)
		keys[key] = refused(key, "t")
	}
	reads = 0
	_, _, err = retry.Key(events.TurnID{Turn: "t"}, "", counted(keys))
	require.ErrorContains(t, err, "over 20 retries of the turn ran nothing: choose a key for this one")
	require.Equal(t, 20, reads)
}

func TestReadThatFailsIsNotARefusal(t *testing.T) {
	t.Parallel()
	down := errors.New("no connection")
	fails := func(events.TurnID) (*retry.Past, error) { return nil, down }
	_, _, err := retry.Find(events.TurnID{Turn: "t"}, fails)
	require.ErrorIs(t, err, down)
	_, _, err = retry.Key(events.TurnID{Turn: "t"}, "", fails)
	require.ErrorIs(t, err, down)
	j := newJournal(t, "turn").claim(nil).program("", plan("0"), nil)
	_, err = retry.Read(j.records, func(string, string, any) (any, error) { return nil, down })
	require.ErrorIs(t, err, down)
	require.NotErrorIs(t, err, events.ErrStateCorrupt)
}
