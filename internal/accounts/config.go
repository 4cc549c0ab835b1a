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
		writeComment(&b, 2, a.About) //nolint:mnd // the depth of the account
		fmt.Fprintf(&b, "  %q {\n", a.Name)
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
	writeComment(b, 6, u.About) //nolint:mnd // the depth of the user
	fmt.Fprintf(b, "      { user: %q, password: $%s, permissions: {\n", u.Name, Password(u))
	writeList(b, "publish", u.Publish)
	writeList(b, "subscribe", u.Subscribe)
	if u.Responses {
		b.WriteString("          allow_responses: true\n")
	}
	b.WriteString("      } }\n")
}

// width is the number of columns that lines keep to, where they can be broken.
const width = 100

// writeList writes a list of subjects in lines of a readable length.
func writeList(b *strings.Builder, name string, list []string) {
	first := fmt.Sprintf("          %s: [", name)
	b.WriteString(first)
	used := len(first)
	for i, subject := range list {
		text := fmt.Sprintf("%q", subject)
		switch {
		case i == 0:
		case used+len(", ")+len(text)+len(",") > width:
			const indent = "            "
			b.WriteString(",\n" + indent)
			used = len(indent)
		default:
			b.WriteString(", ")
			used += len(", ")
		}
		b.WriteString(text)
		used += len(text)
	}
	b.WriteString("]\n")
}

// writeComment writes a text as comment lines after indent blanks.
func writeComment(b *strings.Builder, indent int, text string) {
	line := strings.Repeat(" ", indent) + "#"
	used := 0
	for word := range strings.FieldsSeq(text) {
		if used == 0 || used+len(" ")+len(word) > width {
			if used > 0 {
				b.WriteString("\n")
			}
			b.WriteString(line)
			used = len(line)
		}
		b.WriteString(" " + word)
		used += len(" ") + len(word)
	}
	b.WriteString("\n")
}

func writeShares(b *strings.Builder, a Account) {
	if len(a.Exports) > 0 {
		b.WriteString("    exports: [\n")
		for _, e := range a.Exports {
			many := ""
			if e.Many {
				many = ", response_type: stream"
			}
			writeShare(b, fmt.Sprintf("      { %s: %q%s, accounts: [%s] }", kind(e.Service), e.Subject, many, quoted(e.To)), ", accounts:")
		}
		b.WriteString("    ]\n")
	}
	if len(a.Imports) > 0 {
		b.WriteString("    imports: [\n")
		for _, i := range a.Imports {
			writeShare(b, fmt.Sprintf("      { %s: { account: %q, subject: %q } }", kind(i.Service), i.From, i.Subject), ", subject:")
		}
		b.WriteString("    ]\n")
	}
}

// writeShare writes an export or import, in two lines if it is long: the second begins with the key after
// the comma.
func writeShare(b *strings.Builder, text, key string) {
	if len(text) > width {
		text = strings.Replace(text, key, ",\n          "+strings.TrimPrefix(key, ", "), 1)
	}
	b.WriteString(text + "\n")
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
