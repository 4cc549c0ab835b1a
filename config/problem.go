package config

import "github.com/oneturn/oneturn/internal/diag"

// Error lists everything that is wrong with the settings, one line for each. Its findings have as
// Field the setting as it was written: "--slots", "ONETURN_SLOTS", "slots in oneturn.yaml:3". No text
// contains a secret.
type Error = diag.Error

// problem is a finding about a setting; works is the smallest value that works.
func problem(setting, message, works string) diag.Finding {
	return diag.Finding{Severity: diag.SeverityError, Field: setting, Message: message, Fix: "try " + works}
}
