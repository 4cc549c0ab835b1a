// Package frontend tests the gateway with the clients that browsers use: two generations of AG-UI's client in Node, and the
// page of examples/12-frontend in Chromium. The tests need Node, npm and Chromium: `make gateway-test` in the root.
package frontend
