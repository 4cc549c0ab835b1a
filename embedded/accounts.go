package embedded

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/subjects"
)

// ownInboxes begins the inboxes of [Server.Conn] on a server without a file of accounts. With one it
// is a worker among the users of the file, whose rights name the inboxes of workers: also the rights of
// services to reply to a call.
const ownInboxes = "_INBOX_embedded"

// signIn gives the process itself a separate user, with a random password. On a server without password
// or accounts all others are one more user, without credentials.
func (s *Server) signIn(options *server.Options) error {
	if s.user == "" { // the same after a restart of the server: connections reconnect with it
		s.user, s.password = "oneturn-embedded-"+rand.Text(), rand.Text()
		inboxes := ownInboxes
		if s.accounts != "" {
			inboxes = subjects.WorkerInboxes
		}
		s.auth = []nats.Option{nats.UserInfo(s.user, s.password), nats.CustomInboxPrefix(subjects.PrivateInboxes(inboxes))}
	}
	own := &server.User{Username: s.user, Password: s.password}
	switch {
	case s.accounts != "":
		return s.shareOut(options, own)
	case options.Password != "":
		other := &server.User{Username: options.Username, Password: options.Password, Permissions: exceptOwnInboxes()}
		options.Username, options.Password, options.Users = "", "", []*server.User{own, other}
	default:
		other := &server.User{Username: "oneturn-anyone", Password: rand.Text(), Permissions: exceptOwnInboxes()}
		options.Users, options.NoAuthUser = []*server.User{own, other}, other.Username
	}
	return nil
}

// exceptOwnInboxes are the rights of all users but the process itself. They may answer its requests, but
// not listen to the answers: inboxes cannot be guessed, and a client that knows one could send messages
// there in the name of the server.
func exceptOwnInboxes() *server.Permissions {
	return &server.Permissions{Subscribe: &server.SubjectPermission{Deny: []string{ownInboxes + ".>"}}}
}

// shareOut gives the server the accounts of the file, and own in one of them. A server changes
// the accounts that it is given, so each start reads them again.
func (s *Server) shareOut(options *server.Options, own *server.User) error {
	file, err := server.ProcessConfigFile(s.accounts)
	if err != nil {
		if unset := unsetVariables(s.accounts); len(unset) > 0 {
			return fmt.Errorf("embedded server: accounts of %s: variables without a value: %s: export them, each with the password of a user",
				s.accounts, strings.Join(unset, ", "))
		}
		return fmt.Errorf("embedded server: accounts of %s: %w", s.accounts, err)
	}
	at := slices.IndexFunc(file.Accounts, func(a *server.Account) bool { return a.GetName() == s.account })
	if at < 0 {
		return fmt.Errorf("embedded server: %s has no account %q: make the file with `turnctl nats-config`", s.accounts, s.account)
	}
	own.Account = file.Accounts[at]
	options.Accounts, options.Users, options.Nkeys = file.Accounts, slices.Concat(file.Users, []*server.User{own}), file.Nkeys
	options.SystemAccount, options.NoAuthUser = file.SystemAccount, file.NoAuthUser
	return nil
}

var (
	literal  = regexp.MustCompile(`"[^"\n]*"|'[^'\n]*'|(?:#|//).*`) // texts and comments of a configuration
	variable = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
)

// unsetVariables lists the variables that a configuration refers to and that neither it nor the environment
// sets, sorted. The server itself reports only the first one.
func unsetVariables(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var unset []string
	plain := literal.ReplaceAllString(string(text), `""`)
	for _, m := range variable.FindAllStringSubmatch(plain, -1) {
		name := m[1]
		_, exported := os.LookupEnv(name)
		if !exported && !regexp.MustCompile(`(?m)^\s*`+name+`\s*[:=]`).MatchString(plain) {
			unset = append(unset, name)
		}
	}
	slices.Sort(unset)
	return slices.Compact(unset)
}
