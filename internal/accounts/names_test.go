package accounts_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/accounts"
	"github.com/oneturn/oneturn/subjects"
)

func refused(t *testing.T, prefix string, o accounts.Options) error {
	t.Helper()
	var err error
	o.Space, err = subjects.New(prefix)
	require.NoError(t, err)
	if o.Tenants == nil {
		o.Tenants = []string{"acme"}
	}
	all, err := accounts.New(o)
	require.Equal(t, err != nil, all == nil, "accounts with an error would be used")
	return err
}

func TestNamesThatTwoRolesWouldShareAreRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]accounts.Options{
		"no tenant":         {Tenants: []string{}},
		"no name":           {Tenants: []string{"a", ""}},
		"twice":             {Tenants: []string{"a", "a"}},
		"one variable":      {Tenants: []string{"a-b", "a_b"}},
		"one but for case":  {Tenants: []string{"a", "A"}},
		"service a worker":  {Services: []string{"worker"}},
		"service of a user": {Tenants: []string{"a"}, Services: []string{"a-reader"}},
		"service's name":    {Services: []string{"a.b"}},
		"service twice":     {Services: []string{"bank", "bank"}},
		"pool":              {Pools: []string{"a.b"}},
		"pool twice":        {Pools: []string{"gpu", "gpu"}},
		"pool of a tenant":  {Tenants: []string{"worker"}, Pools: []string{"reader"}},
		"pool of a service": {Pools: []string{"default", "gpu"}, Services: []string{"worker-gpu"}},
	} {
		require.Error(t, refused(t, subjects.DefaultPrefix, o), name)
	}
}

func TestServiceCannotHaveANameOfTheProduct(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"oneturn", "oneturn-api", "worker_tools", "bank_tools", "Worker_Tools", "_INBOX", "_INBOX_worker", "_INBOX_worker_tools", "_R_", "_", "$SRV", "$JS", "*", ">", "",
		"worker", "gateway", "orchestrator", "repairer", "provisioner", "operator", "publisher", "answerer", "reader", "fetcher", "inspector", "oneturn_nats", "oneturn-listen",
	} {
		err := refused(t, subjects.DefaultPrefix, accounts.Options{Services: []string{"bank", name}})
		require.Error(t, err, name)
		require.ErrorContains(t, err, "accounts: ", name)
	}
	require.ErrorContains(t, refused(t, "shop.turns", accounts.Options{Services: []string{"shop"}}), "subjects below it")
	require.ErrorContains(t, refused(t, subjects.DefaultPrefix, accounts.Options{Pools: []string{"gpu"}, Services: []string{"worker"}}), "inboxes", "no pool is called as the service")
	for _, name := range []string{"bank", "bank-2", "warehouse_eu", "turns", "tools", "toolshop", "oneturn-billing", "api", "in"} {
		require.NoError(t, refused(t, subjects.DefaultPrefix, accounts.Options{Services: []string{name}}), name)
	}
}

func TestAccountsThatWouldBeOneAreRefused(t *testing.T) {
	t.Parallel()
	for prefix, tenant := range map[string]string{"tenant": "OPERATOR", "tenant.ops": "OPS", "tenant.a.b": "A_B", "sys": "acme", "Tenant": "operator"} {
		require.ErrorContains(t, refused(t, prefix, accounts.Options{Tenants: []string{tenant, "beta"}}), "rename", "%s %s", prefix, tenant)
	}
	require.NoError(t, refused(t, "tenant", accounts.Options{Tenants: []string{"OPS"}}))
	require.NoError(t, refused(t, subjects.DefaultPrefix, accounts.Options{Tenants: []string{"OPERATOR", "oneturn", "worker", "dead"}}))
}
