//nolint:tagalign // the flag comes first and the help last: sorted and padded tags would hide both
package config

import "time"

// The settings of each command, as structs whose tags carry flag, default and help. docs/configuration.md is
// generated from them.

// NATS is how to reach the server. Every command has it.
type NATS struct {
	// URL lists servers. Empty with Context empty too: the worker embeds a server, the other
	// commands use the address of an embedded one.
	URL         URL    `flag:"nats" example:"nats://127.0.0.1:4222" help:"Server URLs, comma separated. Without it and --context the worker embeds a server; other commands connect to nats://127.0.0.1:4222."`
	Context     string `flag:"context" example:"prod" help:"Connection context of the NATS CLI: its name, or the path of its .json file."`
	User        string `flag:"nats-user" example:"oneturn" help:"User name on the server, for one that is not in the URL."`
	Password    Secret `flag:"nats-password" example:"..." help:"Password of --nats-user. Prefer the variable: flags are visible to every process of the machine."`
	Creds       string `flag:"creds" example:"worker.creds" help:"Credentials file (user JWT and seed)."`
	NKey        string `flag:"nkey" example:"worker.nk" help:"File with an NKey seed."`
	TLSCA       string `flag:"tls-ca" example:"ca.pem" help:"File with the CA certificates that the server is checked against."`
	TLSCert     string `flag:"tls-cert" example:"cert.pem" help:"Client certificate file; needs --tls-key."`
	TLSKey      string `flag:"tls-key" example:"key.pem" help:"Client key file; needs --tls-cert."`
	InboxPrefix string `flag:"inbox-prefix" example:"_INBOX_worker" help:"Prefix of reply subjects, so that roles cannot read each other's replies; a random token follows it. Services that are tools reply to this prefix with _tools at its end. Defaults to _INBOX."`
	Prefix      string `flag:"prefix" default:"oneturn" help:"Prefix of all subjects; streams and buckets carry it in upper case."`
}

// Output is how a command prints and logs. Every command has it.
type Output struct {
	Format     string `flag:"output" short:"o" default:"text" enum:"text,json" help:"Format of what the command prints."`
	LogLevel   string `flag:"log-level" env:"LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Lowest level of log lines on standard error. Levels log ids and sizes, never payloads; debug has the phases of every call."`
	LogsAsJSON bool   `flag:"logs-as-json" env:"LOGS_AS_JSON" default:"false" help:"Log lines as JSON instead of text."`
	File       string `flag:"config" example:"worker.yaml" help:"Config file, YAML or JSON. One file can serve all commands: each takes its own keys."`
}

