package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/nearest"
)

// Bounds of a file of tokens.
const (
	maxTokenFile = 4 << 20
	maxTokens    = 10_000
	maxFindings  = 20
)

// staticToken is one entry of the file.
type staticToken struct {
	hash      [sha256.Size]byte
	apps      []string
	user      string
	roles     []Role
	chats     []string // nil for all
	workflows []string // nil for all
	expires   time.Time
}

// tokenKeys are the keys of an entry.
func tokenKeys() []string {
	return []string{"sha256", "app", "user", "service", "roles", "workflows", "chats", "expires"}
}

// tokenFileParser collects what is wrong with a file.
type tokenFileParser struct {
	path     string
	findings []diag.Finding
}

// parseTokens reads a file of tokens, YAML or JSON. Nothing of a file with an error is used.
func parseTokens(path string, data []byte) ([]staticToken, error) {
	p := &tokenFileParser{path: path}
	tokens := p.file(data)
	if len(p.findings) > 0 {
		return nil, &diag.Error{Op: "tokens", Findings: p.findings[:min(len(p.findings), maxFindings)]}
	}
	return tokens, nil
}

func (p *tokenFileParser) failf(line int, fix, format string, args ...any) {
	place := p.path
	if line > 0 {
		place = fmt.Sprintf("%s:%d", p.path, line)
	}
	p.findings = append(p.findings, diag.Finding{Severity: diag.SeverityError, Field: place, Message: fmt.Sprintf(format, args...), Fix: fix})
}

func (p *tokenFileParser) file(data []byte) []staticToken {
	const example = "write a list with an entry for each token, for example - {sha256: HASH, app: acme, user: ada}"
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		p.failf(0, "write [] to revoke all tokens", "the file is empty")
		return nil
	case err != nil: // its text may quote the file
		p.failf(0, example, "the file is neither YAML nor JSON")
		return nil
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		p.failf(0, "keep one", "the file has more than one document")
		return nil
	}
	root := doc.Content[0]
	switch {
	case root.Kind != yaml.SequenceNode:
		p.failf(root.Line, example, "the file is not a list")
		return nil
	case len(root.Content) > maxTokens:
		p.failf(0, "use the tokens of an issuer", "the file has %d tokens: the limit is %d", len(root.Content), maxTokens)
		return nil
	}
	tokens := make([]staticToken, 0, len(root.Content))
	lines := map[[sha256.Size]byte]int{}
	for _, node := range root.Content {
		if len(p.findings) >= maxFindings {
			break
		}
		if node.Kind != yaml.MappingNode {
			p.failf(node.Line, example, "the entry is not a mapping")
			continue
		}
		token := p.entry(node)
		if first, twice := lines[token.hash]; twice && token.hash != [sha256.Size]byte{} {
			p.failf(node.Line, "keep one of them", "the token is the same as in line %d", first)
		}
		lines[token.hash] = node.Line
		tokens = append(tokens, token)
	}
	return tokens
}

func (p *tokenFileParser) entry(node *yaml.Node) staticToken {
	var t staticToken
	var service bool
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := key.Value
		if seen[name] {
			p.failf(key.Line, "keep one of them", "duplicate key %.40q", name)
			continue
		}
		seen[name] = true
		switch name {
		case "sha256":
			t.hash = p.hash(value)
		case "app":
			t.apps = p.names(name, value)
		case "user", "service":
			t.user, service = p.name(name, value), service || name == "service"
		case "roles":
			t.roles = p.roles(value)
		case "workflows":
			t.workflows = p.names(name, value)
		case "chats":
			t.chats = p.names(name, value)
		case "expires":
			t.expires = p.expiry(value)
		default:
			p.unknown(key)
		}
	}
	for _, name := range []string{"sha256", "app"} {
		if !seen[name] {
			p.failf(node.Line, "add it", "%s is missing", name)
		}
	}
	switch {
	case seen["user"] == seen["service"]:
		p.failf(node.Line, "name either its user or its service", "the token needs one of user and service")
	case service && !slices.Contains(t.roles, RoleService):
		t.roles = append(t.roles, RoleService)
	}
	if seen["app"] && t.apps != nil && len(t.apps) == 0 {
		p.failf(node.Line, "name a tenant", "app is empty")
	}
	return t
}

func (p *tokenFileParser) unknown(key *yaml.Node) {
	keys := tokenKeys()
	near := nearest.Of(key.Value, keys, nearest.Rule{
		Fold:  strings.ToLower,
		Edits: func(word, _ string) int { return max(1, len(word)/3) }, //nolint:mnd // a third of the characters
	})
	fix := "use " + strings.Join(keys, ", ")
	switch {
	case key.Value == "token":
		fix = "write its hash as sha256: the file must not contain tokens"
	case near != "":
		fix = "did you mean " + near + "?"
	}
	p.failf(key.Line, fix, "unknown key %.40q", key.Value)
}

func (p *tokenFileParser) hash(node *yaml.Node) (hash [sha256.Size]byte) {
	sum, err := hex.DecodeString(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil || len(sum) != len(hash) { // without its value, which may be a token
		p.failf(node.Line, "write the 64 hex digits of the SHA-256 of the token", "sha256 is not a hash")
		return hash
	}
	copy(hash[:], sum)
	if hash == [sha256.Size]byte{} {
		p.failf(node.Line, "write the SHA-256 of the token", "sha256 has only zeros")
	}
	return hash
}

func (p *tokenFileParser) name(key string, node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		p.failf(node.Line, "write "+key+": NAME", "%s is not a name", key)
		return ""
	}
	if problem := checkName(node.Value); problem != "" {
		p.failf(node.Line, "write "+key+": NAME", "%s %s", key, problem)
	}
	return node.Value
}

// names reads a name or a list of names. It never returns nil, which would be all names.
func (p *tokenFileParser) names(key string, node *yaml.Node) []string {
	if node.Kind != yaml.SequenceNode {
		return []string{p.name(key, node)}
	}
	names := make([]string, 0, len(node.Content))
	for _, item := range node.Content {
		names = append(names, p.name(key, item))
	}
	return names
}

func (p *tokenFileParser) roles(node *yaml.Node) []Role {
	names := p.names("roles", node)
	roles := make([]Role, 0, len(names))
	for _, name := range names {
		role := Role(name)
		if role != RoleOperator && role != RoleService {
			p.failf(node.Line, "use operator or service", "unknown role %.40q", name)
		}
		roles = append(roles, role)
	}
	return roles
}

func (p *tokenFileParser) expiry(node *yaml.Node) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, node.Value); err == nil && node.Kind == yaml.ScalarNode {
			return t
		}
	}
	p.failf(node.Line, "write for example 2027-01-31T12:00:00Z or 2027-01-31", "expires is not a time: %.40q", node.Value)
	return time.Time{}
}
