package config

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/subjects"
)

// Checks of settings that depend on each other, after all were read. Each error names a setting and the smallest
// value that works.

// retentionMargin is rule 11's hour, see package provision.
const retentionMargin = time.Hour

// invalid is a finding about a setting; fix is a sentence that begins with a verb.
func invalid(setting, message, fix string) diag.Finding {
	return diag.Finding{Severity: diag.SeverityError, Field: setting, Message: message, Fix: fix}
}

// invalidValue is [invalid] with the setting as it works as its fix, for example "--slots=256".
func invalidValue(setting, message, works string) diag.Finding {
	return invalid(setting, message, "try "+works)
}

// checkAddress returns what is wrong with HOST:PORT.
func checkAddress(text string) string {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return strconv.Quote(text) + " is not HOST:PORT"
	}
	if n, err := strconv.Atoi(port); err != nil || n < -1 || n > 65535 {
		return strconv.Quote(text) + " has no port from 0 to 65535"
	}
	return ""
}

// validate checks settings that depend on each other. Given has the settings that were given, by their flags, as they were
// written; flagged has those that were given as flags.
func validate(cfg any, fields []field, given map[string]string, flagged map[string]bool) []diag.Finding {
	switch c := cfg.(type) {
	case *Worker:
		problems := append(c.validate(), checkPools("--pool", c.Pool)...)
		problems = append(problems, checkRetention(c.Retention, c.MaxTurnLife, c.MaxEventAge)...)
		if c.Embeds() {
			return append(append(problems, c.checkListen()...), c.checkStoreMax()...)
		}
		for _, f := range fields {
			if f.embedded && flagged[f.flag] {
				external := cmp.Or(given["nats"], given["context"])
				problems = append(problems, invalid("--"+f.flag, "belongs to the embedded server, which is not started because "+external+" is set", "omit one of them"))
			}
		}
		return problems
	case *Gateway:
		return append(c.NATS.validate(), c.validate()...)
	case *Publisher:
		return append(c.validate(), checkPools("--pool", c.Pool)...)
	case *Turnctl:
		return c.validate()
	case *Provision:
		problems := append(c.validate(), checkPools("--pools", c.Pools...)...)
		return append(problems, checkRetention(c.Retention, c.MaxTurnLife, c.MaxEventAge)...)
	default:
		return nil
	}
}

// validate checks what belongs together.
func (n *NATS) validate() []diag.Finding {
	var problems []diag.Finding
	add := func(wrong bool, setting, message, fix string) {
		if wrong {
			problems = append(problems, invalid(setting, message, fix))
		}
	}
	add(n.URL != "" && n.Context != "", "--context", "and --nats are mutually exclusive", "omit one of them")
	add(n.Creds != "" && n.NKey != "", "--nkey", "and --creds are mutually exclusive", "omit one of them")
	add((n.User == "") != (n.Password == ""), "--nats-user", "and the password must be set together", "set both, ONETURN_NATS_USER and ONETURN_NATS_PASSWORD, or neither")
	add((n.TLSCert == "") != (n.TLSKey == ""), "--tls-cert", "and --tls-key must be set together", "set both, for example --tls-cert=cert.pem --tls-key=key.pem")
	if _, err := subjects.New(n.Prefix); err != nil {
		problems = append(problems, invalidValue("--prefix", err.Error(), "--prefix="+subjects.DefaultPrefix))
	}
	return problems
}

func checkPools(flag string, pools ...string) []diag.Finding {
	var problems []diag.Finding
	for _, pool := range pools {
		if err := subjects.CheckPool(pool); err != nil {
			problems = append(problems, invalidValue(flag, err.Error(), flag+"="+subjects.DefaultPool))
		}
	}
	if len(pools) == 0 {
		problems = append(problems, invalidValue(flag, "no pool set", flag+"="+subjects.DefaultPool))
	}
	return problems
}

// checkRetention is rule 11: a record must outlive every turn and late event it decides.
func checkRetention(retention, life, age time.Duration) []diag.Finding {
	least := life + age + retentionMargin
	if retention >= least {
		return nil
	}
	return []diag.Finding{invalidValue(
		"--retention", retention.String()+" is shorter than --max-turn-life + --max-event-age + 1h, so a late duplicate could run a turn again",
		"--retention="+least.String(),
	)}
}

// checkStoreMax leaves room for what streams reserve, and for records besides.
func (w *Worker) checkStoreMax() []diag.Finding {
	const least = 1 << 30
	if w.StoreMax < 0 || w.StoreMax >= least {
		return nil
	}
	return []diag.Finding{invalidValue("--store-max", fmt.Sprintf("%d bytes are less than 1GiB", int64(w.StoreMax)), "--store-max=1GiB")}
}

// checkListen keeps an open server from having no password.
func (w *Worker) checkListen() []diag.Finding {
	if (w.ListenUser == "") != (w.ListenPassword == "") {
		return []diag.Finding{invalid("--listen-user", "and --listen-password must be set together", "set both, ONETURN_LISTEN_USER and ONETURN_LISTEN_PASSWORD, or neither")}
	}
	if w.Accounts != "" && w.ListenUser != "" {
		return []diag.Finding{invalid("--accounts", "and --listen-user are mutually exclusive: the file names the users", "omit one of them")}
	}
	host, port, err := net.SplitHostPort(w.Listen)
	if err != nil {
		return []diag.Finding{invalidValue("--listen", strconv.Quote(w.Listen)+" is not HOST:PORT", "--listen=127.0.0.1:4222")}
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || w.ListenPassword != "" || w.Accounts != "" {
		return nil
	}
	return []diag.Finding{invalidValue(
		"--listen", strconv.Quote(w.Listen)+" is open to the network and has no password",
		"--listen="+net.JoinHostPort("127.0.0.1", port)+", or set ONETURN_LISTEN_USER and ONETURN_LISTEN_PASSWORD, or --accounts",
	)}
}

// validate checks what decides who may use the gateway.
func (g *Gateway) validate() []diag.Finding {
	problems := checkPools("--pool", g.Pool)
	add := func(wrong bool, setting, message, fix string) {
		if wrong {
			problems = append(problems, invalid(setting, message, fix))
		}
	}
	given := g.JWKS != "" || g.Tokens != ""
	add(!given && !g.Dev, "--jwks", "and --tokens are missing: nothing decides who may use the gateway", "set --jwks with --issuer and --audience, or --tokens, or on this machine alone --dev")
	add(given && g.Dev, "--dev", "and tokens are mutually exclusive: it accepts requests without a token", "omit --dev")
	add(g.JWKS != "" && (g.Issuer == "" || g.Audience == ""), "--jwks", "needs --issuer and --audience: tokens for other services must not be valid here", "set both")
	add(g.JWKS == "" && (g.Issuer != "" || g.Audience != ""), "--issuer", "and --audience need --jwks", "set --jwks to the URL of the keys")
	const least = 4 << 10
	add(g.MaxBody < least, "--max-body", fmt.Sprintf("%d bytes are less than 4KiB", int64(g.MaxBody)), "try --max-body=1MiB")
	const mostRun = 16 << 20 // what a user may have in memory
	add(g.MaxRunBody < least || g.MaxRunBody > mostRun, "--max-run-body", fmt.Sprintf("%d bytes are not from 4KiB to 16MiB", int64(g.MaxRunBody)), "try --max-run-body=8MiB")
	add(g.MaxHeader < least, "--max-header", fmt.Sprintf("%d bytes are less than 4KiB", int64(g.MaxHeader)), "try --max-header=16KiB")
	return problems
}
