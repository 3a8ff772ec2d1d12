package member

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/upgrade"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Behind says, in words, who is at work and does not know the records of this release yet: gateways that run, or have until a moment ago,
// and agents of another release than this gateway's. Nobody where the catalog is of this release already.
func (m *Membership) Behind() (others []string) {
	if m.catalog.IsUpgraded() {
		return nil
	}
	for gateway, view := range m.agents.views.others() {
		if view.Schema < catalog.SchemaVersion {
			others = append(others, "gateway "+gateway)
		}
	}
	for _, node := range m.agents.NodeStatus() {
		if node.Release != "" && node.Release != m.options.Release {
			others = append(others, fmt.Sprintf("the agent of node %s (%s)", node.ID, node.Release))
		}
	}
	slices.Sort(others)
	return others
}

// UpgradeCatalog lets the catalog have the records that only this release knows. It is refused while somebody is behind.
func (m *Membership) UpgradeCatalog(ctx context.Context) error {
	if err := hear(ctx, m.agents); err != nil {
		return err
	}
	if behind := m.Behind(); len(behind) > 0 {
		return api.Refuse(api.ErrConflict, "%s are of another release, or were until %s ago; upgrade them first, or stop them and try again",
			strings.Join(behind, ", "), max(lifeAtLeast, m.agents.patient().down).Round(time.Second))
	}
	others := m.agents.views.others()
	knows := func(gateway string) bool {
		return gateway == m.options.ID || others[gateway].Schema >= catalog.SchemaVersion
	}
	if err := upgrade.Raise(ctx, m.catalog.Raw(), knows); err != nil {
		return err
	}
	m.log.Info("the catalog was upgraded")
	return m.catalog.Refresh(ctx)
}

// others returns the views of the other gateways that run.
func (v *views) others() map[string]catalog.View {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	others := map[string]catalog.View{}
	for gateway, found := range v.seen {
		if time.Since(found.at) <= v.life {
			others[gateway] = found.view
		}
	}
	return others
}
