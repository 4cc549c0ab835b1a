// Package demo shows the promise at work, with real workers that are really killed: a NATS
// server in this process, two worker processes on the workflows of examples/01-hello and
// examples/02-approval, and a few scenes. What they claim is counted outside NATS and outside the workers: each run of a
// tool adds a line to a ledger file.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Options say what to show.
type Options struct {
	Worker string    // path of the worker's binary
	Python string    // interpreter for the tools; "" = found as by any worker
	Out    io.Writer // gets the story
}

// scene is one thing that is shown. It tells what it sees by stage.sayf and what it proves by
// stage.checkf; an error means that it could not be played.
type scene struct {
	title string
	play  func(ctx context.Context, s *stage) error
}

func scenes() []scene {
	return []scene{
		{"One turn, published three times, without Nats-Msg-Id", threeTimes},
		{"A turn whose data does not fit the model of the tool", wrongData},
		{"kill -9 of the worker inside an unsafe tool", killUnsafe},
		{"kill -9 of the worker inside an idempotent tool", killIdempotent},
		{"kill -9 of the worker whose tool waits for a person", killAsking},
		{"kill -9 of all workers while a turn is parked", killAllParked},
		{"Afterwards", afterwards},
	}
}

// sceneTimeout bounds a scene; the longest takes about 4 s.
const sceneTimeout = 30 * time.Second

// Run plays all scenes. It returns nil only if everything that is promised was seen. No
// process of its own is left when it returns.
func Run(ctx context.Context, o Options) (err error) {
	begin := time.Now()
	s, err := raise(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	s.tellf("oneturn demo: a NATS server in this process and two workers (processes %s).\n"+
		"Each run of a tool adds a line to a ledger file, outside NATS: that is what is counted.", s.crew)
	for i, scene := range scenes() {
		s.tellf("\n%d. %s", i+1, scene.title)
		if err := s.play(ctx, scene); err != nil {
			return fmt.Errorf("scene %d, %s: %w%s", i+1, scene.title, err, s.crew.lastWords())
		}
	}
	if s.broken > 0 {
		return fmt.Errorf("%d of %d promises were not kept%s", s.broken, s.checks, s.crew.lastWords())
	}
	s.tellf("\nAll %d promises kept, in %.1f s. Every turn has exactly one response; see README.md for what that means.",
		s.checks, time.Since(begin).Seconds())
	return nil
}

func (s *stage) play(ctx context.Context, scene scene) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sceneTimeout, fmt.Errorf("it took longer than %s", sceneTimeout))
	defer cancel()
	return scene.play(ctx, s)
}
