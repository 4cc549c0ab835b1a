package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/oneturn/oneturn/gateway/auth"
)

// An endpoint takes the token out of the request, authenticates it and checks what the path names.
func Example() {
	folder, _ := os.MkdirTemp("", "auth")
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "tokens.yaml")
	token := auth.NewToken()
	_ = os.WriteFile(file, []byte("- {sha256: "+auth.HashToken(token)+", app: acme, user: ada}\n"), 0o600)
	tokens, _ := auth.OpenTokens(auth.StaticConfig{Path: file})

	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/ws/Gate/acme/c1/me?after=7&access_token="+token, nil)
	identity, err := auth.Check(r, tokens, auth.WebSocket)
	fmt.Println(identity.User, err, r.URL.RawQuery)

	target, err := identity.Resolve(auth.Target{App: "acme", User: "me", Workflow: "Gate", Chat: "c1"})
	fmt.Println(target.User, err)
	_, err = identity.Resolve(auth.Target{App: "globex", User: "ada"})
	fmt.Println(err)
	// Output:
	// ada <nil> after=7
	// ada <nil>
	// forbidden: the token does not allow this tenant: use a token for it
}
