package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
)

// readyTimeout limits the health check: a gateway that takes longer is not ready.
const readyTimeout = 3 * time.Second

// readiness returns the command of health checks in containers: the image has no other program that could send a request.
func readiness(env cli.Lookup) *cobra.Command {
	address := defaultOf("http")
	c := &cobra.Command{
		Use:     "ready",
		Short:   "Exit with 0 if a gateway on this machine is ready",
		Long:    "ready requests /readyz of the private address of a gateway, for health checks of containers.",
		Example: "  gateway ready\n  gateway ready --http 127.0.0.1:9089",
		Args:    cli.NoArguments(""),
	}
	c.Flags().StringVar(&address, "http", address, "Private address of the gateway, its --http.")
	return cli.Command(c, env, func(c *cobra.Command, _ []string) error { return checkReady(c.Context(), address) })
}

// defaultOf is the default of a flag of the gateway.
func defaultOf(name string) string {
	flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
	if err := config.BindFlags(flags, &config.Gateway{}); err != nil {
		return "" // the command itself reports it
	}
	return flags.Lookup(name).DefValue
}

func checkReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return cli.Usagef("--http %s is not HOST:PORT", address)
	}
	r.Close = true
	// The default transport would send the request to a proxy of the environment.
	response, err := (&http.Transport{}).RoundTrip(r)
	if err != nil {
		return fmt.Errorf("no gateway at %s: %w: --http has to be its private address", address, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		const most = 1 << 10
		reason, _ := io.ReadAll(io.LimitReader(response.Body, most)) // the status is enough
		return fmt.Errorf("the gateway at %s is not ready: %s: %s", address, response.Status, bytes.TrimSpace(reason))
	}
	return nil
}
