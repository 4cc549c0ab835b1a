package subjects

// GatewaySubjects matches what gateways send each other.
func (s Space) GatewaySubjects() string { return s.prefix + ".gateway.>" }
