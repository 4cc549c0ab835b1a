package subjects

// GatewaySubjects matches what gateways send each other.
func (s Space) GatewaySubjects() string { return s.prefix + ".gateway.>" }

// GatewayStops is the subject on which gateways ask each other to stop a run of AG-UI: the one that has it replies.
func (s Space) GatewayStops() string { return s.prefix + ".gateway.stop" }
