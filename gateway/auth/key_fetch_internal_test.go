package auth

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// silent is an issuer that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAnIssuerThatDoesNotAnswerDelaysATokenForFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source, err := newKeySource("https://issuer.test/jwks", false)
		require.NoError(t, err)
		source.client.Transport = silent{}
		c := newKeyCache(source, time.Now, slog.New(slog.DiscardHandler))
		defer c.close()

		begin := time.Now()
		_, err = c.find(t.Context(), "k1")
		require.ErrorIs(t, err, ErrUnavailable)
		require.Equal(t, readTimeout, time.Since(begin))
		_, err = c.find(t.Context(), "k1")
		require.ErrorIs(t, err, ErrUnavailable)
		require.Equal(t, readTimeout, time.Since(begin), "the next one does not wait")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		<-ctx.Done()
		_, err = c.find(ctx, "k1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
