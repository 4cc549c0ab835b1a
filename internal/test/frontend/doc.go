// Package frontend tests the gateway with the clients that browsers use: two generations of AG-UI's client in Node
// (clients_test.go), the code that docs/gateway.md shows (snippets.test.mjs), and the pages of examples/12-frontend in Chromium
// (page_test.go), also with hostile texts (hostile_test.go). stage_test.go starts what a page needs. The tests need Node, npm and Chromium: `make gateway-test` in the root. The pictures in
// docs/images are written by
//
//	go test -tags=frontend -run=Browser ./internal/test/frontend -update
package frontend
