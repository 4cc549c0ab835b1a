//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// This file parses ONETURN_FAILPOINTS and executes the actions at the points; off.go is the same interface without them.

// Enabled reports whether failpoints are compiled in.
const Enabled = true

// ErrDropped is the error of a write whose request or acknowledgement was dropped.
var ErrDropped = errors.New("failpoint: dropped")

type action struct {
	do    string
	at    int // 0 = every hit, -1 = every other one, from the first
	count int
}

var state = struct { //nolint:gochecknoglobals // of a process under test
	sync.Mutex
	actions map[string]*action
}{actions: parse(os.Getenv("ONETURN_FAILPOINTS"))}

func parse(text string) map[string]*action {
	actions := map[string]*action{}
	for part := range strings.SplitSeq(text, ";") {
		point, do, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		do, at, _ := strings.Cut(do, "@")
		a := &action{do: do, at: 1}
		switch n, err := strconv.Atoi(at); {
		case at == "*":
			a.at = 0
		case at == "odd":
			a.at = -1
		case err == nil:
			a.at = n
		}
		actions[point] = a
	}
	return actions
}

// triggers counts a hit and reports whether one of the given actions is to happen now.
func triggers(point string, dos ...string) (string, bool) {
	state.Lock()
	defer state.Unlock()
	a := state.actions[point]
	if a == nil {
		return "", false
	}
	for _, do := range dos {
		if a.do == do {
			a.count++
			return do, a.at == 0 || a.at == a.count || a.at < 0 && a.count%2 == 1
		}
	}
	return "", false
}

func note(point, effect, turn string) {
	f, err := os.OpenFile(os.Getenv("ONETURN_FAILPOINT_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the test names it
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s %s %d\n", point, effect, turn, os.Getpid())
}

// Hit is a point of a turn with an effect.
func Hit(point, effect, turn string) {
	do, ok := triggers(point, "kill", "stop")
	if !ok {
		return
	}
	if effect == "" {
		effect = "-"
	}
	note(point, effect, turn)
	if do == "kill" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal ends every thread
	}
	// The signal stops this thread a little later: nothing may be sent in between.
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT) //nolint:forbidigo // a process under test
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-continued
	signal.Stop(continued) //nolint:forbidigo // as above
}

// Before is a write about to be sent. An error means: report it as unknown and send nothing.
func Before(point string) error {
	if _, ok := triggers(point, "drop_req"); ok {
		note(point, "-", "-")
		return ErrDropped
	}
	return nil
}

// After is a write that was stored. An error means: report it as unknown.
func After(point string) error {
	if _, ok := triggers(point, "drop_ack"); ok {
		note(point, "-", "-")
		return ErrDropped
	}
	return nil
}
