package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) {
	folder := os.Getenv(envFolder)
	if folder == "" {
		oneturntest.VerifyNoLeaks(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // a worker process
	err := works(ctx, folder, os.Getenv(envURL), os.Stdin)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // the main function of a worker process
	}
}

// caseOf returns the case of a text as if it were a file.
func caseOf(t *testing.T, text string) *Case {
	t.Helper()
	path := t.TempDir() + "/case.json"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases, err := load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	return &cases[0]
}
