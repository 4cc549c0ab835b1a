// setup.go starts the parts of the demo (server, streams, workers, subscriptions), ends them in
// reverse order, and prints the report.

package main

import (
	"cmp"
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

// demo holds what the scenarios use.
type demo struct {
	out       io.Writer
	client    *oneturn.Client
	workers   *workerGroup
	ledger    ledger
	responses tally
	questions tally // by their ids
	parks     tally // by turn
	steps     tally // of programs that have ended, by their ids
	talk      tally // texts and handoffs, by kind and message
	checks    int   // promises checked
	broken    int   // of them, not kept

	cleanUps []func() error // run in reverse order
}

// ackWait is how long a worker may be silent before its turns are redelivered to another one.
// The default of 30 s would make the demo long.
const ackWait = 2 * time.Second

// newDemo starts the server and two workers. On an error it removes what it created.
func newDemo(ctx context.Context, o options) (_ *demo, err error) {
	d := &demo{
		out: o.out, responses: tally{key: responseOf}, questions: tally{key: questionOf}, parks: tally{key: parkedTurn}, steps: tally{key: stepOf}, talk: tally{key: talkOf},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.cleanUp())
		}
	}()
	dir, err := os.MkdirTemp("", "oneturn-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demo: %w", err)
	}
	d.onCleanUp(func() error { return os.RemoveAll(dir) })
	d.ledger = ledger(filepath.Join(dir, "ledger.jsonl"))
	workflows := filepath.Join(dir, "workflows")
	if err := unpack(workflows); err != nil {
		return nil, err
	}
	server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Store: filepath.Join(dir, "store")})
	if err != nil {
		return nil, err
	}
	d.onCleanUp(server.Stop)
	if err := d.connect(ctx, server); err != nil {
		return nil, err
	}
	d.workers = &workerGroup{o: o, dir: dir, args: []string{
		"--nats", server.URL(), "--workflows", workflows, "--watch=false", "--http", "127.0.0.1:0",
		"--tool-env", helloLedger + "," + studioLedger + "," + tripLedger, "--park-after", parkAfter.String(), "--soft-stop", "1s", "--log-level", "warn", "-o", "json",
	}, env: append(quietEnvironment(os.Environ()), helloLedger+"="+string(d.ledger), studioLedger+"="+string(d.ledger), tripLedger+"="+string(d.ledger))}
	if o.python != "" {
		d.workers.args = append(d.workers.args, "--python", o.python)
	}
	d.onCleanUp(d.workers.stop)
	for range 2 {
		if _, err := d.workers.start(ctx); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// connect creates streams and buckets, and subscribes to the responses as a frontend does.
func (d *demo) connect(ctx context.Context, server *embedded.Server) error {
	nc, err := server.Conn(config.ConnOptions("oneturn-demo", slog.New(slog.DiscardHandler))...)
	if err != nil {
		return err
	}
	d.onCleanUp(func() error { nc.Close(); return nil })
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
	for subject, to := range map[string][]*tally{
		space.EventsOfKind(events.KindToolResponse):        {&d.responses, &d.steps},
		space.EventsOfKind(events.RecordAsk + ".*"):        {&d.questions},
		space.EventsOfKind(events.KindText):                {&d.talk},
		space.EventsOfKind(events.KindHandoff):             {&d.talk},
		space.Live("demo", "demo", events.KindRunComplete): {&d.parks},
	} {
		for _, t := range to {
			if err := t.listen(nc, subject); err != nil {
				return err
			}
		}
	}
	d.client, err = oneturn.NewClient(nc, oneturn.ClientOptions{WithoutMsgID: true})
	return err
}

// unpack writes the workflows of the examples, and the workflows of the scenarios of programs and messages, to dir.
func unpack(dir string) error {
	for name, files := range map[string]fs.FS{"01-hello/workflows": examples.Hello, "02-approval/workflows": examples.Approval, "workflows": own} {
		workflows, err := fs.Sub(files, name)
		if err == nil {
			err = os.CopyFS(dir, workflows)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
	}
	return nil
}

func (d *demo) onCleanUp(f func() error) { d.cleanUps = append(d.cleanUps, f) }

// cleanUp ends and removes everything, last first.
func (d *demo) cleanUp() error {
	errs := make([]error, 0, len(d.cleanUps))
	for i := range d.cleanUps {
		errs = append(errs, d.cleanUps[len(d.cleanUps)-1-i]())
	}
	d.cleanUps = nil
	return errors.Join(errs...)
}

// printf writes a line of the report.
func (d *demo) printf(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// detailf writes a line below a scenario.
func (d *demo) detailf(format string, args ...any) { d.printf("   "+format, args...) }

// checkf writes whether a promise was kept.
func (d *demo) checkf(kept bool, format string, args ...any) {
	d.checks++
	mark := "ok "
	if !kept {
		mark = "NO "
		d.broken++
	}
	d.detailf(mark+format, args...)
}

// await waits for the response of a turn and prints it.
func (d *demo) await(ctx context.Context, t *oneturn.Turn, begin time.Time) (*oneturn.Response, error) {
	r, err := d.client.Await(ctx, t.TurnID)
	if err != nil {
		return nil, err
	}
	outcome := cmp.Or(r.Code, "ok")
	d.detailf("response after %d ms: %s, %q", time.Since(begin).Milliseconds(), outcome, r.Content)
	return r, nil
}

// duplicates waits until the workers have counted so many duplicates, or it is clear that they
// will not, and returns what they have.
func (d *demo) duplicates(ctx context.Context, want int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*ackWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := d.workers.sum(ctx, "oneturn_duplicates_total")
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
