package bindings

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// A tool that is neither Python nor Go has exactly one block that states where it is: nats, mcp, http or
// completion. Each block has a reader; http_settings.go has what they share.

// blocks are the keys of a tool that specify where it is, and by that what kind it is.
func blocks() []string { return []string{"nats", "mcp", "http", "completion"} }

// kinds are the words that kind may be.
func kinds() []string {
	return []string{
		string(KindPython), string(KindGo), string(KindNATS), string(KindMCP), string(KindHTTP), string(KindAgent),
		string(KindPlan), string(KindOrchestrate),
	}
}

// readTarget reads where a tool is that is neither Python nor Go. Kind is the one in the manifest,
// "" if it has none.
func (o *entryReader) readTarget(n *node, kind Kind, t *toolEntry) {
	var found []string
	for _, name := range blocks() {
		if !n.get(name).absent() {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 0:
		if kind != "" && kind != KindPython && kind != KindGo && t.target == nil {
			o.refusef(t.at, "tool_without_target", "add for example "+exampleBlock(kind), "it is of kind %s, but has no address", kind)
			t.kind = kind
		}
		o.agentID(n, t)
		return
	case len(found) > 1:
		o.refusef(n.get(found[1]).at(o.file), "several_targets", "keep one of them", "it has %s", together(found))
	}
	block := n.get(found[0])
	of := map[string]Kind{"nats": KindNATS, "mcp": KindMCP, "http": KindHTTP, "completion": KindAgent}[found[0]]
	if found[0] == "nats" && kind == KindAgent {
		of = KindAgent
	}
	if kind != "" && kind != of {
		o.refusef(n.get("kind").at(o.file), "bad_kind", "remove kind", "kind is %s, but %s belongs to kind %s", kind, found[0], of)
	}
	t.kind, t.target, t.shared = of, nil, ""
	for _, key := range []string{"file", "function"} {
		if v := n.get(key); !v.absent() && (key == "file" || n.get("name").str() != "") { // else it is the tool's name
			o.warnf(v.at(o.file), "file_ignored", "remove "+key+", or "+found[0], "tool %s is of kind %s, so its %s %s is not used", t.name, of, key, quoted(v.str()))
		}
	}
	if block = o.object(block, found[0], exampleBlock(of)); block == nil {
		return
	}
	switch found[0] {
	case "nats":
		t.target = o.nats(block)
	case "mcp":
		t.target = o.mcp(block, t)
	case "http":
		t.target = o.http(block)
	case "completion":
		t.target = &target.Agent{Completions: o.completion(block)}
	}
	if at, ok := t.target.(*target.NATS); ok && of == KindAgent {
		t.target = &target.Agent{NATS: at}
	}
	o.agentID(n, t)
}

func exampleBlock(kind Kind) string {
	switch kind {
	case KindNATS:
		return "nats: {subject: orders.place}"
	case KindMCP:
		return "mcp: {server: files, tool: read_file}"
	case KindHTTP:
		return "http: {url: \"https://api.example.com/v1/orders\"}"
	default:
		return "completion: {url: \"https://llm.example.com/v1/chat/completions\", model: large}"
	}
}

// agentID names an agent: by id, else by what it is called by, else by the tool's name.
func (o *entryReader) agentID(n *node, t *toolEntry) {
	id := o.text(n, "id")
	agent, ok := t.target.(*target.Agent)
	switch {
	case ok:
		named := *agent // it may belong to a shared tool
		named.ID = cmp.Or(id, agent.ID, strings.TrimPrefix(t.name, "agent:"))
		t.target = &named
	case id != "":
		o.warnf(n.get("id").at(o.file), "key_unused", "remove it", "id belongs to an agent; tool %s is of kind %s", t.name, t.kind)
	}
}

// agentName is the name of an agent that has an id only.
func agentName(n *node) string {
	if id := n.get("id").str(); id != "" {
		return "agent:" + id
	}
	return ""
}

func (o *entryReader) nats(n *node) *target.NATS {
	to := &target.NATS{
		Subject: o.text(n, "subject"), Service: o.text(n, "service"), Endpoint: o.text(n, "endpoint"),
		Subjects: o.list(n, "subjects", "[stock.place]"), TrustMetadata: o.flag(n, "trust_metadata"),
	}
	name := regexp.MustCompile(`^[A-Za-z0-9_-]+$`) // as nats.go's package micro has it
	for _, key := range []string{"service", "endpoint"} {
		if word := n.get(key).str(); word != "" && !name.MatchString(word) {
			o.refusef(n.get(key).at(o.file), "bad_subject", "write letters, digits, - and _ only", "%s %s is not a name of NATS services", key, quoted(word))
		}
	}
	for _, pattern := range to.Subjects {
		o.subject(n.get("subjects"), pattern, true)
	}
	if to.Subject != "" {
		o.subject(n.get("subject"), to.Subject, false)
	}
	first, _, _ := strings.Cut(to.Subject, ".")
	switch {
	case o.problem != nil:
	case to.Service == "" && to.Endpoint != "":
		o.refusef(n.get("endpoint").at(o.file), "bad_subject", "add service", "nats names an endpoint and no service")
	case to.Subject == "" && to.Service == "":
		o.refusef(n.at(o.file), "tool_without_target", "write nats: {subject: orders.place} or nats: {service: orders, endpoint: place}", "nats has neither subject nor service")
	case len(to.Subjects) > 0 && to.Subject != "":
		o.refusef(n.get("subjects").at(o.file), "bad_subject", "remove subjects, or remove subject and name the service", "subjects are for a service that is found by its name, and nats names a subject")
	case to.TrustMetadata && to.Service == "" && !name.MatchString(first):
		o.refusef(n.get("trust_metadata").at(o.file), "bad_subject", "add service", "trust_metadata needs the name of a service, and %s is not one", quoted(first))
	}
	return to
}

// subject refuses what is not the subject of a service or, where a pattern may stand, a pattern
// whose first token is plain.
func (o *entryReader) subject(n *node, subject string, pattern bool) {
	first, rest, _ := strings.Cut(subject, ".")
	switch at := n.at(o.file); {
	case !pattern && strings.ContainsAny(subject, "*>"):
		o.refusef(at, "bad_subject", "write the subject of one endpoint", "subject %s has a wildcard", quoted(subject))
	case strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_"):
		o.refusef(at, "bad_subject", "write the subject of a service", "subject %s belongs to the NATS server and its clients", quoted(subject))
	case strings.ContainsAny(first, "*>"):
		o.refusef(at, "bad_subject", "write for example stock.>", "pattern %s begins with a wildcard, so the service could name a subject of another one", quoted(subject))
	case strings.ContainsAny(subject, " \t{}") || slices.Contains(strings.Split(subject, "."), "") || !wildcards(rest):
		o.refusef(at, "bad_subject", "write for example orders.place", "subject %s is not valid", quoted(subject))
	}
}

// wildcards reports whether all wildcards are whole tokens, and > is the last one.
func wildcards(pattern string) bool {
	head := strings.TrimSuffix("."+pattern, ".>")
	return !slices.ContainsFunc(strings.Split(head, "."), func(token string) bool { return token != "*" && strings.ContainsAny(token, "*>") })
}

func (o *entryReader) mcp(n *node, t *toolEntry) *target.MCP {
	to := &target.MCP{Tool: o.text(n, "tool"), Digest: o.text(n, "digest")}
	if to.Tool == "" {
		to.Tool = t.name
	}
	t.server, t.serverAt = o.text(n, "server"), n.get("server").at(o.file)
	if t.server == "" && o.problem == nil {
		o.refusef(n.at(o.file), "tool_without_target", "write mcp: {server: NAME}, and define it under servers", "mcp has no server")
	}
	if to.Digest != "" && !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(to.Digest) {
		o.refusef(n.get("digest").at(o.file), "bad_digest", "write what `turnctl tools pin` prints: sha256: and 64 hex digits", "digest %s cannot be one", quoted(to.Digest))
	}
	return to
}

func (o *entryReader) http(n *node) *target.HTTP {
	to := &target.HTTP{Network: o.network(n), Headers: o.values(n, "headers", wrongHeader)}
	methods := []string{"POST", "PUT", "PATCH"}
	if m := o.text(n, "method"); m != "" {
		if to.Method = strings.ToUpper(m); !slices.Contains(methods, to.Method) {
			o.refusef(n.get("method").at(o.file), "bad_method", "write method: POST, or omit it", "invalid method %s: must be one of %s: arguments travel in the body", n.get("method").shown(), strings.Join(methods, ", "))
		}
	}
	to.URL = o.address(n, to.Network, "http")
	return to
}

// address is the URL that a block has to have.
func (o *entryReader) address(n *node, network target.Network, block string) string {
	if n.get("url").absent() {
		o.refusef(n.at(o.file), "tool_without_target", "add url", "%s has no url", block)
		return ""
	}
	return o.url(n, network)
}

func (o *entryReader) completion(n *node) *target.Completions {
	to := &target.Completions{
		Network: o.network(n), Headers: o.values(n, "headers", wrongHeader), Model: o.text(n, "model"),
		MaxTokens: o.count(n, "max_tokens", 1<<24),
	}
	to.URL = o.address(n, to.Network, "completion")
	if to.Model == "" && n.get("model").absent() {
		o.refusef(n.at(o.file), "tool_without_target", "add model", "completion has no model")
	}
	switch s := n.get("system"); {
	case s.is(textNode):
		to.System = strings.TrimSpace(s.text)
	case !s.absent():
		o.refusef(s.at(o.file), "wrong_shape", "write a text", "system must be a text")
	}
	if v := n.get("temperature"); !v.absent() {
		t, err := strconv.ParseFloat(v.text, 64)
		const hottest = 2
		if !v.is(numberNode) || err != nil || t < 0 || t > hottest {
			o.refusef(v.at(o.file), "bad_number", "write for example temperature: 0.2", "invalid temperature %s: must be a number from 0 to 2", v.shown())
		}
		to.Temperature = &t
	}
	return to
}
