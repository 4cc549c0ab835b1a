package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Markdown returns docs/configuration.md, made from the settings structs.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from package config: go test ./config -update -->

Each setting is a flag, an environment variable and a key of the config file. A flag wins over the
variable, the variable over the file, the file over the default. An empty variable counts as not set.
The config file (` + "`--config`" + `, YAML or JSON) is a flat mapping of keys to values; one file can serve all
commands, and an unknown key is an error. Durations are written like ` + "`500ms`, `30s`, `24h`" + `, sizes like
` + "`512MiB`, `10GB`" + ` or ` + "`-1`" + ` for no limit, lists comma separated (in the file also as YAML lists).

When settings are wrong, the command prints all of them at once, each with a value that works.
`)
	for _, section := range []struct {
		title, text string
		cfg         any
	}{
		{"Every command", "How to reach NATS, and how the command talks.", &struct {
			NATS
			Output
		}{}},
		{"worker", "Runs tools. Without `--nats` and `--context` it embeds a NATS server. " +
			"The standard variables of OpenTelemetry turn on [traces](operations.md#traces).", ownFields[Worker]()},
		{"publisher", "Publishes turns and answers.", ownFields[Publisher]()},
		{"turnctl", "Every command of the operators' tool.", ownFields[Turnctl]()},
		{"turnctl provision", "Makes streams, buckets and consumers on a server of one's own. " +
			"It changes what is there and refuses what would lose records.", ownFields[Provision]()},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", section.title, section.text)
		b.WriteString("| flag | variable | file key | default | meaning |\n|---|---|---|---|---|\n")
		for _, f := range fieldsOf(reflect.ValueOf(section.cfg).Elem()) {
			b.WriteString(f.row())
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

// row is the field as a line of a Markdown table.
func (f field) row() string {
	flag := "`--" + f.flag + "`"
	if f.short != "" {
		flag = "`-" + f.short + "`, " + flag
	}
	env := "`" + f.env() + "`"
	if f.alias != "" {
		env += ", `" + f.alias + "`"
	}
	key := "`" + f.key() + "`"
	if f.flag == "config" {
		key = ""
	}
	def := ""
	if f.def != "" {
		def = "`" + f.def + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", flag, env, key, def, f.meaning())
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
	return strings.ReplaceAll(text, "|", "\\|")
}
