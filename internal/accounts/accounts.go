package accounts

import (
	"slices"
	"strings"

	"github.com/oneturn/oneturn/subjects"
)

// Options specify what a set-up is for.
type Options struct {
	Space   subjects.Space
	Tenants []string // ids, as app_id has them; at least one
	Pools   []string // default: "default"
	// Services are the names of NATS services that manifests call as tools.
	Services []string
}

// Account is a NATS account.
type Account struct {
	Name      string
	About     string // a sentence for people
	JetStream bool
	Users     []User
	Exports   []Export
	Imports   []Import
}

// User is a role of an account. Its inboxes begin with Inbox.
type User struct {
	Name, Role, About string
	Publish           []string
	Subscribe         []string // Inbox included
	Inbox             string
	Responses         bool // may answer the requests that it receives
	Service           bool // a NATS service, whose role is its name
}

// Export gives a subject to other accounts: a service is published to, a stream is subscribed to.
type Export struct {
	Subject string
	Service bool
	Many    bool // the service answers one request with several messages
	To      []string
}

// Import takes what an account exports.
type Import struct {
	Subject string
	Service bool
	From    string
}

// New returns the accounts of a set-up, the product's first. Names that the product uses, or that two roles
// would share, are errors.
func New(o Options) ([]Account, error) {
	if len(o.Pools) == 0 {
		o.Pools = []string{subjects.DefaultPool}
	}
	if err := o.checkNames(); err != nil {
		return nil, err
	}
	s := setup{Options: o}
	product := Account{
		Name: o.Space.Account(), About: "The product. A user of it can overwrite any record: give its users to processes of the product only.", JetStream: true,
		Users: append(append(s.workers(), s.gateway(), s.orchestrator(), s.repairer(), s.provisioner()), s.services()...),
	}
	operator := Account{Name: o.Space.Account() + "_OPERATOR", About: "Reads everything and changes nothing.", Users: []User{s.operator()}}
	all := []Account{product, operator}
	for _, tenant := range o.Tenants {
		all = append(all, s.tenant(tenant))
	}
	for i := range all[1:] {
		s.join(&all[0], &all[i+1])
	}
	if err := check(all); err != nil {
		return nil, err
	}
	return all, nil
}

// join exports from the product what the users of another account publish to and subscribe to.
func (s *setup) join(product, other *Account) {
	add := func(subject string, service bool) {
		if slices.ContainsFunc(other.Imports, func(i Import) bool { return i.Subject == subject }) {
			return
		}
		other.Imports = append(other.Imports, Import{Subject: subject, Service: service, From: product.Name})
		product.Exports = append(product.Exports, Export{
			Subject: subject, Service: service, Many: strings.HasPrefix(subject, "$SRV."), To: []string{other.Name},
		})
	}
	for _, u := range other.Users {
		for _, subject := range u.Publish {
			add(subject, true)
		}
	}
	for _, u := range other.Users {
		for _, subject := range u.Subscribe {
			if subject != u.Inbox+".>" {
				add(subject, false)
			}
		}
	}
}

// Password returns the name of the environment variable for the password of a user.
func Password(u User) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(u.Name))
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name + "_PASSWORD"
}
