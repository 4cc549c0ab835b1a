package auth

import (
	"net/http"
	"strings"
)

// CORS lets pages of allowed origins read the responses of next, and answers their preflight requests. Responses to other
// pages get no header, so that browsers refuse them. The page has its token itself, so credentials of the browser are never
// allowed.
func (o *Origins) CORS(next http.Handler) http.Handler {
	headers := strings.Join([]string{"authorization", "content-type", "last-event-id", "x-app-id", "x-copilotcloud-public-api-key", "traceparent", "tracestate"}, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin") // nor can they embed them, where a browser asks for no permission
		origin := originOf(r)
		allowed := origin != "" && o.Check(r) == nil
		if allowed {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "retry-after, www-authenticate")
		}
		if r.Method != http.MethodOptions || origin == "" || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		if allowed {
			h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
			h.Set("Access-Control-Allow-Headers", headers)
			h.Set("Access-Control-Max-Age", "600")
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
