package tool_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

type report struct {
	Rows int `json:"rows"`
}

// A surface is displayed without a question: here a progress card that the tool removes at its end.
func ExampleShow() {
	var host oneturntest.Host
	export := func(ctx context.Context, in report) (int, error) {
		card, err := tool.Show(ctx, tool.Surface{Component: "ExportCard", Display: tool.DisplayArtifact, Payload: in})
		if err != nil {
			return 0, err
		}
		if err := tool.Progress(ctx, 50, "half of the rows"); err != nil {
			return 0, err
		}
		return in.Rows, tool.Dismiss(ctx, card)
	}
	rows, err := oneturntest.CallTool(context.Background(), &host, export, report{Rows: 7})
	fmt.Println(rows, err)
	for _, s := range host.Shown() {
		fmt.Println(s.Component, s.Display, string(s.Payload), s.Dismissed)
	}
	// Output:
	// 7 <nil>
	// ExportCard artifact {"rows":7} true
}

// Context variables last as long as the chat. Changes are stored if the tool succeeds.
func ExampleVars() {
	count := func(ctx context.Context, _ any) (int, error) {
		vars, runs := tool.Vars(ctx), 0
		if before, ok := vars.Get("runs"); ok {
			if _, err := fmt.Sscan(fmt.Sprint(before), &runs); err != nil {
				return 0, err
			}
		}
		runs++
		return runs, vars.Set("runs", runs)
	}
	variables := map[string]any{}
	for _, turn := range []string{"turn-1", "turn-2"} {
		host := oneturntest.Host{Turn: turn, Variables: variables} // a new host for each turn of the chat
		runs, err := oneturntest.CallTool(context.Background(), &host, count, nil)
		fmt.Println(runs, err)
		variables = host.Variables
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// A call may be tried again only if nothing has happened: the connection was refused, so no order was sent.
func ExampleRetryable() {
	send := func() error { return &net.OpError{Op: "dial", Err: errors.New("connection refused")} }
	order := func(context.Context, any) (string, error) {
		err := send()
		var dial *net.OpError
		switch {
		case errors.As(err, &dial) && dial.Op == "dial":
			return "", tool.RetryAfter(err, time.Second) // or tool.Retryable(err), without a shortest pause
		case err != nil:
			return "", err // the outcome is unknown: not tried again
		}
		return "ordered", nil
	}
	var host oneturntest.Host
	_, err := oneturntest.CallTool(context.Background(), &host, order, nil)
	fmt.Println(err)
	// Output:
	// dial: connection refused
}
