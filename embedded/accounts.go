package embedded

import (
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// shareOut gives the server the accounts of the file, if there is one, and a user for the process
// itself. A server takes the accounts that it is given for its own, so each start reads them anew.
func (s *Server) shareOut(options *server.Options) error {
	if s.accounts == "" {
		return nil
	}
	file, err := server.ProcessConfigFile(s.accounts)
	if err != nil {
		return fmt.Errorf("embedded server: accounts of %s: %w", s.accounts, err)
	}
	at := slices.IndexFunc(file.Accounts, func(a *server.Account) bool { return a.GetName() == s.account })
	if at < 0 {
		return fmt.Errorf("embedded server: %s has no account %q: make the file with `turnctl nats-config`", s.accounts, s.account)
	}
	if s.user == "" { // the same again after a new start: connections come back with it
		s.user, s.password = "oneturn-embedded-"+rand.Text(), rand.Text()
		s.auth = []nats.Option{nats.UserInfo(s.user, s.password)}
	}
	own := &server.User{Username: s.user, Password: s.password, Account: file.Accounts[at]}
	options.Accounts, options.Users, options.Nkeys = file.Accounts, slices.Concat(file.Users, []*server.User{own}), file.Nkeys
	options.SystemAccount, options.NoAuthUser = file.SystemAccount, file.NoAuthUser
	return nil
}
