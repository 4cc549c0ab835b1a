package accounts

import (
	"fmt"
	"strings"
)

// Config returns the accounts as a part of the configuration of nats-server. Passwords are
// references to environment variables, see [Password].
func Config(all []Account) string {
	var b strings.Builder
	b.WriteString("accounts {\n")
	for i, a := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "  # %s\n  %q {\n", a.About, a.Name)
		if a.JetStream {
			b.WriteString("    jetstream: enabled\n")
		}
		b.WriteString("    users: [\n")
		for _, u := range a.Users {
			writeUser(&b, u)
		}
		b.WriteString("    ]\n")
		writeShares(&b, a)
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func writeUser(b *strings.Builder, u User) {
	fmt.Fprintf(b, "      # %s\n      { user: %q, password: $%s, permissions: {\n", u.About, u.Name, Password(u))
	writeList(b, "publish", u.Publish)
	writeList(b, "subscribe", u.Subscribe)
	if u.Responses {
		b.WriteString("          allow_responses: true\n")
	}
	b.WriteString("      } }\n")
}

// writeList writes a list of subjects in lines of a readable length.
func writeList(b *strings.Builder, name string, list []string) {
	const width = 170
	fmt.Fprintf(b, "          %s: [", name)
	used := 0
	for i, subject := range list {
		text := fmt.Sprintf("%q", subject)
		switch {
		case i == 0:
		case used+len(text) > width:
			b.WriteString(",\n            ")
			used = 0
		default:
			b.WriteString(", ")
		}
		b.WriteString(text)
		used += len(text) + 2
	}
	b.WriteString("]\n")
}

func writeShares(b *strings.Builder, a Account) {
	if len(a.Exports) > 0 {
		b.WriteString("    exports: [\n")
		for _, e := range a.Exports {
			many := ""
			if e.Many {
				many = ", response_type: stream"
			}
			fmt.Fprintf(b, "      { %s: %q%s, accounts: [%s] }\n", kind(e.Service), e.Subject, many, quoted(e.To))
		}
		b.WriteString("    ]\n")
	}
	if len(a.Imports) > 0 {
		b.WriteString("    imports: [\n")
		for _, i := range a.Imports {
			fmt.Fprintf(b, "      { %s: { account: %q, subject: %q } }\n", kind(i.Service), i.From, i.Subject)
		}
		b.WriteString("    ]\n")
	}
}

func kind(service bool) string {
	if service {
		return "service"
	}
	return "stream"
}

func quoted(list []string) string {
	texts := make([]string, 0, len(list))
	for _, text := range list {
		texts = append(texts, fmt.Sprintf("%q", text))
	}
	return strings.Join(texts, ", ")
}
