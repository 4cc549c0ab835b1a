package embedded

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// serverLog passes the server's log lines to slog: quiet unless something is wrong. A fatal
// line does not end the process; it ends Start.
type serverLog struct {
	log   *slog.Logger
	fatal chan error  // capacity 1: the first fatal line is the cause
	full  atomic.Bool // a line reported a full disk
	stale sync.Once   // a line reported an index older than its messages
}

// outdatedIndex matches lines about indexes that are older than the messages which they are of, as after every
// stop that was not clean: the server rebuilds them from the messages.
var outdatedIndex = regexp.MustCompile(`[Ss]tate (is )?outdated[,;]|errored: prior state file$`)

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats server", "line", fmt.Sprintf(format, v...))
}

func (l *serverLog) Warnf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	if strings.HasPrefix(line, "Plaintext passwords") { // they are in the memory of this process only
		l.log.Debug("nats server", "line", line)
		return
	}
	if outdatedIndex.MatchString(line) {
		l.stale.Do(func() {
			l.log.Info("the store was not closed cleanly, as after a crash: the server rebuilds its indexes from the messages, of which none is lost by that")
		})
		l.log.Info("nats server", "line", line)
		return
	}
	if reportsFullDisk(line) {
		l.full.Store(true)
	}
	l.log.Warn("nats server", "line", line)
}

func (l *serverLog) Errorf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	if reportsFullDisk(line) {
		l.full.Store(true)
	}
	l.log.Error("nats server", "line", line)
}

func (l *serverLog) Fatalf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	select {
	case l.fatal <- fmt.Errorf("nats server: %s", line):
	default:
	}
	l.log.Debug("nats server failed", "line", line)
}

// Debugf and Tracef stay silent: they would name subjects and connections of every message.
func (l *serverLog) Debugf(string, ...any) {}
func (l *serverLog) Tracef(string, ...any) {}
