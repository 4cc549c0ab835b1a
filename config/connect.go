package config

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/subjects"
)

// [Connect] opens a connection from settings; ConnOptions are the options that all connections of the commands
// share. Errors name the fix (connect_error.go) and never contain a secret.

// DefaultURL is the default address of an embedded server.
const DefaultURL URL = "nats://127.0.0.1:4222"

// connectTimeout bounds one attempt to reach one server.
const connectTimeout = 5 * time.Second

// pingInterval is how often an idle connection is checked.
const pingInterval = 10 * time.Second

// Connect opens a connection by cfg; name shows up in the server's lists. Without URL and
// context it goes to [DefaultURL]. It fails if no server can be reached now, unless extra has
// nats.RetryOnFailedConnect; once connected it reconnects for ever. Errors hold no secret.
func Connect(cfg NATS, name string, logger *slog.Logger, extra ...nats.Option) (*nats.Conn, error) {
	url, opts, secrets := cfg.URL, ConnOptions(name, logger), cfg.URL.secrets()
	if cfg.Context != "" {
		c, err := loadContext(cfg.Context, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		more, err := c.options()
		if err != nil {
			return nil, fmt.Errorf("connect: context %q: %w", cfg.Context, err)
		}
		url, opts, secrets = c.URL, append(opts, more...), c.secrets()
	}
	if url == "" {
		url = DefaultURL
	}
	own, err := cfg.options()
	if err != nil {
		return nil, err
	}
	secrets = append(secrets, string(cfg.Password))
	opts = append(append(opts, own...), extra...)
	nc, err := nats.Connect(string(url), opts...)
	if err != nil {
		return nil, &ConnectError{Err: fmt.Errorf("connect to %s: %w", url, withoutSecrets(err, secrets)), Fix: fixOf(err)}
	}
	return nc, nil
}

// ConnOptions are the connection options of the house, for [Connect] and for connections
// within the process. A reconnect never gives up, and nothing is buffered meanwhile: a claim
// that leaves minutes late would be wrong. Inboxes have a random part, so that only the server and
// those that are asked learn where replies go.
func ConnOptions(name string, logger *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.CustomInboxPrefix(subjects.PrivateInboxes(subjects.DefaultInboxes)),
		nats.Timeout(connectTimeout),
		oneSocket,
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		nats.CustomReconnectDelay(ReconnectDelay),
		// A server whose host died sends nothing: notice within half a minute.
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if err != nil {
				logger.Warn("nats disconnected", "server", shown(nc), "error", err.Error())
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { logger.Info("nats reconnected", "server", shown(nc)) }),
		nats.ErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			logger.Warn("nats connection error", "server", shown(nc), "subject", subject, "error", err.Error())
		}),
	}
}

// shown is the server of a connection without user and password.
func shown(nc *nats.Conn) string { return URL(nc.ConnectedUrlRedacted()).String() }

// ReconnectDelay is the wait before the next round over all servers: 50 ms, doubled each time
// up to 5 s, of which a random half is taken off so that clients do not reconnect at the same time.
func ReconnectDelay(attempts int) time.Duration {
	const first, most, doublings = 50 * time.Millisecond, 5 * time.Second, 7
	delay := min(most, first<<min(max(attempts-1, 0), doublings))
	return delay/2 + rand.N(delay/2)
}

// options are those that fields of n ask for.
func (n *NATS) options() ([]nats.Option, error) {
	return signIn{
		user: n.User, password: n.Password, creds: n.Creds, nkey: n.NKey,
		ca: n.TLSCA, cert: n.TLSCert, key: n.TLSKey, inboxPrefix: n.InboxPrefix,
	}.options()
}

// signIn is what flags and contexts have in common. Creds to key are file names.
type signIn struct {
	user                       string
	password                   Secret
	creds, nkey, ca, cert, key string
	inboxPrefix                string
}

func (s signIn) options() ([]nats.Option, error) {
	var opts []nats.Option
	for _, f := range []struct{ flag, name string }{
		{"--creds", s.creds}, {"--nkey", s.nkey}, {"--tls-ca", s.ca}, {"--tls-cert", s.cert}, {"--tls-key", s.key},
	} {
		if f.name == "" {
			continue
		}
		if _, err := os.Stat(f.name); err != nil { // names the file
			return nil, &ConnectError{Err: fmt.Errorf("connect: the file of %s: %w", f.flag, err), Fix: "name a file that this user can read"}
		}
	}
	if s.user != "" {
		opts = append(opts, nats.UserInfo(s.user, string(s.password)))
	}
	if s.creds != "" {
		opts = append(opts, nats.UserCredentials(s.creds))
	}
	if s.nkey != "" {
		opt, err := nats.NkeyOptionFromSeed(s.nkey)
		if err != nil {
			return nil, fmt.Errorf("connect: NKey seed file %s has no valid user seed: %w", s.nkey, err)
		}
		opts = append(opts, opt)
	}
	if s.ca != "" {
		opts = append(opts, nats.RootCAs(s.ca))
	}
	if s.cert != "" || s.key != "" {
		opts = append(opts, nats.ClientCert(s.cert, s.key))
	}
	if s.inboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(subjects.PrivateInboxes(s.inboxPrefix)))
	}
	return opts, nil
}

// redactedError shows another text than its cause.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// withoutSecrets returns err with every secret in its text replaced.
func withoutSecrets(err error, secrets []string) error {
	text := redact.New(redact.Options{Short: true}, secrets...).Text(err.Error())
	if text == err.Error() {
		return err
	}
	return &redactedError{text, err}
}