// Worker configures cmd/worker.
type Worker struct {
	NATS
	Output

	Workflows string `flag:"workflows" default:"workflows" help:"Folder of the workflow manifests and their tools."`
	Watch     bool   `flag:"watch" default:"true" help:"Apply changes of the workflows folder while running. After a broken edit the previous manifests stay in use."`
	Pool      string `flag:"pool" default:"default" help:"Pool whose turns this worker handles."`

	ReplyPrefixes []string `flag:"reply-prefixes" default:"_INBOX" help:"What reply subjects of requests, of answers and of services that are tools begin with; the worker replies to nothing else. Each may be followed by an underscore and a name, as in _INBOX_reader."`

	Slots int `flag:"slots" default:"256" min:"1" max:"20000" help:"Turns that may run at the same time."`

	ToolTimeout  time.Duration `flag:"tool-timeout" default:"60s" min:"1ms" max:"24h" help:"Time limit of a tool call whose manifest sets none. A timeout is an unknown outcome and is never retried."`
	Python       string        `flag:"python" example:"/usr/bin/python3.12" help:"Python interpreter for Python tools: a name on the PATH or a path. Without it the workflow's .venv, the folder's .venv, $VIRTUAL_ENV, then python3."`
	PythonPool   int           `flag:"python-pool" default:"4" min:"1" max:"256" help:"Python processes per workflow."`
	LoadTimeout  time.Duration `flag:"load-timeout" default:"60s" min:"1ms" max:"1h" help:"How long a Python process may take to start, and then to import the file of a function. A call that takes longer ends as tool_error and has not entered its tool."`
	ToolEnv      []string      `flag:"tool-env" example:"OPENAI_API_KEY,APP_*" help:"Environment variables that Python tools may read: names, or prefixes with a star. Other variables of the worker are not passed to them, except for PATH, HOME, LANG and similar ones."`
	ContextEnv   []string      `flag:"context-env" example:"APP_MODE,FEATURE_*" help:"Environment variables that manifests may read as values of context variables: names, or prefixes with a star. Settings of oneturn and of NATS are never among them."`
	ContextFiles string        `flag:"context-files" example:"/srv/app" help:"Folder that the files of context variables must be in. Without it the folder that holds --workflows."`
	CacheSize    Bytes         `flag:"cache-size" default:"64MiB" help:"Memory for results of tools that have a cache; the least recently used ones are evicted. 0 disables the cache."`
	BindingGrace time.Duration `flag:"binding-grace" default:"30s" min:"0s" max:"1h" help:"How long a turn of a workflow unknown here waits for a worker that knows it (rolling deploys). A worker that is alone on its embedded server waits for 2s at most."`

	MaxEventAge time.Duration `flag:"max-event-age" default:"24h" min:"1s" max:"8760h" help:"Older inbound events end as too_old."`
	MaxTurnLife time.Duration `flag:"max-turn-life" default:"168h" min:"1s" max:"8760h" help:"How long a turn may stay open, questions to people included; then it ends as expired."`
	Retention   time.Duration `flag:"retention" default:"216h" min:"1s" max:"87600h" help:"How long the journal remembers a turn. At least --max-turn-life + --max-event-age + 1h. On an external server, set by turnctl provision; the worker checks that it is long enough."`

	ParkAfter time.Duration `flag:"park-after" default:"10s" min:"0s" max:"24h" help:"How long a tool that asks people waits in memory; then the turn is parked and uses no resources until it is answered. A tool whose effect is unsafe is never parked."`

	SecretKeys string `flag:"secret-keys" example:"secret-keys" help:"File with the keys that seal the answers to secret questions: one per line; the first one seals, all of them open. turnctl secret-key prints a new one. Only the worker may read the file. All workers of a pool need the same. With the embedded server it is secret-keys in --store, created at the first start."`

	SweepEvery time.Duration `flag:"sweep-every" default:"5m" min:"0s" max:"24h" help:"How often to look for turns whose message is gone and for turns past --max-turn-life. One worker sweeps at a time; 0s turns sweeps off in this worker."`

	SoftStop time.Duration `flag:"soft-stop" default:"25s" min:"0s" max:"24h" help:"How long running turns may continue after the first signal; then they are cancelled."`
	HTTP     string        `flag:"http" default:"127.0.0.1:8080" kind:"address" off:"true" help:"Address of health checks and metrics; empty or off disables them."`

	Listen         string        `flag:"listen" default:"127.0.0.1:4222" kind:"address" embedded:"true" help:"Address of the embedded server. One that is not loopback needs --listen-user and --listen-password."`
	ListenUser     string        `flag:"listen-user" example:"oneturn" embedded:"true" help:"User of the embedded server."`
	ListenPassword Secret        `flag:"listen-password" example:"..." embedded:"true" help:"Password of the embedded server. Prefer the variable: flags are visible to every process of the machine."`
	Accounts       string        `flag:"accounts" example:"accounts.conf" embedded:"true" help:"File with the accounts of the embedded server, as turnctl nats-config prints it; passwords are environment variables. In place of --listen-user."`
	Store          string        `flag:"store" default:"oneturn-data" embedded:"true" help:"Directory of the embedded server's records. One server holds it at a time."`
	StoreMax       Bytes         `flag:"store-max" default:"-1" embedded:"true" help:"Maximum size of the embedded server's store, at least 1GiB; -1: what is stored, and three quarters of what the disk has room for. From 85 % of it, or of what the disk has room for now, no new turns are taken."`
	AckWait        time.Duration `flag:"ack-wait" default:"30s" min:"1s" max:"10m" embedded:"true" help:"How long a worker may be silent before other workers take over its turns. On an external server, set by turnctl provision --ack-wait."`
	SyncAlways     bool          `flag:"sync-always" default:"false" embedded:"true" help:"Write every record through to the disk before it is confirmed: survives a power loss, at a tenth of the rate."`
}

