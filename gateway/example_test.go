package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/provision"
)

// session is an authenticator of a program that has its own sessions.
type session struct{}

// Authenticate implements [auth.Authenticator].
func (session) Authenticate(_ context.Context, r auth.Request) (*auth.Identity, error) {
	if r.Token != "session-of-ada" {
		return nil, auth.ErrTokenInvalid
	}
	return &auth.Identity{Apps: []string{"acme"}, User: "ada"}, nil
}

// A Go program mounts the endpoints into its own server.
func ExampleNew() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Memory: true})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	defer func() { _ = server.Stop() }()
	if err := mount(ctx, server); err != nil {
		fmt.Fprintln(os.Stdout, err)
	}
	// Output:
	// 200 401
}

func mount(ctx context.Context, server *embedded.Server) error {
	nc, err := server.Conn()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	plan, err := provision.New(provision.Options{Memory: true})
	if err != nil {
		return err
	}
	if _, err := provision.Apply(ctx, js, plan); err != nil {
		return err
	}
	g, err := gateway.New(ctx, gateway.Options{NATS: nc, Auth: session{}})
	if err != nil {
		return err
	}
	defer g.Close()
	mux := http.NewServeMux()
	mux.Handle("/api/", g)
	mux.Handle("/ws/", g)

	get := func(token string) int {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/chats/acme/c1/events", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code
	}
	fmt.Println(get("session-of-ada"), get("none"))
	return nil
}
