// Package auth decides who sends a request to the gateway and what that sender may do. It does no routing and knows no
// NATS: the handler of a path, here called endpoint, takes the token out of a request, authenticates it, and checks what the
// request names.
//
//	identity, err := auth.Check(r, authenticator, auth.HeaderOnly)
//	target, err := identity.Resolve(auth.Target{App: app, User: user, Workflow: workflow, Chat: chat})
//	release, err := places.Take(target.App, target.User)
//
// Every refusal is an [*Error] with a code, an HTTP status and a message that a client may see; its cause is for the log
// alone. [WriteError] sends it.
//
// # Rules
//
//   - Everything that is not allowed is refused: an [Identity] without tenants may do nothing.
//   - A token is taken out of its request before anything can log the request, and no message or log line repeats it.
//   - The tenants and the user of a request come from its token. What a path or a body names must agree with them.
//   - A token that cannot be checked now, because the keys of its issuer cannot be read, is not invalid: the answer is
//     503 and the client keeps its token.
//
// In reading order:
//
//   - identity.go: [Identity] and its [Identity.Resolve]: what a request names, checked. error.go: [Error], its codes and
//     how it is written. reason.go: why a token is refused, for the operator.
//   - authenticator.go: [Authenticator], [Check] and [Chain]. take_token.go: [TakeToken] finds the token of a request
//     and removes it.
//   - jwt.go: [JWT], tokens of an issuer; claims.go: what they contain. key_cache.go, key_fetch.go: the keys of the
//     issuer, read when needed.
//   - static_tokens.go: [StaticTokens], a file of hashes of tokens, read again when it changes; token_file.go: its format.
//     token_hash.go: [NewToken] and [HashToken].
//   - development.go: [Development], no tokens, for programs on the same machine alone.
//   - origins.go: [Origins], the pages that may use the gateway; cors.go: their headers.
//   - rates.go, places.go: how often users and tenants may send requests, and how many connections they may have open.
//     buckets.go: what the rates count with.
package auth
