// Package accounts defines rights on NATS: the accounts, users, rights, exports and imports of a set-up
// for given tenants, pools and services, as values (accounts.go; roles.go, gateway_role.go and orchestrator_role.go with the rights of each user;
// names.go with the rules for names). It prints them as a configuration of nats-server ([Config], config.go) and as commands
// of nsc for servers with JWTs ([NSC], nsc.go). It does no I/O.
//
// NATS does not check a reply subject against the rights of the client that names it, and JetStream
// answers to it. In one account, a client that may publish to a stream or send JetStream any request can
// so have the server write an answer over any record. Across accounts a reply counts in the account of the asker
// alone. Therefore the product has an account to itself, each tenant has one, and so do operators:
//
//	ONETURN           workers, gateways, orchestrators, services, provisioner, repairer: trusted with every record
//	ONETURN_OPERATOR  reads and changes nothing
//	TENANT_<token>    publisher, answerer, reader, fetcher, inspector of one tenant
//
// The product's account exports to each tenant what its roles need, by pool, kind and verb, and to
// that tenant's account alone.
package accounts
