package events

// InputText returns the text of an answer to an input request ([InteractionInputRequest]), and false
// if the value has none. A text, a number, true and false are one; an object has it, as a text, as
// text, response, value, input, user_input or content. Null, an empty object and one with nothing but a
// status, which is how a request is dismissed, are the empty text.
func InputText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case []any:
		return "", false
	case map[string]any:
		return textOf(v)
	}
	text, err := AppendJSON(nil, value)
	return string(text), err == nil
}

func textOf(object map[string]any) (string, bool) {
	for _, key := range []string{"text", "response", "value", "input", "user_input", "content"} {
		if text, ok := object[key].(string); ok {
			return text, true
		}
	}
	_, status := object["status"].(string)
	return "", len(object) == 0 || status && len(object) == 1
}
