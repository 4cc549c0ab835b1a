package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/oneturn/oneturn/internal/test/harness"
)

func TestMain(m *testing.M) {
	testscript.Main(harness.LeakChecked{M: m}, map[string]func(){
		"turnctl": func() {
			os.Exit(execute(context.Background(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
		},
	})
}

// TestCommandLine runs the scripts of testdata/script: what a user types, what is printed
// where, and the exit code.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("PYENV_VERSION", os.Getenv("PYENV_VERSION"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
		},
	})
}

// exits CODE COMMAND… runs a command and wants its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errExit(err); ok {
		code = exit
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func errExit(err error) (int, bool) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), true
	}
	return 0, false
}
