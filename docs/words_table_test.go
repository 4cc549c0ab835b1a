package docs_test

import "regexp"

// privateWord is a row of the word list: an expression that a newcomer has to learn first, and the standard words for it.
type privateWord struct {
	row     string         // its name in reports
	hint    string         // texts without any of these parts, separated by |, are not searched: regular expressions are slow
	find    *regexp.Regexp // in lower case; lines are joined by a space
	write   string         // what to write instead
	example string         // is found

	allowed        *regexp.Regexp // a match that overlaps one of these does not count
	allowedExample string         // is not found
	except         []string       // prefixes of paths that may use the word in its ordinary meaning
	only           []string       // if set, prefixes of the paths in which the word is private
}

func expr(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// injected are the files in which a fault is one that a test injects.
var injected = []string{
	"internal/test/", "internal/failpoint/", "oneturntest/audit", "oneturntest/checker", "docs/faults.md", "docs/faults_test.go", "docs/testing.md", "cmd/worker/release_test.go",
	"Makefile", ".ci/run",
}

var privateWords = []privateWord{
	{row: "mend", hint: "mend", find: expr(`\bmend(s|ed|ing)?\b`), write: "fix, repair, hint", example: "what is wrong and its mend"},
	{row: "desk", hint: "desk", find: expr(`\bdesks?\b`), write: "host", example: "the desk of a call", except: []string{"examples/07-test-your-tool/", "internal/test/bench/payloads/"}},
	{row: "blot", hint: "blot", find: expr(`\bblot(s|ted|ting)?\b`), write: "redact", example: "blots secrets"},
	{
		row: "nobody", hint: "body|anyone|whoever|whomever", find: expr(`\b(no|some|any|every)body\b|\banyone\b|\bwho(m)?ever\b`),
		write: "another worker, the caller, the owner; passive", example: "that nobody has answered",
		allowed: expr(`^(nobody|anyone) ?$|"nobody"|oneturn-anyone|_inbox\.nobody`), allowedExample: "nobody", // an id in tests
	},
	{row: "tell", hint: "tell|told", find: expr(`\b(tells?|told|telling)\b`), write: "report, notify, distinguish", example: "its tool is told so"},
	{row: "say", hint: "say|said", find: expr(`\b(say|says|said|saying)\b`), write: "state, specify, return", example: "what the manifest says"},
	{
		row: "word", hint: "word", find: expr(`\b(no|the last|the|a|its) word (of|on|from|for|that)\b|\bin (one |its )?words?\b`),
		write: "message, text, code", example: "no word from the service",
	},
	{
		row: "fault", hint: "fault", find: expr(`\bfault(s|y)?\b`), write: "violation, diagnostic, error", example: "each fault of the data",
		allowed: expr(`faults\.md|(injected|planted|segmentation) faults?|faults (that tests|under load)|json:"faults`), allowedExample: "all injected faults: docs/faults.md",
		except: injected,
	},
	{row: "anew", hint: "anew", find: expr(`\banew\b`), write: "again, re-create, restart", example: "starts anew"},
	{row: "wish", hint: "wish", find: expr(`\bwish(es|ed)?\b`), write: "cancel request", example: "the wish to cancel"},
	{row: "exhibit", hint: "exhibit|inquir", find: expr(`\b(exhibit|inquir)\w*`), write: "question, interaction", example: "an inquiry"},
	{row: "confide", hint: "confid", find: expr(`\bconfid(e|es|ed|ing|ants?)\b`), write: "hold secrets", example: "confides a secret"},
	{row: "evict", hint: "linger|sacrific|vouch", find: expr(`\b(linger|sacrific|vouch)\w*`), write: "grace period; evict; trust", example: "sacrificed"},
	{row: "lane", hint: "lane|stray", find: expr(`\blanes?\b|\bstrays?\b`), write: "queue; orphan", example: "one lane each"},
	{
		row: "book", hint: "book", find: expr(`\bbook(s|ed|ing)?\b`), write: "reserve", example: "books a slot",
		except: []string{"examples/04-mcp/", "docs/mcp-servers.md"},
	},
	{
		row: "door", hint: "door", find: expr(`\bdoors?\b`), write: "endpoint", example: "the door for requests",
		allowed: expr(`^door ?$|oneturn\.door`), allowedExample: "oneturn.door", // a label of metrics and an attribute of spans
		only: []string{"gateway/", "cmd/gateway/", "internal/test/bench/", "internal/test/gatewaychaos/", "docs/gateway.md"},
	},
	{row: "taker", hint: "taker", find: expr(`\btakers?\b`), write: "new owner", example: "the taker runs it"},
	{
		row: "crowd", hint: "crowd|strange", find: expr(`\bcrowd(s|ed)?\b|\bstrange(rs?)?\b`),
		write: "overload; unexpected, foreign", example: "a crowded chat",
	},
	{
		row: "aside", hint: "aside", find: expr(`\basides?\b`), write: "defer, deferred", example: "put aside",
		allowed: expr(`aside from`), allowedExample: "aside from this",
	},
	{
		row: "give_back", hint: " back", find: expr(`\b(gives?|gave|given|giving) (\w+ ){0,4}?back\b`),
		write: "release, requeue, nak", example: "gives the message back",
	},
	{row: "hand_on", hint: "hand", find: expr(`\bhand(s|ed|ing)? (\w+ ){0,3}?(over|on)\b|\bhands? (it|them|a|n|the) `), write: "pass", example: "hands the turn over"},
	{
		row: "letter", hint: "letter", find: expr(`\bletters?\b`), write: "dead letter", example: "every letter",
		allowed: expr(`dead[ -]letters?|json:"letters"|letters? case|letters?,? (and )?(digits|numbers)`), allowedExample: "a dead letter",
		only: []string{"cmd/turnctl/", "handlers/", "internal/deadletter/", "subjects/", "docs/operations.md", "docs/journal.md", "docs/wire-contract.md"},
	},
	{row: "at_once", hint: "at once", find: expr(`\bat once\b`), write: "immediately; at the same time", example: "ends at once"},
	{row: "beside", hint: "beside", find: expr(`\bbeside\b`), write: "next to, with", example: "beside it"},
	{
		row: "behind", hint: "behind", find: expr(`\bbehind\b`), write: "after", example: "behind the response",
		allowed: expr(`behind (a|an|the) (proxy|load|firewall)|lag behind`), allowedExample: "behind a proxy",
	},
	{row: "go_on", hint: " on", find: expr(`\b(go|goes|went|going|gone) on\b`), write: "continue, resume", example: "goes on", allowed: expr(`in go on`), allowedExample: "written in go on nats"},
	{row: "come_back", hint: " back", find: expr(`\b(comes?|came|coming) back\b`), write: "is redelivered, returns", example: "comes back"},
	{
		row: "becomes_of", hint: " of", find: expr(`\b(becomes?|became|comes?|came) of\b`),
		write: "outcome, result", example: "what becomes of it",
	},
	{
		row: "hold_against", hint: " against", find: expr(`\b(holds?|held) [^.]{1,60}? against\b`),
		write: "check against", example: "holds the data against the schema",
	},
	{row: "put_up", hint: " up", find: expr(`\b(puts?|putting) (\w+ ){0,3}?up\b`), write: "display, create", example: "put a question up"},
	{row: "in_force", hint: "force|of life", find: expr(`\bin force\b|\bsigns? of life\b`), write: "active; heartbeat", example: "a sign of life"},
	{
		row: "former_life", hint: " life| lives", find: expr(`\b(former|next|this|another|earlier) (life|lives)\b`),
		write: "generation", example: "a former life of the turn",
	},
	{row: "of_late", hint: "late", find: expr(`\bof late\b|\blately\b`), write: "recently", example: "seen lately"},
	{row: "screen", hint: "screen", find: expr(`\b(on|from|of) the screen\b`), write: "displayed, frontend", example: "on the screen"},
	{
		row: "cites", hint: "design |issue |seed", find: expr(`\b(design|issue) \d|\bseed ?\d{3}\b`),
		write: "link into docs/", example: "see design 12",
	},
	{
		row: "is_no", hint: " no ", find: expr(`\b(is|are|was|were) no \w+`), write: "is not a; invalid", example: "is no number",
		allowed:        expr(`\bthere (is|are|was|were) no |\b(is|are|was|were) no (longer|more|less|such|other)\b`),
		allowedExample: "there is no file and it is no longer used",
	},
	{
		row: "of_own", hint: " own", find: expr(`\bof (its|his|their|our|your|one's) own\b|\bone's own\b`),
		write: "separate, dedicated, own X", example: "a stream of its own",
	},
	{row: "that_of", hint: " of", find: expr(`\b(that|those) of\b`), write: "repeat the noun", example: "that of the turn"},
	{
		row: "who", hint: "who", find: expr(`[,;:.] who \w+|^who \b|\b(by|for|to|from|with|has|lets|in) who\b`),
		write: "the caller that", example: "named by who calls it",
		allowed: expr(`[,;:.] who (can|may)\b`), allowedExample: "a user, who may see it",
	},
	{
		row: "a_look", hint: " look", find: expr(`\b(a|the|one|each|last|first|next|every|second|two) looks?\b`),
		write: "read, check, scan", example: "the next look",
	},
	{
		row: "take_note", hint: "note|behind|want", find: expr(`\btak(e|es|ing) note\b|\bleft behind\b|\bfor want of\b`),
		write: "record; abandon; lack of", example: "takes note of it",
	},
}

// privateNames may not be part of a name in Go or Python, nor of the name of a file: see privateWords for what to write.
// A fault is one that a test injects.
var privateNames = expr(`^(mend(s|ed|ing)?|desks?|blot(s|ted)?|wish(es|ed)?|inquir(e|y|ies)|exhibits?|told|tells?|sa(y|ys|id)|asides?|lanes?|` +
	`lingers?|sacrificed?|confid(e|es|ants?)|vouched|takers?|crowd(s|ed)?|strangers?|(no|some|any|every)body|bury|voices?|fault(s|y)?)$`)

// privateFiles are names of files that do not say what the file is about.
var privateFiles = expr(`^(stray|fit|outside|older|conclude|due|draft|look|owner|screen|flight|waits|news|crowd|former|newer|office|full|given_up|places_kept|giveback|verdict|room|desk)$`)
