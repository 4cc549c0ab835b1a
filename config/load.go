package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/oneturn/oneturn/diag"
)

// Flags are declared from the fields of a settings struct (struct_fields.go) and collected as texts. [Load] then
// takes each setting from the first source that has it (flag, environment, file, default) and reports all errors
// together.

// BindFlags adds a flag to fs for every setting of cfg, a pointer to a settings struct. Parsing
// only collects texts; [Load] judges them, together with the other sources. Mistakes of parsing
// are for [FlagError].
func BindFlags(fs *pflag.FlagSet, cfg any) error {
	v, err := structOf(cfg)
	if err != nil {
		return err
	}
	for _, f := range fieldsOf(v) {
		help := f.help
		if f.enum != nil {
			help += " One of: " + strings.Join(f.enum, ", ") + "."
		}
		flag := fs.VarPF(&flagText{kind: f.typeName()}, f.flag, f.short, help)
		flag.DefValue = f.def
		if f.typeName() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
	return nil
}

// FlagError makes an error of pflag one that helps: it names the flag that was probably meant,
// and the command that lists all of them.
func FlagError(command string, fs *pflag.FlagSet, err error) error {
	fix := "see " + command + " --help"
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if meant := closestSetting(unknown.GetSpecifiedName(), names); meant != "" {
			fix = "did you mean --" + meant + "? " + fix
		}
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return fmt.Errorf("--%s: %q is not %s; %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid.GetFlag()), fix)
	}
	return fmt.Errorf("%w: %s", err, fix)
}

// wanted names the values that a flag of pflag's own types takes.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64", "uint", "uint64":
		return "a whole number, for example --" + f.Name + "=20"
	case "duration":
		return "a duration (a number and a unit: ms, s, m, h), for example --" + f.Name + "=1h"
	case "bool":
		return "true or false"
	default:
		return "a valid " + f.Value.Type()
	}
}

// flagText is a flag that takes every text, so that all errors can be reported together.
type flagText struct {
	kind  string
	texts []string // a flag given again adds to a list and replaces anything else
}

func (t *flagText) Set(text string) error { t.texts = append(t.texts, text); return nil }
func (t *flagText) Type() string          { return t.kind }

// String is empty: pflag prints it in help and errors, and the text may be a secret.
func (t *flagText) String() string { return "" }

// typeName is the name of the value in the help of a flag.
func (f field) typeName() string {
	switch f.value.Interface().(type) {
	case []string:
		return "list"
	case URL:
		return "urls"
	case Bytes:
		return "size"
	case Secret:
		return "secret"
	case time.Duration:
		return "duration"
	default:
		if f.kind == "address" {
			return "host:port"
		}
		return f.value.Type().Name() // string, bool, int
	}
}

// source is where a value comes from.
type source struct {
	name  string // how people write it: "--slots", "ONETURN_SLOTS", "slots in worker.yaml:3"
	texts []string
	fix   string // format of the fix, takes the value: "--slots=%s"
}

// Load fills cfg, a pointer to a settings struct: defaults, then the config file, then the
// environment, then the flags of fs that were given. fs may be nil; env is [os.LookupEnv] in a
// command. An empty variable counts as not set. The error is a *[diag.Error] that lists everything that
// is wrong; each finding has as Field the setting as it was written: "--slots", "ONETURN_SLOTS",
// "slots in worker.yaml:3". No text contains a secret.
func Load(fs *pflag.FlagSet, env func(string) (string, bool), cfg any) error {
	v, err := structOf(cfg)
	if err != nil {
		return err
	}
	fields := fieldsOf(v)
	var problems []diag.Finding
	entries, fileProblems := loadFile(fields, fs, env)
	problems = append(problems, fileProblems...)
	written, flagged := map[string]string{}, map[string]bool{}
	for _, f := range fields {
		if f.hasDefault {
			if wrong := f.set(f.def); wrong != "" {
				problems = append(problems, invalid(f.flag, "its default "+wrong, "report this as a bug"))
			}
		}
		src, given := f.source(entries, fs, env)
		if !given {
			continue
		}
		written[f.flag], flagged[f.flag] = src.name, fs != nil && fs.Changed(f.flag)
		switch wrong := f.set(src.texts...); {
		case wrong == "":
		case flagged[f.flag] && f.typeName() == "bool":
			problems = append(problems, invalid(src.name, wrong, f.switchFix()))
		default:
			problems = append(problems, invalidValue(src.name, wrong, fmt.Sprintf(src.fix, f.works())))
		}
	}
	if len(problems) == 0 {
		problems = append(problems, validate(cfg, fields, written, flagged)...)
	}
	if len(problems) > 0 {
		return &diag.Error{Op: "configuration", Findings: problems}
	}
	return nil
}

// switchFix is the fix for a switch with a value that it does not take.
func (f field) switchFix() string {
	fix := fmt.Sprintf("--%s is a switch: use it without a value", f.flag)
	if f.limit != "" {
		fix += fmt.Sprintf(", and set the time limit with --%[1]s, for example --%[1]s=1m", f.limit)
	}
	return fix
}

// source returns the winning source of f.
func (f field) source(entries map[string]fileEntry, fs *pflag.FlagSet, env func(string) (string, bool)) (source, bool) {
	if texts, ok := f.fromFlag(fs); ok {
		return source{"--" + f.flag, texts, "--" + f.flag + "=%s"}, true
	}
	for _, name := range []string{f.env(), f.alias} {
		if name == "" {
			continue
		}
		if text, ok := env(name); ok && text != "" {
			return source{name, []string{text}, name + "=%s"}, true
		}
	}
	if entry, ok := entries[f.key()]; ok {
		return source{f.key() + " in " + entry.at, entry.texts, f.key() + ": %s"}, true
	}
	return source{}, false
}

// fromFlag returns the texts of the flag of f, if it was given.
func (f field) fromFlag(fs *pflag.FlagSet) ([]string, bool) {
	if fs == nil || !fs.Changed(f.flag) {
		return nil, false
	}
	text, ok := fs.Lookup(f.flag).Value.(*flagText)
	if !ok {
		return nil, false
	}
	if f.typeName() == "list" {
		return text.texts, true
	}
	return text.texts[len(text.texts)-1:], true
}

// loadFile reads the config file that flag or environment name.
func loadFile(fields []field, fs *pflag.FlagSet, env func(string) (string, bool)) (map[string]fileEntry, []diag.Finding) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.flag == "config" })
	if i < 0 {
		return nil, nil
	}
	src, given := fields[i].source(nil, fs, env)
	if !given {
		return nil, nil
	}
	name := src.texts[0]
	data, err := readLimited(name)
	if err != nil {
		return nil, []diag.Finding{invalid(src.name, fmt.Sprintf("cannot be read: %v", err), "name a readable file, or omit "+src.name)}
	}
	return parseFile(name, data)
}

// readLimited reads a file of at most 1 MiB.
func readLimited(name string) ([]byte, error) {
	const limit = 1 << 20
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("config file %s: is not a plain file of at most %d bytes", name, limit)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	return data, nil
}