// Embeds reports whether the worker is to run a NATS server itself.
func (w *Worker) Embeds() bool { return w.URL == "" && w.Context == "" }

// Publisher configures cmd/publisher.
type Publisher struct {
	NATS
	Output

	Pool    string        `flag:"pool" default:"default" help:"Pool of workers that the turns are published to."`
	Wait    bool          `flag:"wait" default:"false" limit:"timeout" help:"Wait for the outcome of each turn and print it. --timeout limits the wait."`
	Timeout time.Duration `flag:"timeout" default:"90s" min:"1ms" max:"8760h" help:"Time limit of the whole command, waiting included: by default half a minute more than the default of --tool-timeout."`
}

// Gateway configures cmd/gateway.
type Gateway struct {
	NATS
	Output

	Listen  string   `flag:"listen" default:"127.0.0.1:8090" kind:"address" help:"Public address: WebSockets, requests and event streams of frontends. Put a proxy with TLS before it."`
	HTTP    string   `flag:"http" default:"127.0.0.1:8089" kind:"address" off:"true" help:"Private address of health checks and metrics; empty or off disables them."`
	Pool    string   `flag:"pool" default:"default" help:"Pool of the workers that messages of users go to."`
	Origins []string `flag:"origins" example:"https://app.example" help:"Origins of the pages that may use the gateway from a browser. Without it, only pages of the address of the gateway."`

	JWKS        string `flag:"jwks" example:"https://issuer.example/jwks.json" help:"URL of the keys that tokens are signed with; needs --issuer and --audience."`
	Issuer      string `flag:"issuer" example:"https://issuer.example" help:"Claim iss of tokens."`
	Audience    string `flag:"audience" example:"oneturn" help:"Claim aud of tokens for this gateway."`
	TenantClaim string `flag:"tenant-claim" default:"app_id" help:"Claim of tokens that names the tenant, or a list of tenants."`
	Tokens      string `flag:"tokens" example:"tokens.yaml" help:"File with the hashes of static tokens, also in addition to --jwks. It is read again when it changes."`
	Dev         bool   `flag:"dev" default:"false" help:"Accept requests without a token: tenant and user are those that the request names. Only with a --listen that is loopback."`

	MaxBody             Bytes         `flag:"max-body" default:"1MiB" help:"Size of a body, and of a frame of a WebSocket."`
	MaxRunBody          Bytes         `flag:"max-run-body" default:"8MiB" help:"Size of the input of a run of AG-UI: clients send back all messages that they have, up to 6 MiB of a chat."`
	MaxHeader           Bytes         `flag:"max-header" default:"16KiB" help:"Size of the headers of a request."`
	MaxConnections      int           `flag:"max-connections" default:"20000" min:"0" max:"1000000" help:"Connections to --listen that may be open, also idle ones; one more gets 503. 0 for no limit."`
	MaxStreams          int           `flag:"max-streams" default:"10000" min:"0" max:"1000000" help:"WebSockets and event streams that may be open; 0 for no limit."`
	MaxStreamsPerTenant int           `flag:"max-streams-per-tenant" default:"0" min:"0" max:"1000000" help:"WebSockets and event streams that the users of a tenant may have open; 0 for nine tenths of --max-streams."`
	MaxStreamsPerUser   int           `flag:"max-streams-per-user" default:"1000" min:"0" max:"1000000" help:"WebSockets and event streams that a user may have open; 0 for no limit."`
	Rate                int           `flag:"rate" default:"20" min:"0" max:"1000000" help:"Requests and frames that a user may send in a second; 0 for no limit."`
	TenantRate          int           `flag:"tenant-rate" default:"2000" min:"0" max:"1000000" help:"Requests and frames that all users of a tenant may send in a second; 0 for no limit."`
	RunRate             int           `flag:"run-rate" default:"5" min:"0" max:"1000000" help:"Runs of AG-UI that a user may start in a second; 0 for no limit."`
	Burst               int           `flag:"burst" default:"40" min:"1" max:"1000000" help:"Requests, or runs, of a user that may come at the same time."`
	Settle              time.Duration `flag:"settle" default:"2s" min:"1ms" max:"10m" help:"How long a chat must be quiet until a run of AG-UI ends."`
	FirstTurn           time.Duration `flag:"first-turn" default:"5m" min:"1ms" max:"24h" help:"How long a run of AG-UI waits for the first turn after the message of a user."`
	KeepAlive           time.Duration `flag:"keep-alive" default:"15s" min:"100ms" max:"10m" help:"Time between comments in an event stream without events."`
	Drain               time.Duration `flag:"drain" default:"10s" min:"0s" max:"10m" help:"How long WebSockets and streams may take to end after the first signal."`
}

