// A page that shows a chat of a workflow, and the orchestrator of that workflow: it answers each message of a user with a
// turn of the agent that asks for approval. The page speaks to the gateway, the orchestrator to NATS. Files: main.go (the
// orchestrator), pages.go (serves the pages).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn"
)

const workflow = "Studio" // of examples/02-approval

// settings are what the flags set.
type settings struct{ listen, nats, gateway, app, copilotkit string }

// message is the event chat.user_message, as far as it is used.
type message struct {
	Type string `json:"type"`
	Data struct {
		MessageID string `json:"message_id"`
		App       string `json:"app_id"`
		Chat      string `json:"chat_id"`
		User      string `json:"user_id"`
		Workflow  string `json:"workflow_name"`
		Content   any    `json:"content"`
	} `json:"data"`
}

// orchestrate publishes a turn for each message of a user until stop is called. A real orchestrator would ask a model what to do. It
// reads the journal with a consumer that the server remembers, so messages wait while no orchestrator runs.
func orchestrate(ctx context.Context, nc *nats.Conn, logs io.Writer) (stop func(), err error) {
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, "KV_ONETURN_TURNS", jetstream.ConsumerConfig{
		Durable: "studio-orchestrator", FilterSubject: "$KV.ONETURN_TURNS.e.*.*.*.*.text", DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy,
	})
	if err != nil {
		return nil, fmt.Errorf("follow the messages: start the worker first: %w", err)
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		var e message
		if json.Unmarshal(m.Data(), &e) == nil && e.Type == "chat.user_message" && e.Data.Workflow == workflow {
			if _, err := client.Publish(ctx, turnFor(&e)); err != nil {
				fmt.Fprintf(logs, "message %s of chat %s has no turn yet: %v\n", e.Data.MessageID, e.Data.Chat, err)
				_ = m.NakWithDelay(time.Second) // without it, the message comes again after 30 s
				return
			}
		}
		_ = m.Ack() // without it, the message comes again, and its turn is the same
	})
	if err != nil {
		return nil, fmt.Errorf("follow the messages: %w", err)
	}
	return consuming.Stop, nil
}

// turnFor is the turn for a message. Its key depends on the message alone, so several orchestrators publish it once; it is not
// the id of the message, since the call of the turn has the key as its id.
func turnFor(e *message) *oneturn.Turn {
	text := fmt.Sprint(e.Data.Content)
	title, _, _ := strings.Cut(text, "\n")
	if short := []rune(title); len(short) > 60 {
		title = string(short[:60]) + "…"
	}
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: e.Data.App, Chat: e.Data.Chat, Turn: "post-" + e.Data.MessageID}, Workflow: workflow, UserID: e.Data.User,
		Agent: "ApprovalAgent", Model: "Post", Data: map[string]any{"title": title, "body": text, "agent_message": "May I publish this?"},
		ContextVariables: map[string]any{"chat_id": e.Data.Chat, "workflow_name": workflow},
	}
}

// run serves until ctx ends.
func run(ctx context.Context, s settings, out io.Writer) error {
	nc, err := nats.Connect(s.nats, nats.Name("studio"), nats.MaxReconnects(-1))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", s.nats, err)
	}
	defer nc.Close()
	end, err := orchestrate(ctx, nc, out)
	if err != nil {
		return err
	}
	defer end()
	handler, err := pages(strings.TrimSuffix(s.gateway, "/"), s.app, s.copilotkit)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.listen, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Fprintf(out, "the page is ready: http://%s\n", s.listen)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

func main() {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:3000", "address of the page")
	flag.StringVar(&s.nats, "nats", nats.DefaultURL, "NATS server")
	flag.StringVar(&s.gateway, "gateway", "http://127.0.0.1:8090", "address of the gateway, for browsers")
	flag.StringVar(&s.app, "app", "default", "tenant of the chats that the pages show")
	flag.StringVar(&s.copilotkit, "copilotkit", "examples/12-frontend/copilotkit/dist", "folder of the page with CopilotKit, as make copilotkit-page makes it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
