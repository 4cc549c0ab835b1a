package conformance

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

var failures = []test{ //nolint:gochecknoglobals // a table
	{"ErrorOfTheUserKeepsItsText", []string{"fail_user"}, (*suite).failsForTheUser},
	{"HeadersCountInWhateverCase", []string{"lowly"}, (*suite).readsHeaders},
	{"DelayOfARetryIsKept", []string{"later"}, (*suite).keepsDelay},
	{"ErrorOfTheToolKeepsItsText", []string{"fail"}, (*suite).fails},
	{"FailedCallIsNotTriedAgain", []string{"fail"}, (*suite).failsOnce},
	{"RetryableFailureIsMarked", []string{"busy"}, (*suite).marksRetryable},
	{"RetryableCallSucceedsInALaterAttempt", []string{"busy"}, (*suite).succeedsLater},
	{"CrashIsAnErrorAndTheInvokerGoesOn", []string{"crash"}, (*suite).survivesCrash},
	{"CrashIsToolError", []string{"crash", CrashIsKnown}, (*suite).knowsCrash},
}

func (s *suite) failsForTheUser() {
	_, err := s.invoke("fail_user", `{}`)
	s.failed(err, "no such city", events.CodeUserError)
}

func (s *suite) readsHeaders() {
	_, err := s.invoke("lowly", `{}`)
	s.failed(err, "no such city", events.CodeUserError)
}

func (s *suite) keepsDelay() {
	_, err := s.invoke("later", `{}`)
	wait, retryable := tools.RetryDelay(err)
	require.True(s, retryable, "%v", err)
	require.Equal(s, 7*time.Second, wait)
}

func (s *suite) fails() {
	_, err := s.invoke("fail", `{}`)
	s.failed(err, "it broke", events.CodeToolError)
	require.Empty(s, tools.EffectState(err), "the tool reports its failure")
}

func (s *suite) failsOnce() {
	o := s.do(s.Context(), s.call("fail", `{}`), 3, patience)
	require.Equal(s, 1, o.Attempts)
	require.Equal(s, events.CodeToolError, o.Code)
	require.True(s, o.Entered)
}

func (s *suite) marksRetryable() {
	_, err := s.invoke("busy", `{"succeeds_at":3}`)
	require.Error(s, err)
	require.True(s, tools.IsRetryable(err), "%v", err)
	require.Equal(s, events.CodeToolError, events.CodeOf(err), "%v", err)
}

func (s *suite) succeedsLater() {
	o := s.do(s.Context(), s.call("busy", `{"succeeds_at":3}`), 3, patience)
	require.NoError(s, o.Err)
	require.Equal(s, 3, o.Attempts)
	require.JSONEq(s, `{"attempt":3}`, string(o.Payload))
}

// survivesCrash calls what crashes as a worker does: its outcome is unknown, so it is not entered
// again, and others are not harmed.
func (s *suite) survivesCrash() {
	s.works()
	note, args := s.note(map[string]any{})
	o := s.do(s.Context(), s.call("crash", args), 3, brief)
	require.Error(s, o.Err)
	require.Contains(s, []events.Code{events.CodeToolError, events.CodeTimeout}, o.Code, "%v", o.Err)
	require.Equal(s, 1, o.Attempts, "%v", o.Err)
	require.Equal(s, 1, s.noted(note, noteBegun), "how often it was entered")
	s.works()
}

func (s *suite) knowsCrash() {
	_, args := s.note(map[string]any{})
	_, err := s.invoke("crash", args)
	s.failed(err, "", events.CodeToolError)
	require.Equal(s, events.EffectInDoubt, s.do(s.Context(), s.call("crash", args), 1, patience).EffectState)
}
