//go:build unix

package oneturntest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

type title struct {
	Title string `json:"title"`
}

// A Go tool is called as a worker calls it: with the ids of a turn, context variables and a host that answers.
func ExampleCallTool() {
	rename := func(ctx context.Context, in title) (string, error) {
		if in.Title == "" {
			return "", tool.UserError("a post needs a title")
		}
		before, _ := tool.Vars(ctx).Get("title")
		return fmt.Sprintf("%v is %s now", before, in.Title), tool.Vars(ctx).Set("title", in.Title)
	}
	host := oneturntest.Host{Variables: map[string]any{"title": "Draft"}}
	for _, in := range []title{{"News"}, {""}} {
		result, err := oneturntest.CallTool(context.Background(), &host, rename, in)
		fmt.Printf("%q %v\n", result, err)
	}
	fmt.Println(host.Variables)
	// Output:
	// "Draft is News now" <nil>
	// "" user_error: a post needs a title
	// map[title:News]
}

// A Python tool runs in a process of its interpreter; its questions are answered by the script of the host.
func ExampleCallPython() {
	root, err := os.MkdirTemp("", "oneturn-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	folder := filepath.Join(root, "Blog", "tools")
	code := "def shout(title):\n    return {'message': title.upper() + '!'}\n"
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "shout.py"), []byte(code), 0o600)); err != nil {
		fmt.Println(err)
		return
	}
	var host oneturntest.Host
	shout := oneturntest.PythonTool{Root: root, Workflow: "Blog", File: "shout.py", Function: "shout"}
	result, err := oneturntest.CallPython(context.Background(), &host, shout, title{"News"})
	fmt.Println(string(result), err)
	// Output:
	// {"message":"NEWS!"} <nil>
}

// A test with a server: worker and client are used as in a program.
func ExampleNewServer() {
	test := func(t *testing.T) {
		s := oneturntest.NewServer(t)
		s.Provision()
		greet := func(_ context.Context, in title) (string, error) { return "Hello, " + in.Title, nil }
		worker, err := oneturn.NewWorker(s.Connect(), oneturn.Config{
			Tools: []oneturn.Tool{oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter"})},
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- worker.Run(ctx) }()
		defer func() { stop(); require.NoError(t, <-done) }()

		client, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
		require.NoError(t, err)
		response, err := client.Do(t.Context(), &oneturn.Turn{
			TurnID:   oneturn.TurnID{Chat: "chat-1", Turn: "turn-1"},
			Workflow: "Hello", Agent: "Greeter", Model: "greet", Data: title{"Ada"},
		})
		require.NoError(t, err)
		require.Equal(t, "Hello, Ada", response.Payload)
	}
	runTest("TestGreeter", test)
	// Output:
	// TestGreeter passed: true
}

// runTest runs a test inside an example.
func runTest(name string, test func(*testing.T)) {
	all := func(_, _ string) (bool, error) { return true, nil }
	fmt.Fprintf(os.Stdout, "%s passed: %v\n", name, testing.RunTests(all, []testing.InternalTest{{Name: name, F: test}}))
}
