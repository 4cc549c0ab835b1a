package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
)

// The contexts of the NATS CLI, read by name or path and turned into connection options. Their secrets are removed
// from errors.

// natsContext is a connection context as the NATS CLI keeps it, in
// $XDG_CONFIG_HOME/nats/context/NAME.json or ~/.config/nats/context/NAME.json.
type natsContext struct {
	URL         URL    `json:"url"`
	User        string `json:"user"`
	Password    Secret `json:"password"`
	Token       Secret `json:"token"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	CA          string `json:"ca"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	InboxPrefix string `json:"inbox_prefix"`
	TLSFirst    bool   `json:"tls_first"`

	// What follows changes where or how to connect, and is not supported: better to report it
	// than to connect to something else.
	NSC       string `json:"nsc"`
	UserJWT   Secret `json:"user_jwt"`
	UserSeed  Secret `json:"user_seed"`
	Proxy     string `json:"socks_proxy"`
	Domain    string `json:"jetstream_domain"`
	APIPrefix string `json:"jetstream_api_prefix"`

	home string
}

// loadContext reads a context by name, or by path if name ends in .json.
func loadContext(name string, env func(string) (string, bool)) (*natsContext, error) {
	home, _ := env("HOME")
	file := name
	if !strings.HasSuffix(name, ".json") {
		if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
			return nil, fmt.Errorf("connect: --context %.80q is neither the name of a context nor the path of a .json file", name)
		}
		dir, ok := env("XDG_CONFIG_HOME")
		if !ok || dir == "" {
			dir = filepath.Join(home, ".config")
		}
		file = filepath.Join(dir, "nats", "context", name+".json")
	}
	data, err := readLimited(file)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("connect: --context %.80q: there is no %s; see nats context ls, or name the server with --nats URL: %w", name, file, os.ErrNotExist)
		}
		return nil, fmt.Errorf("connect: --context %.80q: %w", name, err)
	}
	c := &natsContext{home: home}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("connect: --context %.80q: %s is not a context of the NATS CLI: %w", name, file, err)
	}
	return c, nil
}

// secrets returns what must not appear in errors.
func (c *natsContext) secrets() []string {
	return append(c.URL.secrets(), string(c.Password), string(c.Token))
}

// options turns the context into connection options.
func (c *natsContext) options() ([]nats.Option, error) {
	var errs []error
	for _, field := range []struct {
		name string
		set  bool
		fix  string
	}{
		{"nsc", c.NSC != "", "export the user with nsc generate creds and name the file with --creds"},
		{"user_jwt", c.UserJWT != "", "put JWT and seed in a file and name it with --creds"},
		{"user_seed", c.UserSeed != "", "put the seed in a file and name it with --nkey"},
		{"socks_proxy", c.Proxy != "", "connect without a proxy"},
		{"jetstream_domain", c.Domain != "", "connect to a server of that domain"},
		{"jetstream_api_prefix", c.APIPrefix != "", "connect to the account that owns the streams"},
	} {
		if field.set {
			errs = append(errs, fmt.Errorf("%s is not supported: %s", field.name, field.fix))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	sign := signIn{
		user: c.User, password: c.Password, creds: c.path(c.Creds), nkey: c.path(c.NKey),
		ca: c.path(c.CA), cert: c.path(c.Cert), key: c.path(c.Key), inboxPrefix: c.InboxPrefix,
	}
	opts, err := sign.options()
	if err != nil {
		return nil, err
	}
	if c.Token != "" {
		opts = append(opts, nats.Token(string(c.Token)))
	}
	if c.TLSFirst {
		opts = append(opts, nats.TLSHandshakeFirst())
	}
	return opts, nil
}

// path resolves a leading ~ as the NATS CLI does.
func (c *natsContext) path(file string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		return filepath.Join(c.home, rest)
	}
	return file
}
