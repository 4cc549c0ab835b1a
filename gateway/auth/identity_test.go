package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

func TestARequestIsAboutWhatItsTokenAllows(t *testing.T) {
	t.Parallel()
	user := auth.Identity{Apps: []string{"acme"}, User: "ada"}
	several := auth.Identity{Apps: []string{"acme", "globex"}, User: "ada", Roles: []auth.Role{auth.RoleOperator}}
	service := auth.Identity{Apps: []string{"acme"}, User: "backend", Roles: []auth.Role{auth.RoleService}}
	narrow := auth.Identity{Apps: []string{"acme"}, User: "ada", Chats: []string{"c1"}, Workflows: []string{"Gate"}}
	dev := auth.Identity{AnyApp: true, User: auth.Anonymous, Roles: []auth.Role{auth.RoleService}}
	for name, c := range map[string]struct {
		id         auth.Identity
		named      auth.Target
		want       auth.Target
		wantedCode *auth.Error
	}{
		"nothing named":                  {user, auth.Target{}, auth.Target{App: "acme", User: "ada"}, nil},
		"all named":                      {user, auth.Target{"acme", "ada", "Gate", "c1"}, auth.Target{"acme", "ada", "Gate", "c1"}, nil},
		"me":                             {user, auth.Target{User: "me"}, auth.Target{App: "acme", User: "ada"}, nil},
		"another tenant":                 {user, auth.Target{App: "globex"}, auth.Target{}, auth.ErrForbidden},
		"another case":                   {user, auth.Target{App: "Acme"}, auth.Target{}, auth.ErrForbidden},
		"another user":                   {user, auth.Target{User: "bob"}, auth.Target{}, auth.ErrForbidden},
		"anonymous":                      {user, auth.Target{User: auth.Anonymous}, auth.Target{}, auth.ErrForbidden},
		"one of several tenants":         {several, auth.Target{App: "globex"}, auth.Target{App: "globex", User: "ada"}, nil},
		"none of several tenants":        {several, auth.Target{}, auth.Target{}, auth.ErrMissingField},
		"an operator as another user":    {several, auth.Target{App: "acme", User: "bob"}, auth.Target{}, auth.ErrForbidden},
		"a service":                      {service, auth.Target{}, auth.Target{App: "acme", User: "backend"}, nil},
		"a service as a user":            {service, auth.Target{User: "bob"}, auth.Target{App: "acme", User: "bob"}, nil},
		"a service of another tenant":    {service, auth.Target{App: "globex", User: "bob"}, auth.Target{}, auth.ErrForbidden},
		"its chat and workflow":          {narrow, auth.Target{Chat: "c1", Workflow: "Gate"}, auth.Target{"acme", "ada", "Gate", "c1"}, nil},
		"another chat":                   {narrow, auth.Target{Chat: "c2", Workflow: "Gate"}, auth.Target{}, auth.ErrForbidden},
		"another workflow":               {narrow, auth.Target{Chat: "c1", Workflow: "gate"}, auth.Target{}, auth.ErrForbidden},
		"development":                    {dev, auth.Target{App: "x", User: "y"}, auth.Target{App: "x", User: "y"}, nil},
		"development, nothing named":     {dev, auth.Target{User: "me"}, auth.Target{App: "default", User: "anonymous"}, nil},
		"the zero identity":              {auth.Identity{}, auth.Target{}, auth.Target{}, auth.ErrForbidden},
		"the zero identity with names":   {auth.Identity{}, auth.Target{App: "acme", User: "ada"}, auth.Target{}, auth.ErrForbidden},
		"an identity without a user":     {auth.Identity{Apps: []string{"acme"}}, auth.Target{User: "me"}, auth.Target{}, auth.ErrForbidden},
		"an identity without a tenant":   {auth.Identity{User: "ada"}, auth.Target{}, auth.Target{}, auth.ErrForbidden},
		"a user with the name of Me":     {auth.Identity{Apps: []string{"acme"}, User: "me"}, auth.Target{User: "me"}, auth.Target{App: "acme", User: "me"}, nil},
		"no chats":                       {auth.Identity{Apps: []string{"acme"}, User: "ada", Chats: []string{}}, auth.Target{Chat: "c1"}, auth.Target{}, auth.ErrForbidden},
		"an identity with an empty name": {auth.Identity{Apps: []string{""}, User: "ada"}, auth.Target{}, auth.Target{}, auth.ErrForbidden},
	} {
		got, err := c.id.Resolve(c.named)
		used := c.id.MayUse(c.named.App, c.named.User, c.named.Workflow, c.named.Chat)
		require.Equal(t, c.want, got, name)
		if c.wantedCode == nil {
			require.NoError(t, err, name)
			require.NoError(t, used, name)
			continue
		}
		require.ErrorIs(t, err, c.wantedCode, name)
		require.ErrorIs(t, used, c.wantedCode, name)
	}
}

