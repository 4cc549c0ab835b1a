package accounts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/subjects"
)

// serviceName is a name as package micro of nats.go has it.
var serviceName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// ownPasswords are variables that hold passwords of the product's processes. A user of the same name
// would get theirs.
var ownPasswords = []string{"ONETURN_NATS_PASSWORD", "ONETURN_LISTEN_PASSWORD"} //nolint:gochecknoglobals // a read-only list

// checkNames refuses names of an option that cannot be names, or are names of the product: a service
// subscribes to everything below its own, and has its inboxes there.
func (o *Options) checkNames() error {
	for _, pool := range o.Pools {
		if err := subjects.CheckPool(pool); err != nil {
			return fmt.Errorf("accounts: %w", err)
		}
	}
	if len(o.Tenants) == 0 || slices.Contains(o.Tenants, "") {
		return fmt.Errorf("accounts: a tenant has no name, or none is named: name at least one, for example %q", "default")
	}
	for _, name := range o.Services {
		if !serviceName.MatchString(name) {
			return fmt.Errorf("accounts: %q is not a name of a NATS service: use letters, digits, - and _", name)
		}
		if why := o.reserved(name); why != "" {
			return fmt.Errorf("accounts: service %q cannot have this name: %s: rename the service", name, why)
		}
	}
	return nil
}

// reserved returns why a service cannot have a name, "" if it can.
func (o *Options) reserved(name string) string {
	first, _, _ := strings.Cut(o.Space.Prefix(), ".")
	switch {
	case name == first:
		return "subjects below it belong to the product"
	case name == o.Space.APIName():
		return "it belongs to the request API"
	case strings.HasPrefix(name, "_"):
		return "names that begin with _ belong to inboxes and to the server"
	case strings.HasSuffix(strings.ToLower(name), "_tools"):
		return "names that end in _tools belong to the inboxes that services reply to"
	}
	return ""
}

// check refuses names that two accounts, users or inboxes share: one would have the rights of the other,
// or none. Case and signs do not distinguish names, as in names of variables and files.
func check(all []Account) error {
	accounts, users := map[string]string{"SYS": "the system account of the server"}, map[string]string{}
	for _, name := range ownPasswords {
		users[name] = "a process of the product"
	}
	for _, a := range all {
		name := strings.ToUpper(a.Name)
		if other, ok := accounts[name]; ok {
			return fmt.Errorf("accounts: account %s would be the one of %s, too: rename a tenant, or choose another prefix", a.Name, other)
		}
		accounts[name] = a.Name
		for _, u := range a.Users {
			for _, name := range []string{u.Name, Password(u)} {
				if other, ok := users[name]; ok {
					return fmt.Errorf("accounts: user %s of %s and %s share the name %s: rename a tenant, pool or service", u.Name, a.Name, other, name)
				}
				users[name] = "user " + u.Name + " of " + a.Name
			}
		}
	}
	return checkInboxes(all)
}

// checkInboxes refuses a service whose inboxes belong to a role. Pools share the inboxes of workers, and
// tenants the inboxes of their roles.
func checkInboxes(all []Account) error {
	services := map[string]string{}
	for _, u := range all[0].Users {
		if u.Service {
			services[u.Inbox] = u.Name
		}
	}
	for _, a := range all {
		for _, u := range a.Users {
			if service, ok := services[u.Inbox]; ok && !u.Service {
				return fmt.Errorf("accounts: service %q cannot have this name: role %s has the same inboxes: rename the service", service, u.Role)
			}
		}
	}
	return nil
}
