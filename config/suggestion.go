package config

import "github.com/oneturn/oneturn/internal/nearest"

// closestSetting returns the setting that word was probably meant to be, or "". A setting means itself.
func closestSetting(word string, settings []string) string {
	return nearest.Of(word, settings, nearest.Rule{
		Edits: func(word, _ string) int { return len(word)/3 + 1 },
	})
}
