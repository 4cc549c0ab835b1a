package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/accounts"
	"github.com/oneturn/oneturn/subjects"
)

func (a *app) natsConfig() *cobra.Command {
	var cfg config.Accounts
	var nsc bool
	c := a.command(&cobra.Command{
		Use:   "nats-config",
		Short: "Print the accounts and rights for a NATS server",
		Long: `Nats-config prints who may do what on NATS: an account for the product, one for operators and one
for each tenant, joined by exports and imports, and in each the users with the rights that their
role needs. Only so a role cannot have the server answer to a subject that it may not publish to.

The output is a part of the configuration of nats-server: include it there, or give it to a worker
with its embedded server (--accounts). Passwords are environment variables of the server, named
after the users. With --nsc it is a script of nsc commands, for servers with JWTs.`,
		Example: `  turnctl nats-config --tenants acme,beta > accounts.conf
  turnctl nats-config --tenants acme --pools default,gpu --services warehouse --nsc`,
		Args: cli.NoArguments("--tenants"),
	}, &cfg, func(context.Context, []string) error {
		space, err := subjects.New(cfg.Prefix)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		all, err := accounts.New(accounts.Options{Space: space, Tenants: cfg.Tenants, Pools: cfg.Pools, Services: cfg.Services})
		if err != nil {
			return cli.Usagef("%w", err)
		}
		text := accounts.Config(all)
		if nsc {
			text = accounts.NSC(all)
		}
		return a.print(cfg.Format, map[string]string{"config": text}, func(w io.Writer) { fmt.Fprint(w, text) })
	})
	c.Flags().BoolVar(&nsc, "nsc", false, "print nsc commands, for servers with JWTs")
	return c
}
