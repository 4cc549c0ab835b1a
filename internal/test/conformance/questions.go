package conformance

import (
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
)

// Promises about interactions: progress reaches the host, a question is answered, parked or expires, and a call without
// a host fails with a clear error.

var questionTests = []test{ //nolint:gochecknoglobals // a table
	{"ProgressIsReported", []string{"progress"}, (*suite).reports},
	{"ProgressNeedsNoHost", []string{"progress"}, (*suite).reportsWithoutHost},
	{"AnswerReachesTheTool", []string{"ask"}, (*suite).asks},
	{"ParkedCallGetsTheAnswerInTheNextRun", []string{"ask"}, (*suite).parks},
	{"QuestionThatExpiresFailsTheCall", []string{"ask"}, (*suite).expires},
	{"QuestionWithoutAHostFailsTheCall", []string{"ask"}, (*suite).asksWithoutHost},
}

func (s *suite) reports() {
	host := &memhost.Host{}
	call := s.call("progress", `{}`)
	host.NewRun()
	call.Host = host
	result, err := s.run(call)
	require.NoError(s, err)
	require.JSONEq(s, `{"done":true}`, string(result.Value))
	reported := host.Reported()
	reports := make([]tools.Progress, 0, len(reported))
	for _, p := range reported {
		reports = append(reports, tools.Progress{Percent: p.Percent, Message: p.Message})
	}
	require.Equal(s, []tools.Progress{
		{Percent: 25, Message: "step 1"}, {Percent: 50, Message: "step 2"}, {Percent: 75, Message: "step 3"},
	}, reports)
}

func (s *suite) reportsWithoutHost() {
	_, err := s.invoke("progress", `{}`)
	if err != nil { // the tool may get the error, and fail with it
		s.failed(err, "", events.CodeToolError)
	}
	s.works()
}

func (s *suite) answer(color string) (question string, value any) {
	if s.kind.Answer != nil {
		return s.kind.Answer(color)
	}
	return "color", color
}

// ask runs the function ask with a host.
func (s *suite) ask(host *memhost.Host) (tools.Result, error) {
	s.Helper()
	call := s.call("ask", `{}`)
	run := host.NewRun()
	call.Host, call.Epoch, call.FencingToken = host, run, uint64(run)
	return s.run(call)
}

func (s *suite) asks() {
	host := &memhost.Host{}
	host.Answer(s.answer("blue"))
	result, err := s.ask(host)
	require.NoError(s, err)
	require.JSONEq(s, `{"color":"blue"}`, string(result.Value))
	require.Len(s, host.Asked(), 1)
}

func (s *suite) parks() {
	host := &memhost.Host{}
	_, err := s.ask(host)
	require.ErrorIs(s, err, tools.ErrParked)
	require.False(s, tools.IsRetryable(err))
	require.Len(s, host.Asked(), 1)
	require.True(s, host.Asked()[0].Open)
	s.works() // parked calls hold nothing
	host.Answer(s.answer("green"))
	result, err := s.ask(host)
	require.NoError(s, err)
	require.JSONEq(s, `{"color":"green"}`, string(result.Value))
	require.Len(s, host.Asked(), 1, "the run after asks the same question")
}

func (s *suite) expires() {
	host := &memhost.Host{}
	question, _ := s.answer("")
	host.Expire(question)
	_, err := s.ask(host)
	require.Error(s, err)
	require.NotErrorIs(s, err, tools.ErrParked)
	require.False(s, tools.IsRetryable(err), "%v", err)
	s.works()
}

func (s *suite) asksWithoutHost() {
	_, err := s.invoke("ask", `{}`)
	s.failed(err, "", events.CodeToolError)
	s.works()
}
