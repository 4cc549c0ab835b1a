package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
)

//go:embed page
var page embed.FS

// pages serves the page, and below /copilotkit/ the one with CopilotKit. The policies of both allow their own scripts, and
// requests to the gateway, and nothing else from other hosts.
func pages(gateway, app, copilotkit string) (http.Handler, error) {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	policy := "default-src 'none'; script-src 'self'; connect-src 'self' " + gateway + " ws" + strings.TrimPrefix(gateway, "http") +
		"; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
	mux := http.NewServeMux()
	mux.Handle("GET /", withPolicy(policy+"style-src 'self'; require-trusted-types-for 'script'", http.FileServerFS(files)))
	// CopilotKit inserts style elements, and its style sheet has fonts.
	mux.Handle("GET /copilotkit/", withPolicy(policy+"style-src 'self' 'unsafe-inline'; font-src 'self' data:", built(copilotkit)))
	mux.HandleFunc("GET /settings.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"gateway": gateway, "workflow": workflow, "app": app}) // the reader may be gone
	})
	return mux, nil
}

// built serves the page that npm run build has made.
func built(folder string) http.Handler {
	files := http.StripPrefix("/copilotkit", http.FileServer(http.Dir(folder)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(folder); err != nil {
			http.Error(w, folder+" is missing: run make copilotkit-page, and start this program in the root of the repository, or set -copilotkit", http.StatusNotFound)
			return
		}
		files.ServeHTTP(w, r)
	})
}

func withPolicy(policy string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
