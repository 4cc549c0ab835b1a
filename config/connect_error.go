package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"

	"github.com/nats-io/nats.go"
)

// ConnectError is why a server cannot be reached. Its text contains no secret.
type ConnectError struct {
	Err error
	Fix string // what helps, "" if that is unknown
}

// Error returns what is wrong and what helps.
func (e *ConnectError) Error() string {
	if e.Fix == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "; " + e.Fix
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// fixOf returns what helps against the errors that people meet.
func fixOf(err error) string {
	var (
		malformed *url.Error
		name      *net.DNSError
		operation *net.OpError
		plain     tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
	)
	switch {
	case errors.Is(err, nats.ErrNoServers):
		return "is a server running there? Name it with --nats URL, or start a worker without --nats"
	case errors.Is(err, nats.ErrAuthorization):
		return "name the user with --nats-user NAME and ONETURN_NATS_PASSWORD, or credentials with --creds FILE or --context NAME"
	case errors.As(err, &malformed):
		return "write the URL as nats://HOST:PORT, for example --nats " + string(DefaultURL)
	case errors.As(err, &name):
		return "check the name of the host in --nats"
	case errors.As(err, &authority):
		return "name the certificate authority of the server with --tls-ca FILE"
	case errors.As(err, &host):
		return "name the server in --nats as its certificate does"
	case errors.Is(err, nats.ErrSecureConnRequired), errors.As(err, &plain), errors.Is(err, nats.ErrSecureConnWanted):
		return "the server and --nats do not agree on TLS: use tls://HOST:PORT for a server with TLS, nats://HOST:PORT for one without"
	case errors.Is(err, nats.ErrNoInfoReceived), errors.Is(err, io.EOF), errors.As(err, &operation) && operation.Op == "read":
		return "what listens there is not a NATS server, or does not answer: is it the port for clients (4222 by default), not the one of --http?"
	case errors.As(err, &operation) && operation.Timeout():
		return "nothing answers at that address: check host and port in --nats, and firewalls on the way"
	}
	return ""
}
