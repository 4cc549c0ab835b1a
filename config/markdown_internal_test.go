package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Markdown returns docs/configuration.md, made from the settings structs. It is exported for the test that
// compares and writes the page.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from package config: go test ./config -update -->

Each setting is a flag, an environment variable and a key of the config file, named in this order. A
flag wins over the variable, the variable over the file, the file over the default. An empty
variable counts as not set. The config file (` + "`--config`" + `, YAML or JSON) is a flat mapping of keys to
values; one file can serve all commands, and an unknown key is an error. Durations are written like
` + "`500ms`, `30s`, `24h`" + `, sizes like ` + "`512MiB`, `10GB`" + ` or ` + "`-1`" + ` for no limit, lists comma separated (in the
file also as YAML lists).

If settings are wrong, the command prints all of them, each with a value that works.
`)
	for _, section := range []struct {
		title, text string
		cfg         any
	}{
		{"Every command", "How to reach NATS, and what the command prints.", &struct {
			NATS
			Output
		}{}},
		{"worker", "Runs tools. Without `--nats` and `--context` it embeds a NATS server. " +
			"The standard variables of OpenTelemetry turn on [traces](operations.md#traces).", ownFields[Worker]()},
		{"gateway", "Serves chats to frontends: see [gateway](gateway.md). `--listen` and `--http` are its own addresses: in a file or an environment\nthat a worker uses too, give each process its own. " +
			"The standard variables of OpenTelemetry turn on [traces](operations.md#traces).", ownFields[Gateway]()},
		{"publisher", "Publishes turns and answers.", ownFields[Publisher]()},
		{"turnctl", "Every command of the operators' tool.", ownFields[Turnctl]()},
		{"turnctl provision", "Creates streams, buckets and consumers on an external server. " +
			"It updates existing ones, and\nrefuses changes that would lose records.", ownFields[Provision]()},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", section.title, section.text)
		for _, f := range fieldsOf(reflect.ValueOf(section.cfg).Elem()) {
			b.WriteString(f.entry())
		}
	}
	return b.String()
}

// ownFields returns a struct with T's fields but those it embeds.
func ownFields[T any]() any {
	var own []reflect.StructField
	for _, sf := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if len(sf.Index) == 1 && !sf.Anonymous {
			sf.Index, sf.Offset = nil, 0
			own = append(own, sf)
		}
	}
	return reflect.New(reflect.StructOf(own)).Interface()
}

// entry is the field as an item of a Markdown list.
func (f field) entry() string {
	flag := "**`--" + f.flag + "`**"
	if f.short != "" {
		flag = "**`-" + f.short + "`**, " + flag
	}
	names := "`" + f.env() + "`"
	if f.alias != "" {
		names += " or `" + f.alias + "`"
	}
	if f.flag != "config" {
		names += ", `" + f.key() + "`"
	}
	if f.def != "" {
		names += ", default `" + f.def + "`"
	}
	return wrapped("- " + flag + " (" + names + "): " + f.meaning())
}

// wrapped breaks an item of a list into lines of at most 100 characters.
func wrapped(item string) string {
	const most = 100
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(item) {
		switch n := len([]rune(word)); {
		case i == 0:
			at = n
		case at+1+n > most:
			b.WriteString("\n  ")
			at = 2 + n
		default:
			b.WriteString(" ")
			at += 1 + n
		}
		b.WriteString(word)
	}
	return b.String() + "\n"
}

// meaning is the help with what the tags add.
func (f field) meaning() string {
	text := f.help
	if f.enum != nil {
		text += " One of `" + strings.Join(f.enum, "`, `") + "`."
	}
	if f.min != "" {
		text += " From " + f.min + " to " + f.max + "."
	}
	if f.embedded {
		text += " Embedded server only."
	}
	if f.example != "" && f.def == "" && f.example != "..." {
		text += " Example: `" + f.example + "`."
	}
	return text
}
