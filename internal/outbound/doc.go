// Package outbound is the HTTP client for addresses that manifests name. The author of a
// manifest, of a DNS answer or of a redirect must not reach the inside of the network that
// the worker runs in: each address is checked when it is dialled, after the name was resolved,
// and again for each redirect. Responses are bounded, settings that are secrets go to the
// endpoint alone, and a request that may have arrived is never sent a second time.
//
// In reading order:
//
//   - client.go: [Client] and its bounds.
//   - address.go: which addresses may be dialled.
//   - transport.go, redirect.go: the rules of each hop of a request, and of redirects.
//   - header_values.go: headers of manifests, some of them secrets from files.
//   - call_headers.go: headers by which an endpoint identifies the call.
//   - body.go: answers within their bounds.
//   - status.go: answers that are failures; call_error.go: requests that have no answer.
package outbound
