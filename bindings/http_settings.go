package bindings

import (
	"cmp"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// Settings that several kinds of tools share: networks that an address may lead to, URLs, headers and environment
// variables, with values that are written in the manifest or read from files. Secrets that are written in clear
// are reported.

// network reads where the URL of n may lead.
func (o *entryReader) network(n *node) target.Network {
	network := target.Network{AllowHTTP: o.flag(n, "allow_http")}
	networks := n.get("allow_private")
	if networks.is(listNode) && len(networks.items) == 0 { // none is what the default is
		return network
	}
	at := networks.at(o.file)
	for _, text := range o.list(n, "allow_private", "[10.1.0.0/16]") {
		prefix, err := netip.ParsePrefix(text)
		switch address, plain := netip.ParseAddr(text); {
		case err == nil && prefix == prefix.Masked():
			network.AllowPrivate = append(network.AllowPrivate, prefix)
			if wide(prefix) {
				o.warnf(at, "network_wide", "name the networks that are meant, for example 10.1.0.0/16", "allow_private of %s: %s contains every kind of private address, including this machine", o.what, quoted(text))
			}
		case err == nil:
			o.refusef(at, "bad_network", "write "+prefix.Masked().String(), "allow_private: %s is an address in a network", quoted(text))
		case plain == nil && address.Zone() == "":
			o.refusef(at, "bad_network", "write "+netip.PrefixFrom(address, address.BitLen()).String(), "allow_private: %s is an address, not a network", quoted(text))
		default:
			o.refusef(at, "bad_network", "write for example allow_private: [10.1.0.0/16]", "allow_private: invalid CIDR %s", quoted(text))
		}
	}
	return network
}

// wide reports whether a network is larger than any private one.
func wide(p netip.Prefix) bool {
	const largest4, largest6 = 8, 7 // 10.0.0.0/8, fc00::/7
	if p.Addr().Is4() {
		return p.Bits() < largest4
	}
	return p.Bits() < largest6
}

// url reads the URL of n. It is a constant: what a call carries never decides where it goes.
func (o *entryReader) url(n *node, network target.Network) string {
	v := n.get("url")
	text := o.text(n, "url")
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	bad := func(fix, why string) { o.refusef(v.at(o.file), "bad_url", fix, "url %s", why) }
	switch {
	case strings.ContainsAny(text, "{}") || strings.Contains(text, "$(") || strings.Contains(text, "<"):
		bad("write the URL as it is; arguments travel in the body", "has a template in it, and nothing is filled in")
	case err != nil:
		bad("write for example https://api.example.com/v1/orders", "cannot be read")
	case u.Scheme != "https" && u.Scheme != "http":
		bad("write https://…", "has no scheme https")
	case u.Hostname() == "":
		bad("write for example https://api.example.com/v1/orders", "has no host")
	case u.User != nil:
		bad("put them into headers: {Authorization: {file: secret.txt}}", "has credentials in it, which logs and people would see")
	case u.Fragment != "":
		bad("remove what follows #", "has a fragment, which no server gets")
	case u.Scheme == "http" && !network.AllowHTTP:
		bad("write https://…, or add allow_http: true", "is not encrypted")
	default:
		query := u.Query()
		for _, key := range slices.Sorted(maps.Keys(query)) {
			if secretName(key) && query.Get(key) != "" {
				o.warnf(v.at(o.file), "secret_in_clear", "put it into headers: {Authorization: {file: secret.txt}}", "the URL of %s has %s in its query, which looks like a secret", o.what, quoted(key))
			}
		}
		return text
	}
	return ""
}

// values reads headers or environment variables. wrong returns what is wrong with a name, "" if it is
// valid.
func (o *entryReader) values(n *node, key string, wrong func(name string) string) map[string]target.Value {
	v := n.get(key)
	if v.absent() {
		return nil
	}
	if !v.is(mapNode) {
		o.refusef(v.at(o.file), "wrong_shape", "write for example "+key+": {NAME: {file: secret.txt}}", "%s must be a map", key)
		return nil
	}
	const most = 100
	if len(v.keys) > most {
		o.refusef(v.at(o.file), "too_many_entries", "remove some", "%s has more than %d entries", key, most)
		return nil
	}
	all := make(map[string]target.Value, len(v.keys))
	for i, name := range v.keys {
		if why := wrong(name); why != "" {
			o.refusef(v.items[i].at(o.file), "bad_value", "use another name", "%s: %s %s", key, quoted(name), why)
			continue
		}
		all[name] = o.value(v.items[i], name)
	}
	return all
}

// value reads a text, or where a file has it.
func (o *entryReader) value(n *node, name string) target.Value {
	at := n.at(o.file)
	switch {
	case n.is(mapNode):
		o.problem = cmp.Or(o.problem, o.strict(n, o.file, "value"))
		file := n.get("file").str()
		if file == "" || strings.ContainsFunc(file, control) {
			o.refusef(at, "bad_value", "write for example "+name+": {file: secret.txt}", "file of %s is missing", quoted(name))
			return target.Value{}
		}
		v := target.Value{File: o.absPath(file)}
		if p := n.get("prefix"); p.is(textNode) && !strings.ContainsFunc(p.text, control) {
			v.Prefix = p.text
		} else if !p.absent() {
			o.refusef(at, "bad_value", `write for example prefix: "Bearer "`, "the prefix of %s is not a text of one line", quoted(name))
		}
		if info, err := os.Stat(v.File); !filepath.IsAbs(file) && (err != nil || info.IsDir()) {
			o.warnf(at, "value_file_missing", "create it before the tool is called, or correct the name", "%s takes %s from the file %s, which is not there", o.what, name, quoted(file))
		}
		return v
	case n.absent(), n.is(listNode), strings.ContainsFunc(n.text, control):
		o.refusef(at, "bad_value", "write a text, or {file: secret.txt}", "%s has no text of one line", quoted(name))
		return target.Value{}
	}
	if n.text != "" && (secretName(name) || secretText(n.text)) {
		o.warnf(at, "secret_in_clear", "put it into a file that only the worker reads, and write "+name+": {file: secret.txt}",
			"%s of %s looks like a secret and is written in the manifest", name, o.what)
	}
	return target.Value{Text: n.text}
}

// absPath returns the absolute name of a file that is named relative to the manifest's folder.
func (o *entryReader) absPath(file string) string {
	file = filepath.FromSlash(file)
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(o.folder(), file)
}

// wrongHeader returns why a manifest cannot set a header, "" if it can.
func wrongHeader(name string) string {
	const allowed = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
	own := []string{
		"host", "content-type", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "accept-encoding",
		"idempotency-key", "x-fencing-token", "traceparent", "tracestate",
	}
	switch lower := strings.ToLower(name); {
	case name == "" || strings.Trim(lower, allowed) != "":
		return "is not a valid header name"
	case slices.Contains(own, lower) || strings.HasPrefix(lower, "oneturn-"):
		return "is set by the worker"
	}
	return ""
}

// wrongVariable returns why a name is not valid for an environment variable, "" if it is.
func wrongVariable(name string) string {
	const letters = "_0123456789abcdefghijklmnopqrstuvwxyz"
	if lower := strings.ToLower(name); name == "" || strings.Trim(lower, letters) != "" || name[0] >= '0' && name[0] <= '9' {
		return "is not a valid name of an environment variable"
	}
	return ""
}

// secretName reports names of what should not stand in a manifest.
func secretName(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	for i, word := range words {
		switch word {
		case "authorization", "cookie", "password", "passwd", "secret", "credentials", "apikey", "token":
			return true
		case "key":
			if i > 0 && slices.Contains([]string{"api", "access", "private", "secret", "subscription"}, words[i-1]) {
				return true
			}
		}
	}
	return false
}

// secretText reports texts that begin as well-known kinds of secrets do.
func secretText(text string) bool {
	for _, begin := range []string{"Bearer ", "Basic ", "sk-", "ghp_", "github_pat_", "xoxb-", "xoxp-", "AKIA", "-----BEGIN"} {
		if len(text) > len(begin)+4 && strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}
