// Command 05-http is a service that takes orders over HTTP: what a tool of a workflow can be
// without knowing anything of its worker.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8084", "where to listen, HOST:PORT")
	token := flag.String("token", "examples/05-http/orders.token", "file with the token that callers have to send")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *token, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

// run serves until ctx ends.
func run(ctx context.Context, listen, token string, out io.Writer) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: newShop(token), ReadHeaderTimeout: time.Second, ReadTimeout: 10 * time.Second}
	fmt.Fprintf(out, "orders is ready at http://%s\n", l.Addr())
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