func TestAChatBelongsToItsOwner(t *testing.T) {
	t.Parallel()
	user := auth.Identity{Apps: []string{"acme"}, User: "ada", Roles: []auth.Role{auth.RoleOperator}}
	service := auth.Identity{Apps: []string{"acme"}, User: "backend", Roles: []auth.Role{auth.RoleService}}
	for _, c := range []struct {
		id    auth.Identity
		named string
		owner string
		may   bool
	}{
		{user, "", "ada", true},
		{user, "ada", "", true},
		{user, "", "bob", false},
		{service, "", "bob", true},
		{service, "bob", "bob", true},
		{service, "ada", "bob", false},
		{service, "ada", "", true},
	} {
		target, err := c.id.Resolve(auth.Target{User: c.named})
		require.NoError(t, err)
		err = c.id.MayUseChat(target, c.owner)
		if c.may {
			require.NoError(t, err, "%+v", c)
		} else {
			require.ErrorIs(t, err, auth.ErrForbidden, "%+v", c)
		}
	}
}

func TestRefusalsHaveAStatusAndHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    *auth.Error
		status int
		header http.Header
		body   string
	}{
		{&auth.Error{Code: auth.CodeTokenMissing, Msg: "m"}, 401, http.Header{"Www-Authenticate": {`Bearer error="invalid_token"`}}, `{"status":401,"code":"token_missing","message":"m"}`},
		{&auth.Error{Code: auth.CodeTokenInvalid}, 401, http.Header{"Www-Authenticate": {auth.Challenge}}, `{"status":401,"code":"token_invalid","message":""}`},
		{&auth.Error{Code: auth.CodeTokenExpired}, 401, http.Header{"Www-Authenticate": {auth.Challenge}}, `{"status":401,"code":"token_expired","message":""}`},
		{&auth.Error{Code: auth.CodeForbidden, Err: http.ErrNoLocation}, 403, http.Header{}, `{"status":403,"code":"forbidden","message":""}`},
		{&auth.Error{Code: auth.CodeMissingField}, 400, http.Header{}, `{"status":400,"code":"missing_field","message":""}`},
		{&auth.Error{Code: auth.CodeRateLimited, RetryAfter: time.Millisecond}, 429, http.Header{"Retry-After": {"1"}}, `{"status":429,"code":"rate_limited","message":""}`},
		{&auth.Error{Code: auth.CodeUnavailable, RetryAfter: 5 * time.Second}, 503, http.Header{"Retry-After": {"5"}}, `{"status":503,"code":"unavailable","message":""}`},
	} {
		w := httptest.NewRecorder()
		auth.WriteError(w, c.err)
		require.Equal(t, c.status, w.Code)
		require.JSONEq(t, c.body, w.Body.String(), "the cause is not in it")
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, c.header, c.err.Header())
		for name := range c.header {
			require.Equal(t, c.header.Get(name), w.Header().Get(name))
		}
	}
	err := &auth.Error{Code: auth.CodeForbidden, Msg: "no", Err: http.ErrNoLocation}
	require.EqualError(t, err, "forbidden: no: "+http.ErrNoLocation.Error())
	require.ErrorIs(t, err, http.ErrNoLocation)
	require.NotErrorIs(t, err, auth.ErrTokenInvalid)
}

func TestConnectionsEndWhenTheirTokenExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		id := auth.Identity{Expires: time.Now().Add(time.Hour)}
		ctx, cancel := id.Context(t.Context())
		defer cancel()
		other, cancelOther := id.Context(t.Context())
		cancelOther()
		require.ErrorIs(t, context.Cause(other), context.Canceled, "a connection that has ended")

		time.Sleep(time.Hour - time.Second) //nolint:forbidigo // the clock is simulated
		synctest.Wait()
		require.NoError(t, ctx.Err())
		time.Sleep(time.Second) //nolint:forbidigo // as above
		synctest.Wait()
		require.ErrorIs(t, context.Cause(ctx), auth.ErrTokenExpired)

		for _, expires := range []time.Time{{}, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
			id.Expires = expires
			long, cancelLong := id.Context(t.Context())
			time.Sleep(24 * 365 * time.Hour) //nolint:forbidigo // as above
			require.NoError(t, long.Err())
			cancelLong()
			require.Error(t, long.Err())
		}
	})
}
