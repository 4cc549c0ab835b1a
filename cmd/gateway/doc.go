// Command gateway serves the chats of oneturn to frontends: WebSockets, plain requests and event streams.
//
//	gateway --nats URL --jwks URL --issuer ISS --audience AUD     tokens of an issuer
//	gateway --nats URL --tokens FILE                              static tokens
//	gateway --dev                                                 no tokens, on this machine alone
//	gateway ready                                                 the health check of containers
//
// Exit codes: 0 after a drain, 1 if something failed, 2 for wrong usage or configuration, 130 if a second signal ended the
// drain.
//
// # Files
//
// main.go has the command. serve.go starts the parts in order and runs until they end: access.go (who may use the gateway),
// starting.go (waits for the server and its streams), public.go (the public address), connections.go (how many it takes). ready.go
// has the health check.
package main
