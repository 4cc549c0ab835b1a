package accounts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/accounts"
	"github.com/oneturn/oneturn/subjects"
)

func setup(t *testing.T, o accounts.Options) []accounts.Account {
	t.Helper()
	var err error
	o.Space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	all, err := accounts.New(o)
	require.NoError(t, err)
	return all
}

// TestServerTakesTheConfigurationOfEveryTenant has ids with letters that names and variables do not have.
func TestServerTakesTheConfigurationOfEveryTenant(t *testing.T) {
	t.Parallel()
	all := setup(t, accounts.Options{
		Tenants: []string{"acme", "a.b c", "7", "ü", strings.Repeat("long ", 40), `quote " and \`}, Pools: []string{"default", "gpu"}, Services: []string{"warehouse", "bank_2"},
	})
	text := accounts.Config(all)
	for _, a := range all {
		for _, u := range a.Users {
			require.Regexp(t, `^[A-Z_][A-Z0-9_]*$`, accounts.Password(u))
			text = strings.ReplaceAll(text, "$"+accounts.Password(u)+",", "secret,")
		}
	}
	file := filepath.Join(t.TempDir(), "accounts.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	opts, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	require.Len(t, opts.Accounts, len(all))
	require.Len(t, opts.Users, 2+4+2+1+5*6)
}

// TestNothingIsSharedBeyondTheTenantAndWhatARoleNeeds looks at the values: each export goes to one
// account, and the exports of a tenant have its token in the right place.
func TestNothingIsSharedBeyondTheTenantAndWhatARoleNeeds(t *testing.T) {
	t.Parallel()
	all := setup(t, accounts.Options{Tenants: []string{"acme", "beta"}, Pools: []string{"default", "gpu"}})
	require.Equal(t, []string{"ONETURN", "ONETURN_OPERATOR", "TENANT_acme", "TENANT_beta"}, []string{all[0].Name, all[1].Name, all[2].Name, all[3].Name})
	given := map[string][]string{}
	for _, e := range all[0].Exports {
		require.Len(t, e.To, 1)
		given[e.To[0]] = append(given[e.To[0]], e.Subject)
	}
	for i, a := range all[1:] {
		require.False(t, a.JetStream)
		require.Empty(t, a.Exports)
		var taken []string
		for _, im := range a.Imports {
			taken = append(taken, im.Subject)
		}
		require.Equal(t, given[a.Name], taken)
		for _, u := range a.Users {
			for _, subject := range append(u.Publish, u.Subscribe...) {
				switch {
				case subject == u.Inbox+".>":
				case i == 0:
					require.NotContains(t, subject, "CONSUMER.CREATE")
					require.Regexp(t, `^(\$JS\.API\.(INFO|STREAM\.INFO|STREAM\.MSG\.GET|CONSUMER\.INFO)|\$SRV\.STATS\.)`, subject)
				default:
					token := regexp.QuoteMeta(strings.TrimPrefix(a.Name, "TENANT_"))
					require.Regexp(t, `^oneturn\.(in\.(default|gpu)\.(structured_output_ready|agent_message|user_message|plan_ready|retry|cancel|tool_call_response)\.`+token+`\.>|api\.`+token+`\.[a-z]+|(events|live|verdict)\.`+token+`\.[>*])$`, subject)
				}
			}
		}
	}
}

// TestServicesReplyWhereWorkersListen: to a worker with the inboxes of the role, and to the one of an
// embedded server.
func TestServicesReplyWhereWorkersListen(t *testing.T) {
	t.Parallel()
	all := setup(t, accounts.Options{Tenants: []string{"acme"}, Pools: []string{"default", "gpu"}, Services: []string{"bank"}})
	inbox := subjects.NewToolInbox(subjects.PrivateInboxes(subjects.WorkerInboxes))
	base, _, _ := strings.Cut(inbox, ".")
	for _, u := range all[0].Users {
		switch u.Role {
		case "worker":
			require.Equal(t, subjects.WorkerInboxes, u.Inbox)
			require.Contains(t, u.Subscribe, base+".>")
		case "bank":
			require.Equal(t, []string{base + ".>"}, u.Publish)
		}
	}
}

// TestScriptOfNSCHasAllThatTheConfigurationHas, each word in quotes that the shell leaves alone.
func TestScriptOfNSCHasAllThatTheConfigurationHas(t *testing.T) {
	t.Parallel()
	all := setup(t, accounts.Options{Tenants: []string{"acme"}, Services: []string{"warehouse"}})
	script := accounts.NSC(all)
	for _, a := range all {
		require.Contains(t, script, fmt.Sprintf("nsc add account --name '%s'\n", a.Name))
		for _, u := range a.Users {
			require.Contains(t, script, fmt.Sprintf("nsc add user --account '%s' --name '%s' \\\n  --allow-pub '%s' \\\n  --allow-sub '%s'",
				a.Name, u.Name, strings.Join(u.Publish, ","), strings.Join(u.Subscribe, ",")))
		}
		for _, e := range a.Exports {
			require.Regexp(t, `nsc add export --account 'ONETURN' --name '`+regexp.QuoteMeta(e.Subject)+`' --subject '`+regexp.QuoteMeta(e.Subject)+`'.* --private\n`, script)
		}
		for n, i := range a.Imports {
			require.Contains(t, script, fmt.Sprintf("nsc generate activation --account 'ONETURN' --target-account '%s' --subject '%s' --output-file '%s-%d.jwt'\n", a.Name, i.Subject, a.Name, n+1))
		}
	}
	require.Equal(t, 1, strings.Count(script, "--response-type Stream"))
	require.Equal(t, 1, strings.Count(script, "--allow-pub-response"))
	require.Equal(t, strings.Count(script, "nsc add export"), strings.Count(script, "nsc add import"))
}

func TestConfigurationFitsTheColumns(t *testing.T) {
	t.Parallel()
	text := accounts.Config(setup(t, accounts.Options{Tenants: []string{"default", "acme", "tenant-1"}, Pools: []string{"default", "gpu"}, Services: []string{"warehouse"}}))
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 100, line)
	}
}
