package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/retry"
)

// retryState is how far a retry is.
type retryState string

// The states.
const (
	retryPossible   retryState = "possible"    // of a dry run: it would be published
	retryNeedsRerun retryState = "needs_rerun" // calls need consent: not published
	retryPublished  retryState = "published"   // no worker has claimed it yet
	retryRunning    retryState = "running"     // a worker has claimed it
	retryRefused    retryState = "refused"     // by the worker: nothing ran
	retryEnded      retryState = "ended"
)

// retryReport is the output of turnctl retry.
type retryReport struct {
	DryRun     bool         `json:"dry_run"`
	App        string       `json:"app_id"`
	Chat       string       `json:"chat_id"`
	Run        string       `json:"run_id,omitempty"`
	Turn       string       `json:"turn"`  // to retry
	Retry      string       `json:"retry"` // turn key of the retry
	Workflow   string       `json:"workflow"`
	Existed    bool         `json:"existed"`           // it was retried before: nothing is published
	State      retryState   `json:"state"`             // possible, needs_rerun, published, running, refused, ended
	Message    uint64       `json:"message,omitempty"` // sequence in the inbound stream, if it was published now
	Success    bool         `json:"success"`           // of a retry that has ended
	Code       events.Code  `json:"code,omitempty"`    // of a retry that was refused or has ended
	Content    string       `json:"content,omitempty"` // likewise
	Checked    bool         `json:"checked"`           // with the manifests of --workflows
	Planned    bool         `json:"planned"`           // the turn has stored its program; else the retry runs from its beginning
	Calls      []retry.Call `json:"calls"`             // of the program
	NeedsRerun []string     `json:"needs_rerun"`       // calls that --rerun has to name
}

func (r *retryReport) good() bool { return r.State != retryNeedsRerun && r.State != retryRefused }

// note takes over what the records of the retry show.
func (r *retryReport) note(past *retry.Past) {
	if past.Claim == nil {
		return
	}
	r.State = retryRunning
	if past.Claim.Rejected {
		r.State, r.Code = retryRefused, past.Claim.Code
		if past.Claim.Rejection != nil {
			r.Content = past.Claim.Rejection.Content
		}
		return
	}
	if past.End != nil {
		r.State, r.Success, r.Code, r.Content = retryEnded, past.End.Success, past.End.Code, past.End.Content
	}
}

func (r *retryReport) text(w io.Writer) {
	show := "turnctl show " + argument(r.Chat) + " " + argument(r.Retry) + r.place()
	if r.Existed {
		r.existedText(w, show)
		return
	}
	fmt.Fprintf(w, "turn %s of chat %s, retried as %s\n", id(r.Turn), id(r.Chat), id(r.Retry))
	if !r.Planned {
		fmt.Fprintln(w, "  it has stored no program: nothing has run, and the retry runs from the beginning")
	}
	rows := make([][]string, 0, len(r.Calls))
	for i := range r.Calls {
		rows = append(rows, retryRow(&r.Calls[i]))
	}
	table(w, 2, rows, 0, 1)
	switch r.State {
	case retryPossible:
		text := "nothing was published. Without --dry-run the retry is published, and a worker checks the kept results; --workflows DIR checks them here"
		if r.Checked {
			text = "nothing was published. With these manifests a worker runs the retry: publish it without --dry-run"
		}
		fmt.Fprintln(w, text)
	case retryNeedsRerun:
		fmt.Fprintf(w, "not published: %s may have had an effect. Find out whether it has happened. If it\nmay happen again: --rerun %s\n",
			plural.Of(len(r.NeedsRerun), "call"), argument(strings.Join(r.NeedsRerun, ",")))
	case retryPublished:
		fmt.Fprintf(w, "published as message %d; no worker has claimed it yet: %s\n", r.Message, show)
	case retryRunning:
		fmt.Fprintf(w, "a worker has claimed it: %s\n", show)
	case retryRefused:
		if r.Message == 0 {
			fmt.Fprint(w, "not published: with these manifests a worker would refuse it\n  ")
		}
		fmt.Fprintf(w, "refused (%s): %s\n", r.Code, clean(r.Content, longestText))
	case retryEnded:
		fmt.Fprintf(w, "it has ended (%s): %s\n", outcomeText(r.Success, r.Code), show)
	}
}

// existedText states that the turn was retried before, and how that one is retried.
func (r *retryReport) existedText(w io.Writer, show string) {
	fmt.Fprintf(w, "turn %s of chat %s was retried before, as %s: nothing is published\n", id(r.Turn), id(r.Chat), id(r.Retry))
	if r.State != retryEnded {
		fmt.Fprintf(w, "it runs: %s\n", show)
		return
	}
	fmt.Fprintf(w, "it has ended (%s): %s\n", outcomeText(r.Success, r.Code), show)
	if !r.Success {
		fmt.Fprintf(w, "to retry that one: turnctl retry %s %s%s\n", argument(r.Chat), argument(r.Retry), r.place())
	}
}

// place returns the flags that lead to the turn.
func (r *retryReport) place() string { return placeFlags(r.App, r.Run) }

func outcomeText(success bool, code events.Code) string {
	switch {
	case success:
		return "success"
	case code != "":
		return string(code)
	}
	return "failed"
}

// retryRow is a call in the table.
func retryRow(c *retry.Call) []string {
	does, why := "runs", "it did not start"
	switch {
	case c.Copied && c.State == retry.Succeeded:
		does, why = "copied", "it succeeded"
	case c.Copied:
		does, why = "copied", fmt.Sprintf("it failed (%s), which was tolerated", c.Code)
	case c.Uncertain:
		why = fmt.Sprintf("its effect (%s) may have happened", c.Effect)
		if c.EffectState == events.EffectHappened {
			why = fmt.Sprintf("its tool returned, so its effect (%s) has happened", c.Effect)
		}
		if c.Code != "" {
			why = fmt.Sprintf("it ended as %s: %s", c.Code, why)
		}
	case c.State == retry.NotEnded:
		why = "it did not end"
	case c.State == retry.Failed:
		why = fmt.Sprintf("it failed (%s)", c.Code)
	}
	return []string{id(c.Call), id(c.ToolName), does, why}
}
