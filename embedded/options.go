package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"time"
)

// Options with their defaults and bounds. The listen address is checked here, so that an open server always has a
// password.

// Defaults of [Options].
const (
	DefaultListen     = "127.0.0.1:4222"
	DefaultStore      = "oneturn-data"
	DefaultMaxPayload = 1 << 20
)

// startTimeout bounds the wait for the server: a store with millions of records takes
// seconds to open, a minute means that something is wrong.
const startTimeout = time.Minute

// Options configure the embedded server. The zero value listens on [DefaultListen] and
// stores in [DefaultStore].
type Options struct {
	// Listen is the TCP address HOST:PORT for clients outside the process. Port 0 or -1
	// takes a free one, see [Server.URL]. A host that is not loopback needs Password.
	// Defaults to [DefaultListen].
	Listen string

	// Store is the directory of streams and buckets; it is created with mode 0700 and locked.
	// Defaults to [DefaultStore]. With Memory it is not used.
	Store string

	// MaxStore is how many bytes the server stores at most. 0 means what is stored already and
	// three quarters of the free space of the disk. It is set again, with a restart of the server, when
	// the store nears it and the disk has room for clearly more.
	MaxStore int64

	// SyncAlways writes every record through to the disk before it is confirmed: a power
	// loss then loses nothing, at a tenth of the rate. Without it the server syncs every two
	// minutes; a crash of the process alone loses nothing either way.
	SyncAlways bool

	// Memory keeps streams in memory only. Nothing survives the process. For tests and trials.
	Memory bool

	// Username and Password protect the TCP listener. Both or neither. Without them, every process of
	// the machine may connect and do what it likes, except to listen at the inboxes of [Server.Conn].
	Username string
	Password string

	// Accounts is a file with accounts and users in the syntax of nats-server, as package accounts
	// prints it, in place of Username and Password. Variables in it come from the environment.
	// Account is the one that [Server.Conn] connects to, with a separate user.
	Accounts string
	Account  string

	// MaxPayload is the largest message in bytes, up to 64 MiB. Defaults to
	// [DefaultMaxPayload].
	MaxPayload int

	// Logger gets the server's warnings and errors, and its notices at debug level.
	// Defaults to discarding them.
	Logger *slog.Logger
}

// withDefaults returns o with every zero field set.
func (o Options) withDefaults() Options {
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if o.Store == "" {
		o.Store = DefaultStore
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = DefaultMaxPayload
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// address checks o and splits the listen address; port -1 means any free port.
func (o Options) address() (string, int, error) {
	const maxPayload = 64 << 20
	host, portText, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", 0, fmt.Errorf("embedded server: --listen %q is not HOST:PORT, try --listen %s: %w", o.Listen, DefaultListen, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < -1 || port > math.MaxUint16 {
		return "", 0, fmt.Errorf("embedded server: --listen %q has no port from 0 to 65535, try --listen %s", o.Listen, DefaultListen)
	}
	if (o.Username == "") != (o.Password == "") {
		return "", 0, errors.New("embedded server: user and password must be set together: set both or neither")
	}
	if o.Accounts != "" && (o.Password != "" || o.Account == "") {
		return "", 0, errors.New("embedded server: a file of accounts needs the name of one of its accounts; it and user with password are mutually exclusive")
	}
	if !loopback(host) && o.Password == "" && o.Accounts == "" {
		return "", 0, fmt.Errorf("embedded server: --listen %q is open to the network and has no password; "+
			"set user and password, or accounts, or listen on %s", o.Listen, net.JoinHostPort("127.0.0.1", portText))
	}
	if o.MaxPayload < 1024 || o.MaxPayload > maxPayload {
		return "", 0, fmt.Errorf("embedded server: max payload %d is outside 1024 to %d bytes, leave it at %d",
			o.MaxPayload, maxPayload, DefaultMaxPayload)
	}
	if o.MaxStore < 0 {
		return "", 0, fmt.Errorf("embedded server: max store is %d bytes, leave it at 0 for what the disk has room for", o.MaxStore)
	}
	if port == 0 {
		port = -1
	}
	return host, port, nil
}

// loopback reports whether host can be reached from this machine only. Names other than
// localhost are not looked up: what they mean may change.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
