package secrets

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// This file decides for one entry of a document whether it marks a secret: by a name with a value that sets it
// (marksSecret), or by a kind of field such as password (kindOfSecret). The words are compared in lower case without
// anything but letters and digits. secret_question.go finds the entries.

// What frontends mark a password field with. All names and kinds are as [word] has them, and are
// looked for anywhere in a name or kind: isPasswordField, android:inputType, ui-widget.
//
//nolint:gochecknoglobals // tables that nothing changes
var (
	// namesOfMarks set a field apart by a value that [isSet] takes: maskInput: true.
	namesOfMarks = []string{
		"password", "passwd", "passphrase", "passcode", "secret", "secure", "mask", "obscur", "conceal", "sensitive", "redact",
		"writeonly", "noecho", "hideinput", "inputhidden", "hidetext", "hiddentext", "textsecurity",
	}
	// namesOfKinds end the names of entries that specify what a field is: type: password.
	namesOfKinds = []string{
		"type", "format", "widget", "mode", "variant", "control", "component", "element", "kind", "field", "input", "keyboard",
		"autocomplete", "autofill", "autofillhint", "autofillhints", "inputhints", "methodhints", "style", "scope", "purpose", "interface",
		"transformation", "render", "renderer", "renderas", "editor", "display", "appearance", "presentation", "descriptor", "descriptors",
		"typename", "tagname", "componentname", "widgetname", "class", "classname",
	}
	// shortNamesOfKinds are such names, too, if nothing stands in front of them.
	shortNamesOfKinds = []string{"as", "is", "tag", "role", "ui"}
	// partsOfKinds are in kinds that hide what is typed, or that are secrets by themselves.
	partsOfKinds = []string{
		"password", "passwd", "passphrase", "passcode", "secret", "obscur", "masked", "conceal", "sensitive", "redact", "noecho", "hiddentext",
		"securefield", "securetext", "secureinput", "secureentry", "securestring", "onetimecode", "securitycode", "inputotp", "otpinput",
	}
	// wholeKinds are such kinds, too, and mean something else as a part.
	wholeKinds = []string{"secure", "otp", "smsotp", "cccsc"}
	// onWords set a mark.
	onWords = []string{
		"true", "yes", "on", "1", "y", "t", "always", "required", "enabled", "password", "secret", "hidden", "masked",
		"disc", "discs", "dot", "dots", "circle", "square", "bullet", "bullets", "star", "stars", "asterisk", "asterisks",
	}
	// offWords cancel a mark by its value.
	offWords = []string{"false", "no", "off", "0", "n", "f", "never", "none"}
	// unmarked takes out of a name or kind what has the letters of a mark and marks nothing.
	unmarked = strings.NewReplacer(
		"casesensitive", "", "insensitive", "", "accentsensitive", "", "nonsensitive", "", "notsensitive", "", "insecure", "", "unsecure", "",
		"unmask", "", "bitmask", "", "netmask", "", "passwordless", "", "secretar", "", "nopassword", "",
	)
	// aboutPasswords end names and kinds of what speaks of a password and does not take one.
	aboutPasswords = []string{"reset", "strength", "policy", "rules", "hint"}
	// lookalikes are letters of other alphabets, each before the ASCII letter that it looks like.
	lookalikes = []rune("аaеeоoрpсcуyхxѕsіiјjһhԁdԝwѡwкkмmтtӏlαaοoρpνvκkεeιiτtωwɑaɡgıiſs")
)

// typedCharacters stand for what is typed.
const typedCharacters = "*•●∙·⋅◦○■▪"

// marksSecret reports whether one entry of an object means that typed text must not be visible.
func marksSecret(name string, value any) bool {
	w := word(name)
	switch {
	case hasPart(w, namesOfMarks) && isSet(value):
		return true
	case w == "show" || strings.HasSuffix(w, "char") || strings.HasSuffix(w, "character"):
		return hidesCharacters(value)
	case w == "echo":
		return isOff(value)
	case slices.Contains(shortNamesOfKinds, w) || slices.ContainsFunc(namesOfKinds, func(end string) bool { return strings.HasSuffix(w, end) }):
		return kindOfSecret(value) || kindByNumber(w, value)
	}
	return false
}

// hasPart reports whether a word has one of the parts, and means it.
func hasPart(w string, parts []string) bool {
	if slices.ContainsFunc(aboutPasswords, func(end string) bool { return strings.HasSuffix(w, end) }) {
		return false
	}
	w = unmarked.Replace(w)
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(w, part) })
}

// isSet reports whether the value of a mark sets it.
func isSet(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case json.Number:
		return !isZero(v)
	case string:
		return slices.Contains(onWords, word(v)) || hidesCharacters(v)
	}
	return false
}

// isOff reports whether a value cancels what its name means.
func isOff(value any) bool {
	switch v := value.(type) {
	case bool:
		return !v
	case json.Number:
		return isZero(v)
	case string:
		return slices.Contains(offWords, word(v)) || hasPart(word(v), partsOfKinds)
	}
	return false
}

// isZero reports whether a number is 0, whatever its exponent.
func isZero(n json.Number) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	return !strings.ContainsAny(mantissa, "123456789")
}

// hidesCharacters reports whether a value is what is shown in place of each character.
func hidesCharacters(value any) bool {
	text, _ := value.(string)
	text = strings.TrimSpace(text)
	return text != "" && strings.Trim(text, typedCharacters) == ""
}

// kindOfSecret reports whether a kind of field, or one in a list or an object of kinds, is one of
// those that hide what is typed.
func kindOfSecret(value any) bool {
	switch v := value.(type) {
	case string:
		return hasPart(word(v), partsOfKinds) || slices.ContainsFunc(strings.FieldsFunc(v, separates), func(one string) bool {
			return slices.Contains(wholeKinds, word(one))
		})
	case []any:
		return slices.ContainsFunc(v, kindOfSecret)
	case map[string]any:
		for name, kind := range v {
			if text, ok := kind.(string); ok && slices.Contains([]string{"name", "id", "value", "const", "enum", "key"}, word(name)) && kindOfSecret(text) {
				return true
			}
		}
	}
	return false
}

// separates reports whether a character stands between kinds of one text.
func separates(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("|,;", r) }

// kindByNumber reports whether a kind is given as the number that Android (inputType) or Qt (echoMode)
// has for one that hides what is typed.
func kindByNumber(name string, value any) bool {
	var text string
	switch v := value.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	}
	n, err := strconv.ParseInt(text, 0, 64)
	switch {
	case err != nil:
		return false
	case strings.HasSuffix(name, "inputtype"):
		const classAndVariation = 0xfff
		return slices.Contains([]int64{0x81, 0x91, 0xe1, 0x12}, n&classAndVariation)
	case strings.HasSuffix(name, "echomode"):
		return n >= 1 && n <= 3
	}
	return false
}

// word is a name or a kind without case, everything but letters and digits, and letters that only
// look like others.
func word(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return plainLetter(unicode.ToLower(r))
	}, text)
}

// plainLetter is the ASCII letter that a lower-case letter looks like, or the letter itself.
func plainLetter(r rune) rune {
	const fullWidth = 'ａ' - 'a'
	switch {
	case r < unicode.MaxASCII:
		return r
	case r >= 'ａ' && r <= 'ｚ':
		return r - fullWidth
	}
	if at := slices.Index(lookalikes, r); at >= 0 && at%2 == 0 {
		return lookalikes[at+1]
	}
	return r
}