// Turnctl configures the commands of cmd/turnctl.
type Turnctl struct {
	NATS
	Output

	Timeout time.Duration `flag:"timeout" default:"10s" min:"1ms" max:"24h" help:"Time limit of one request to the server."`
}

// Accounts configures turnctl nats-config.
type Accounts struct {
	Output

	Prefix   string   `flag:"prefix" default:"oneturn" help:"Prefix of all subjects; streams and buckets carry it in upper case."`
	Tenants  []string `flag:"tenants" default:"default" help:"Tenants (app_id); each gets an account."`
	Pools    []string `flag:"pools" default:"default" help:"Pools of workers; each gets a user for its workers."`
	Services []string `flag:"services" example:"warehouse" help:"Names of NATS services that are tools; each gets a user."`
}

// Provision configures turnctl provision.
type Provision struct {
	Turnctl

	Pools         []string      `flag:"pools" default:"default" help:"Pools of workers; each gets a durable consumer."`
	AckWait       time.Duration `flag:"ack-wait" default:"30s" min:"1s" max:"10m" help:"How long a worker may be silent before other workers take over its turns. Workers read it from the consumer."`
	Retention     time.Duration `flag:"retention" default:"216h" min:"1s" max:"87600h" help:"How long the journal remembers a turn: a later duplicate is a new turn. At least --max-turn-life + --max-event-age + 1h."`
	MaxTurnLife   time.Duration `flag:"max-turn-life" default:"168h" min:"1s" max:"8760h" help:"As for the worker; bounds the retention from below."`
	MaxEventAge   time.Duration `flag:"max-event-age" default:"24h" min:"1s" max:"8760h" help:"As for the worker; bounds the retention from below."`
	DeadAge       time.Duration `flag:"dead-age" default:"720h" min:"1m" max:"87600h" help:"How long dead letters are kept."`
	ContextAge    time.Duration `flag:"context-age" default:"2160h" min:"1m" max:"87600h" help:"How long context variables of a chat are kept after their last change."`
	Replicas      int           `flag:"replicas" default:"1" enum:"1,3,5" help:"Servers that hold each record."`
	InMaxBytes    Bytes         `flag:"in-max-bytes" default:"512MiB" help:"Size of the inbound stream; a full one refuses publishes. -1 for no limit. The server reserves it."`
	DeadMaxBytes  Bytes         `flag:"dead-max-bytes" default:"128MiB" help:"Size of the stream of dead letters; a full one deletes the oldest. -1 for no limit."`
	BlobsMaxBytes Bytes         `flag:"blobs-max-bytes" default:"-1" help:"Size of the payloads too large for a record. -1 for no limit."`
	Memory        bool          `flag:"memory" default:"false" help:"Keep everything in memory: nothing survives the server. For trials."`

	ReadMirror     bool     `flag:"read-mirror" default:"false" help:"Add a copy of the journal that histories are read from, so that they do not delay workers."`
	ReadMirrorTags []string `flag:"read-mirror-tags" example:"az:b" help:"Tags of the servers that may hold the read mirror, when it is made."`
}
