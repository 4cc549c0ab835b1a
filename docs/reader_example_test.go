package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// follow shows every event of a chat once, until ctx ends.
func follow(ctx context.Context, nc *nats.Conn, space subjects.Space, app, chat string, show func(seq uint64, event []byte)) error {
	live := make(chan *nats.Msg, 256)
	sub, err := nc.ChanSubscribe(space.EventsOfChat(app, chat), live) // first, so that no event is missed in between
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	slow := sub.StatusChanged(nats.SubscriptionSlowConsumer) // copies were dropped
	up := nc.StatusChanged(nats.CONNECTED)                   // copies may have been missed
	defer nc.RemoveStatusListener(up)
	tick := time.NewTicker(5 * time.Second) // a copy may be lost silently
	defer tick.Stop()

	shown := map[uint64]bool{} // sequences from next on
	once := func(seq uint64, event []byte) {
		if !shown[seq] {
			shown[seq] = true
			show(seq, event)
		}
	}
	next := uint64(1) // the history is read up to here
	read := func() {
		for from := next; ; {
			page, err := history(ctx, nc, space, app, chat, from)
			if err != nil {
				return // no worker replied: retried at the next tick
			}
			for _, r := range page.Records {
				once(r.Sequence, r.Event)
				delete(shown, r.Sequence)
				next = r.Sequence + 1
			}
			if from = page.Next; from == 0 {
				return
			}
		}
	}
	for read(); ; {
		select {
		case m := <-live:
			if seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err == nil && seq >= next {
				once(seq, m.Data)
			}
		case <-slow:
			read()
		case _, open := <-up:
			if !open {
				return nats.ErrConnectionClosed
			}
			read()
		case <-tick.C:
			read()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// history requests a page of a chat's events from the workers.
func history(ctx context.Context, nc *nats.Conn, space subjects.Space, app, chat string, from uint64) (*api.Page, error) {
	body, err := json.Marshal(api.HistoryRequest{Chat: chat, From: from})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, space.API(app, api.VerbHistory), body)
	if err != nil {
		return nil, err
	}
	if text := m.Header.Get("Nats-Service-Error"); text != "" {
		return nil, errors.New(text)
	}
	page := &api.Page{}
	return page, json.Unmarshal(m.Data, page)
}

// A reader that attaches when one turn has ended, and sees that turn and the next.
func Example_attachAsAReader() {
	if err := attach(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 chat.tool_call of turn-1
	// 2 chat.tool_response of turn-1
	// 3 chat.tool_call of turn-2
	// 4 chat.tool_response of turn-2
}

type greeting struct {
	Name string `json:"name"`
}

func greet(_ context.Context, in greeting) (string, error) { return "Hello, " + in.Name + "!", nil }

func attach() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	store, err := os.MkdirTemp("", "oneturn-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(store)
	server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Store: store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	nc, err := server.Conn()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	plan, err := provision.New(provision.Options{})
	if err != nil {
		return err
	}
	if _, err := provision.Apply(ctx, js, plan); err != nil {
		return err
	}
	greet := oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})
	worker, err := oneturn.NewWorker(nc, oneturn.Config{Tools: []oneturn.Tool{greet}})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- worker.Run(working) }()
	defer func() { stop(); err = errors.Join(err, <-done) }()

	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	if err != nil {
		return err
	}
	turn := func(key string) *oneturn.Turn {
		return &oneturn.Turn{
			TurnID: oneturn.TurnID{Chat: "chat-1", Turn: key}, Workflow: "Hello", Agent: "Greeter", Model: "Greeting",
			Data: map[string]any{"name": "Ada"},
		}
	}
	if _, err := client.Do(ctx, turn("turn-1")); err != nil {
		return err
	}
	space, err := subjects.New(subjects.DefaultPrefix)
	if err != nil {
		return err
	}
	reading, enough := context.WithCancel(ctx)
	defer enough()
	err = follow(reading, nc, space, "default", "chat-1", func(seq uint64, event []byte) {
		var e struct {
			Type string `json:"type"`
			Data struct {
				Turn string `json:"turn"`
			} `json:"data"`
		}
		if json.Unmarshal(event, &e) == nil {
			fmt.Println(seq, e.Type, "of", e.Data.Turn)
		}
		switch seq {
		case 2:
			if _, err := client.Publish(ctx, turn("turn-2")); err != nil {
				fmt.Println(err)
			}
		case 4:
			enough()
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
