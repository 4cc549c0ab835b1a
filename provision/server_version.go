package provision

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// MinServer is the oldest server version that oneturn runs on: message schedules, and the
// membership fixes without which a cluster may lose confirmed records.
const MinServer = "2.12.3"

// ErrServerTooOld means that the server is older than [MinServer].
var ErrServerTooOld = errors.New("the NATS server is too old")

// CheckServer reports whether the connected server is new enough. In a cluster it sees only
// the server that the connection is on.
func CheckServer(nc *nats.Conn) error {
	version := nc.ConnectedServerVersion()
	if version == "" {
		return fmt.Errorf("provision: check the server: %w; is it running, and is --nats right?", nats.ErrDisconnected)
	}
	return CheckVersion(version)
}

// CheckVersion reports whether a server version, for example "2.15.2", is at least
// [MinServer]. A pre-release counts as older than its release.
func CheckVersion(version string) error {
	if olderThan(version, MinServer) {
		return fmt.Errorf("provision: NATS server %.40q: %w: oneturn needs %s or newer, upgrade the server or omit --nats to use the embedded one",
			version, ErrServerTooOld, MinServer)
	}
	return nil
}

// olderThan compares versions of three numbers. What it cannot read is old.
func olderThan(version, least string) bool {
	core, pre, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	core, _, _ = strings.Cut(core, "+")
	have, want := strings.Split(core, "."), strings.Split(least, ".")
	if len(have) != len(want) {
		return true
	}
	for i := range want {
		h, err := strconv.Atoi(have[i])
		w, _ := strconv.Atoi(want[i])
		if err != nil || h < w {
			return true
		}
		if h > w {
			return false
		}
	}
	return pre != ""
}

// explain adds the fix to the errors of the JetStream API that people meet.
func explain(err error) error {
	const storageExceeded, noCluster, noPeers, noResources = 10047, 10074, 10005, 10023
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: turn JetStream on in the server's configuration and for this account", err)
	case errors.As(err, &api) && api.ErrorCode == storageExceeded:
		return fmt.Errorf("%w: the server has not enough room for what its streams may take: make room on its disk, "+
			"or raise its storage limit (of an embedded server: worker --store-max) or the limit of the account; "+
			"on an external server, turnctl provision takes smaller streams with --in-max-bytes and --dead-max-bytes", err)
	case strings.Contains(err.Error(), syscall.ENOSPC.Error()):
		return fmt.Errorf("%w: the disk of the server is full: make room on it, and start again", err)
	case errors.As(err, &api) && api.ErrorCode == noCluster:
		return fmt.Errorf("%w: this server is not a cluster and holds one copy of each record: use --replicas 1, or connect to a cluster", err)
	case errors.As(err, &api) && (api.ErrorCode == noPeers || api.ErrorCode == noResources):
		return fmt.Errorf("%w: too few servers of the cluster are up, with JetStream and room: fix them, or use fewer --replicas or lower size limits", err)
	case errors.Is(err, nats.ErrPermissionViolation):
		return fmt.Errorf("%w: provision with credentials that may manage streams", err)
	default:
		return err
	}
}
