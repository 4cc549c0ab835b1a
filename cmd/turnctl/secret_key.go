package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/secrets"
)

func (a *app) secretKey() *cobra.Command {
	var out config.Output
	return a.command(&cobra.Command{
		Use:   "secret-key",
		Short: "Print a new key for the file of --secret-keys",
		Long: `Secret-key prints one line for the key file of workers (--secret-keys), which seals the answers to
secret questions. To change the key, append the new line to the file of every worker and restart them;
then move it to the first line and restart again, so that every worker can open what another one seals.
Remove old lines when no turn is open that is older than the change (--max-turn-life).`,
		Example: `  (umask 077; turnctl secret-key > secret-keys)
  worker --nats nats://127.0.0.1:4222 --workflows workflows --secret-keys secret-keys`,
		Args: cli.NoArguments(""),
	}, &out, func(context.Context, []string) error {
		key := secrets.NewKey()
		if out.Format == "json" {
			return cli.WriteJSON(a.stdout, map[string]string{"key": key}, "")
		}
		fmt.Fprintln(a.stdout, key)
		return nil
	})
}
