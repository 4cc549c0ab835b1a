package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The tags of a settings struct, read by reflection: names of flag, variable and key, the default, and the type
// into which a text is parsed.

// field is one setting: a struct field with its tags.
type field struct {
	value reflect.Value // settable, zero for documentation

	flag, short, help, example string
	def                        string
	hasDefault                 bool
	alias                      string   // a second environment variable, without ONETURN_
	enum                       []string // the allowed values
	min, max                   string
	kind                       string // "address": HOST:PORT
	limit                      string // the flag with the time limit of what a switch turns on
	off                        bool   // "off" means empty
	embedded                   bool   // belongs to the embedded server
}

// env is the environment variable of the field.
func (f field) env() string { return "ONETURN_" + strings.ToUpper(f.key()) }

// key is the config-file key of the field.
func (f field) key() string { return strings.ReplaceAll(f.flag, "-", "_") }

// works is the smallest value that works.
func (f field) works() string {
	switch {
	case f.example != "":
		return f.example
	case f.def != "":
		return f.def
	case len(f.enum) > 0:
		return f.enum[0]
	default:
		return "..."
	}
}

// fieldsOf lists the settings of a struct in order, embedded structs included.
func fieldsOf(cfg reflect.Value) []field {
	var fields []field
	for i := range cfg.NumField() {
		sf := cfg.Type().Field(i)
		if sf.Anonymous {
			fields = append(fields, fieldsOf(cfg.Field(i))...)
			continue
		}
		name, ok := sf.Tag.Lookup("flag")
		if !ok {
			continue
		}
		def, hasDefault := sf.Tag.Lookup("default")
		f := field{
			value: cfg.Field(i), flag: name, short: sf.Tag.Get("short"), help: sf.Tag.Get("help"), example: sf.Tag.Get("example"),
			def: def, hasDefault: hasDefault, alias: sf.Tag.Get("env"),
			min: sf.Tag.Get("min"), max: sf.Tag.Get("max"), kind: sf.Tag.Get("kind"), limit: sf.Tag.Get("limit"),
			off: sf.Tag.Get("off") == "true", embedded: sf.Tag.Get("embedded") == "true",
		}
		if enum := sf.Tag.Get("enum"); enum != "" {
			f.enum = strings.Split(enum, ",")
		}
		fields = append(fields, f)
	}
	return fields
}

// structOf returns the struct that cfg points to.
func structOf(cfg any) (reflect.Value, error) {
	v := reflect.ValueOf(cfg)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, fmt.Errorf("config: %T is not a pointer to a settings struct", cfg)
	}
	return v.Elem(), nil
}

// set parses texts into the field. It returns what is wrong, "" if nothing is. Only a list
// takes more or less than one text.
func (f field) set(texts ...string) string {
	if f.typeName() == "list" {
		return f.setList(texts)
	}
	if len(texts) != 1 {
		return "is a list, one value is wanted"
	}
	text := texts[0]
	if f.off && text == "off" {
		text = ""
	}
	if f.enum != nil {
		canonical, ok := f.inEnum(text)
		if !ok {
			return f.quote(text) + " is none of " + strings.Join(f.enum, ", ")
		}
		text = canonical
	}
	return f.parse(text)
}

// inEnum finds the allowed value that text means: case does not matter, and the log level
// may have Python's name.
func (f field) inEnum(text string) (string, bool) {
	lower := strings.ToLower(text)
	if lower == "warning" {
		lower = "warn"
	}
	if lower == "critical" {
		lower = "error"
	}
	return lower, slices.Contains(f.enum, lower)
}

// parse sets the field by its type.
func (f field) parse(text string) string {
	switch p := f.value.Addr().Interface().(type) {
	case *string:
		*p = text
		if f.kind == "address" && text != "" {
			return checkAddress(text)
		}
	case *Secret:
		*p = Secret(text)
	case *URL:
		*p = URL(text)
	case *bool:
		v, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return f.quote(text) + " is neither true nor false"
		}
		*p = v
	case *int:
		v, err := strconv.Atoi(text)
		if err != nil {
			return f.quote(text) + " is not a whole number"
		}
		*p = v
		return outOfRange(v, f.min, f.max, strconv.Atoi)
	case *time.Duration:
		v, err := time.ParseDuration(text)
		if err != nil {
			return "invalid duration " + f.quote(text) + ", a number and a unit (ms, s, m, h)"
		}
		*p = v
		return outOfRange(v, f.min, f.max, time.ParseDuration)
	case *Bytes:
		v, ok := parseBytes(text)
		if !ok {
			return "invalid size " + f.quote(text) + ", a number, optionally with kB, MB, GB, KiB, MiB or GiB, or -1"
		}
		*p = v
	default:
		return fmt.Sprintf("has the type %T, which config does not know", p)
	}
	return ""
}

// setList sets a list field. Each text may itself be comma separated.
func (f field) setList(texts []string) string {
	list := []string{}
	for _, text := range texts {
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
	}
	f.value.Set(reflect.ValueOf(list))
	return ""
}

// quote shows a wrong value, cut short, and never a secret.
func (f field) quote(text string) string {
	switch f.value.Interface().(type) {
	case Secret, URL:
		return redacted
	default:
		return fmt.Sprintf("%.60q", text)
	}
}

// outOfRange compares v with the bounds of the tags.
func outOfRange[T interface{ ~int | ~int64 }](v T, least, most string, parse func(string) (T, error)) string {
	lo, loErr := parse(least)
	hi, hiErr := parse(most)
	if loErr == nil && v < lo || hiErr == nil && v > hi {
		return fmt.Sprintf("%v is outside %s to %s", v, least, most)
	}
	return ""
}
