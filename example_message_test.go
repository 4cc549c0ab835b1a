package oneturn_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oneturn/oneturn"
)

const interviewManifest = `
agents: {Interviewer: {}, Architect: {model: Plan}}
models: {Plan: {type: object, required: [title], properties: {title: {type: string}}}}
tools: [{name: build, kind: go, agent: Architect, effect: idempotent}]
context:
  complete: {default: false, triggers: [{type: agent_text, agent: Interviewer, match: {equals: NEXT}, ui_hidden: true}]}
handoffs:
  - {from: Interviewer, to: Architect, condition: "${complete} == True"}
  - {from: Interviewer, to: user}
  - {from: user, to: Interviewer}
  - {from: Architect, to: user}
`

// withInterview calls do while a worker runs the workflow Interview, whose agents talk.
func withInterview(do func(ctx context.Context, client *oneturn.Client) error) {
	dir, err := os.MkdirTemp("", "oneturn-example-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Mkdir(filepath.Join(dir, "Interview"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "Interview", "oneturn.yaml"), []byte(interviewManifest), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stdout, err) // an output that the example does not expect
		return
	}
	build := func(_ context.Context, in post) (string, error) { return in.Title + " is built", nil }
	withWorker(oneturn.Config{Workflows: dir, Tools: []oneturn.Tool{oneturn.NewTool("build", build, oneturn.ToolOptions{})}}, do)
}

// The worker finds the JSON in what the agent has written, runs the tool of the agent, and decides who speaks next.
func ExampleClient_DoMessage() {
	withInterview(func(ctx context.Context, client *oneturn.Client) error {
		for _, m := range []*oneturn.Message{
			{Agent: "Interviewer", Content: "NEXT"},
			{Agent: "Architect", Content: "Here is the plan:\n{title: 'A shop'}", FinishReason: "stop"},
		} {
			m.MessageID = oneturn.MessageID{Chat: "chat-1", Message: "of-" + m.Agent}
			m.Workflow = "Interview"
			outcome, err := client.DoMessage(ctx, m)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %q, hidden: %v\n", m.Agent, outcome.Text.Content, outcome.Text.UIHidden)
			for _, u := range outcome.Updates {
				fmt.Println("  set:", u.Variable, u.Value)
			}
			if outcome.Response != nil {
				fmt.Println("  repaired:", outcome.Text.Repairs)
				fmt.Println("  result:", outcome.Response.Payload)
			}
			fmt.Println("  next:", *outcome.Handoff.To)
		}
		return nil
	})
	// Output:
	// Interviewer: "NEXT", hidden: true
	//   set: complete true
	//   next: Architect
	// Architect: "Architect prepared structured output.", hidden: false
	//   repaired: [single_quotes unquoted_key]
	//   result: A shop is built
	//   next: user
}

// AwaitMessage finds what follows from a message also when it was stored before.
func ExampleClient_PublishUserMessage() {
	withInterview(func(ctx context.Context, client *oneturn.Client) error {
		m := &oneturn.UserMessage{
			MessageID: oneturn.MessageID{Chat: "chat-1", Message: "m1"}, Workflow: "Interview", UserID: "ada", Content: "A shop, please.",
		}
		for range 2 { // publishing it again is harmless
			if _, err := client.PublishUserMessage(ctx, m); err != nil {
				return err
			}
		}
		outcome, err := client.AwaitMessage(ctx, m.MessageID)
		if err != nil {
			return err
		}
		fmt.Println(outcome.Text.UserID, outcome.Text.Content, "next:", *outcome.Handoff.To)
		return nil
	})
	// Output: ada A shop, please. next: Interviewer
}
