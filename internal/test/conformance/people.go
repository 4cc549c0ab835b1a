package conformance

import (
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
)

var people = []test{ //nolint:gochecknoglobals // a table
	{"ProgressIsReported", []string{"progress"}, (*suite).reports},
	{"ProgressNeedsNobodyWhoLooks", []string{"progress"}, (*suite).reportsToNobody},
	{"AnswerIsHandedToTheTool", []string{"ask"}, (*suite).asks},
	{"ParkedCallGetsTheAnswerInTheNextRun", []string{"ask"}, (*suite).parks},
	{"QuestionThatExpiresFailsTheCall", []string{"ask"}, (*suite).expires},
	{"QuestionWithoutADeskFailsTheCall", []string{"ask"}, (*suite).asksNobody},
}

func (s *suite) reports() {
	desk := &memhost.Host{}
	call := s.call("progress", `{}`)
	desk.NewRun()
	call.Host = desk
	result, err := s.run(call)
	require.NoError(s, err)
	require.JSONEq(s, `{"done":true}`, string(result.Value))
	reported := desk.Reported()
	said := make([]tools.Progress, 0, len(reported))
	for _, p := range reported {
		said = append(said, tools.Progress{Percent: p.Percent, Message: p.Message})
	}
	require.Equal(s, []tools.Progress{
		{Percent: 25, Message: "step 1"}, {Percent: 50, Message: "step 2"}, {Percent: 75, Message: "step 3"},
	}, said)
}

func (s *suite) reportsToNobody() {
	_, err := s.invoke("progress", `{}`)
	if err != nil { // the tool may be told, and let it become its own failure
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

// ask runs the function ask at a desk.
func (s *suite) ask(desk *memhost.Host) (tools.Result, error) {
	s.Helper()
	call := s.call("ask", `{}`)
	run := desk.NewRun()
	call.Host, call.Epoch, call.FencingToken = desk, run, uint64(run)
	return s.run(call)
}

func (s *suite) asks() {
	desk := &memhost.Host{}
	desk.Answer(s.answer("blue"))
	result, err := s.ask(desk)
	require.NoError(s, err)
	require.JSONEq(s, `{"color":"blue"}`, string(result.Value))
	require.Len(s, desk.Asked(), 1)
}

func (s *suite) parks() {
	desk := &memhost.Host{}
	_, err := s.ask(desk)
	require.ErrorIs(s, err, tools.ErrParked)
	require.False(s, tools.IsRetryable(err))
	require.Len(s, desk.Asked(), 1)
	require.True(s, desk.Asked()[0].Open)
	s.works() // parked calls hold nothing
	desk.Answer(s.answer("green"))
	result, err := s.ask(desk)
	require.NoError(s, err)
	require.JSONEq(s, `{"color":"green"}`, string(result.Value))
	require.Len(s, desk.Asked(), 1, "the run after asks the same question")
}

func (s *suite) expires() {
	desk := &memhost.Host{}
	question, _ := s.answer("")
	desk.Expire(question)
	_, err := s.ask(desk)
	require.Error(s, err)
	require.NotErrorIs(s, err, tools.ErrParked)
	require.False(s, tools.IsRetryable(err), "%v", err)
	s.works()
}

func (s *suite) asksNobody() {
	_, err := s.invoke("ask", `{}`)
	s.failed(err, "", events.CodeToolError)
	s.works()
}
