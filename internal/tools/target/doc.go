// Package target has the addresses of tools outside the workflow folder: NATS services,
// tools of MCP servers, HTTP endpoints and agents. Its types are plain data, filled by manifests
// (package bindings) or by hand, and read by the packages that call such tools.
//
// target.go has the addresses, rate_limits.go limits of calls; headers.go the headers of requests and answers, which
// NATS and HTTP share; answer.go reads the bodies of answers.
package target
