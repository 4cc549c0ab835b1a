package tools

import (
	"strings"
	"unicode"

	"github.com/oneturn/oneturn/events"
)

// The result of a tool that makes artifacts may name the artifact and the skill that made it:
//
//	{"artifact_id": "…", "skill_id": "…", "artifact": {…}, "_metadata": {…}}

// MetaExecution is the key in `_meta` of results of systemprompt's servers under which they report what made the result.
const MetaExecution = "io.systemprompt/execution"

// ArtifactID returns the id of the artifact that a result names, a value tree: the text `artifact_id` at its top. "" if it
// has none.
func ArtifactID(result any) string { return idIn(result, "artifact_id") }

// SkillID returns the id of the skill that a result names: the first text `skill_id` at its top, in `artifact`, in
// `_metadata`, in `_meta` under [MetaExecution]. "" if it has none; [Result.Skill] comes after them.
func SkillID(result any) string {
	const name = "skill_id"
	for _, path := range [...][]string{{}, {"artifact"}, {"_metadata"}, {"_meta", MetaExecution}} {
		place := result
		for _, key := range path {
			object, _ := place.(map[string]any)
			place = object[key]
		}
		if id := idIn(place, name); id != "" {
			return id
		}
	}
	return ""
}

// idIn returns a text of an object that may be an id on the wire, "" if it is absent or something else.
func idIn(v any, name string) string {
	object, _ := v.(map[string]any)
	id, _ := object[name].(string)
	if len(id) > events.MaxIDBytes || strings.ContainsFunc(id, unicode.IsControl) {
		return ""
	}
	return id
}
