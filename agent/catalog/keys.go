package catalog

import (
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/block"
)

// Prefixes of the record kinds; see the package comment.
const (
	prefixObject      = "o/"
	prefixGroup       = "g/"
	prefixLive        = "l/"
	prefixFreeable    = "f/"
	prefixIntent      = "i/"
	prefixEnded       = "e/"
	prefixGrave       = "d/"
	prefixRequest     = "r/"
	prefixNode        = "n/"
	prefixIncarnation = "x/"
	prefixJob         = "j/"
	prefixClass       = "c/"
	prefixHeat        = "h/"
	prefixFinding     = "s/"
	prefixSession     = "v/"
	prefixGateway     = "w/"
	prefixUpto        = "u/"
	prefixView        = "view/"

	keySchema   = "meta/schema"
	keyCluster  = "meta/cluster"
	keyFloor    = "meta/next"
	keyClasses  = "meta/classes"
	keyHeat     = "meta/heat"
	keyScrub    = "meta/scrub"
	keyKept     = "meta/rebuilt"
	keyDrawn    = "meta/drawn"
	keyAlarm    = "meta/alarm"
	keyDisowned = "meta/disowned"
	keyMembers  = "meta/members"
	keyRepair   = "meta/repair"
)

func objectKey(key string) string             { return prefixObject + key }
func groupKey(id block.GroupID) string        { return prefixGroup + id.String() }
func liveKey(id block.GroupID) string         { return prefixLive + id.String() }
func freeableKey(id block.GroupID) string     { return prefixFreeable + id.String() }
func intentKey(stamp block.Stamp) string      { return prefixIntent + stamp.String() }
func endedKey(stamp block.Stamp) string       { return prefixEnded + stamp.String() }
func graveKey(address block.Address) string   { return prefixGrave + address.String() }
func nodeKey(node block.NodeID) string        { return prefixNode + string(node) }
func incarnationKey(node block.NodeID) string { return prefixIncarnation + string(node) }
func jobKey(id string) string                 { return prefixJob + id }
func viewKey(gateway string) string           { return prefixView + gateway }
func classKey(name string) string             { return prefixClass + name }
func gatewayKey(gateway string) string        { return prefixGateway + gateway }
func sessionKey(owner string) string          { return prefixSession + owner }
func laneKey(owner string, lane int) string {
	return fmt.Sprintf("%s%s/%04x", prefixSession, owner, lane)
}
func uptoKey(owner string) string             { return prefixUpto + owner }
func heatPrefix(part int) string              { return fmt.Sprintf("%s%02x/", prefixHeat, part) }
func heatKey(part int, gateway string) string { return heatPrefix(part) + gateway }
func addressOfGrave(key string) (block.Address, error) {
	node, name, found := strings.Cut(strings.TrimPrefix(key, prefixGrave), ":")
	if !found {
		return block.Address{}, fmt.Errorf("grave %q: no node: %w", key, ErrCorrupt)
	}
	address, err := block.ParseKey(block.NodeID(node), name)
	if err != nil {
		return block.Address{}, fmt.Errorf("grave %q: %w: %w", key, ErrCorrupt, err)
	}
	return address, nil
}
