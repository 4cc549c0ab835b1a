package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/examples"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// stage is what the scenes play on.
type stage struct {
	out       io.Writer
	client    *oneturn.Client
	crew      *crew
	ledger    ledger
	responses tally
	questions tally // by their ids
	parks     tally // by turn
	checks    int   // promises looked at
	broken    int   // of them, not kept

	down []func() error // undoes what was raised, last first
}

// ackWait is how long a worker may be silent before its turns go to another one. The default
// is 30 s; nobody wants to watch that.
const ackWait = 2 * time.Second

// raise starts the server and two workers. On an error it leaves nothing behind.
func raise(ctx context.Context, o Options) (_ *stage, err error) {
	s := &stage{out: o.Out, questions: tally{key: questionOf}, parks: tally{key: parkedTurn}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.strike())
		}
	}()
	dir, err := os.MkdirTemp("", "oneturn-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demo: %w", err)
	}
	s.later(func() error { return os.RemoveAll(dir) })
	s.ledger = ledger(filepath.Join(dir, "ledger.jsonl"))
	workflows := filepath.Join(dir, "workflows")
	if err := unpack(workflows); err != nil {
		return nil, err
	}
	server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Store: filepath.Join(dir, "store")})
	if err != nil {
		return nil, err
	}
	s.later(server.Stop)
	if err := s.connect(ctx, server); err != nil {
		return nil, err
	}
	s.crew = &crew{o: o, dir: dir, args: []string{
		"--nats", server.URL(), "--workflows", workflows, "--watch=false", "--http", "127.0.0.1:0",
		"--tool-env", helloLedger + "," + studioLedger, "--park-after", parkAfter.String(), "--soft-stop", "1s", "--log-level", "warn", "-o", "json",
	}, env: append(quietEnvironment(os.Environ()), helloLedger+"="+string(s.ledger), studioLedger+"="+string(s.ledger))}
	if o.Python != "" {
		s.crew.args = append(s.crew.args, "--python", o.Python)
	}
	s.later(s.crew.dismiss)
	for range 2 {
		if _, err := s.crew.hire(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// connect makes streams and buckets, and listens to the responses as a frontend would.
func (s *stage) connect(ctx context.Context, server *embedded.Server) error {
	nc, err := server.Conn(config.ConnOptions("oneturn-demo", slog.New(slog.DiscardHandler))...)
	if err != nil {
		return err
	}
	s.later(func() error { nc.Close(); return nil })
	plan, err := provision.New(provision.Options{AckWait: ackWait})
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	if _, err := provision.Apply(ctx, js, plan); err != nil {
		return err
	}
	space, err := subjects.New(subjects.DefaultPrefix)
	if err != nil {
		return err
	}
	for subject, to := range map[string]*tally{
		space.EventsOfKind(events.KindToolResponse):        &s.responses,
		space.EventsOfKind(subjects.KindAsk + ".*"):        &s.questions,
		space.Live("demo", "demo", events.KindRunComplete): &s.parks,
	} {
		if err := to.listen(nc, subject); err != nil {
			return err
		}
	}
	s.client, err = oneturn.NewClient(nc, oneturn.ClientOptions{WithoutMsgID: true})
	return err
}

// unpack writes the workflows of the examples to dir.
func unpack(dir string) error {
	for name, files := range map[string]fs.FS{"01-hello": examples.Hello, "02-approval": examples.Approval} {
		workflows, err := fs.Sub(files, name+"/workflows")
		if err == nil {
			err = os.CopyFS(dir, workflows)
		}
		if err != nil {
			return fmt.Errorf("unpack the example %s: %w", name, err)
		}
	}
	return nil
}

func (s *stage) later(f func() error) { s.down = append(s.down, f) }

// strike takes everything down.
func (s *stage) strike() error {
	errs := make([]error, 0, len(s.down))
	for i := range s.down {
		errs = append(errs, s.down[len(s.down)-1-i]())
	}
	s.down = nil
	return errors.Join(errs...)
}

// tellf writes a line of the story.
func (s *stage) tellf(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// sayf writes what a scene has seen.
func (s *stage) sayf(format string, args ...any) { s.tellf("   "+format, args...) }

// checkf writes whether a promise was kept.
func (s *stage) checkf(kept bool, format string, args ...any) {
	s.checks++
	mark := "ok "
	if !kept {
		mark = "NO "
		s.broken++
	}
	s.sayf(mark+format, args...)
}

// await waits for the response of a turn and tells of it.
func (s *stage) await(ctx context.Context, t *oneturn.Turn, begin time.Time) (*oneturn.Response, error) {
	r, err := s.client.Await(ctx, t.TurnID)
	if err != nil {
		return nil, err
	}
	s.sayf("response after %d ms: %s, %q", time.Since(begin).Milliseconds(), r.Status, r.Content)
	return r, nil
}

// duplicates waits until the workers have counted so many duplicates, or it is clear that they
// will not, and returns what they have.
func (s *stage) duplicates(ctx context.Context, want int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*ackWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := s.crew.sum(ctx, "oneturn_duplicates_total")
		if err != nil || n >= want {
			return n, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return n, nil
		}
	}
}

// listen counts events as subscribers see them.
func (t *tally) listen(nc *nats.Conn, subject string) error {
	_, err := nc.Subscribe(subject, func(m *nats.Msg) { t.event(m.Data) })
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return nil
}
