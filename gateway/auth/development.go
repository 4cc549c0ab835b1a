package auth

import (
	"context"
	"net"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// Development accepts requests without a token: the tenant and the user are the ones that the request names, and every
// request has every role. Only programs on the same machine reach it, and of pages only the gateway's and the
// allowed ones ([Origins]).
type Development struct{ origins *Origins }

// NewDevelopment returns it for a gateway that listens at an address, host:port, which must be a loopback address. An
// error is a [*diag.Error].
func NewDevelopment(listen string, origins *Origins) (*Development, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || !isLoopback(host) {
		return nil, diag.Errorf(opConfigure, "dev", "listen at 127.0.0.1, or set up tokens",
			"the gateway would accept all requests without a token at %q, which other machines can reach", listen)
	}
	return &Development{origins}, nil
}

// Authenticate implements [Authenticator]. A page of another site can send requests to this machine, also by a name that it
// resolves to it: such requests have its origin, or its name as the host. A proxy on this machine that others can reach may
// hide that, but names the addresses that it serves.
func (d *Development) Authenticate(_ context.Context, r Request) (*Identity, error) {
	if !isLoopback(hostOf(r.Host)) {
		return nil, forbidden("development accepts requests for this machine alone: use http://localhost or http://127.0.0.1")
	}
	for _, from := range r.Forwarded {
		if !isLoopback(hostOf(from)) {
			return nil, forbidden("development accepts requests of this machine alone, and a proxy names another one: set up tokens")
		}
	}
	if r.Origin != "" && !d.origins.allows(r) {
		return nil, forbiddenOrigin()
	}
	return &Identity{AnyApp: true, User: Anonymous, Roles: []Role{RoleOperator, RoleService}}, nil
}

// hostOf returns a host, which may be an address, without its port and brackets.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}
