package schema

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// Prefixes of the record kinds; see the package comment.
const (
	PrefixObject      = "o/"
	PrefixGroup       = "g/"
	PrefixLive        = "l/"
	PrefixBytes       = "b/"
	PrefixFreeable    = "f/"
	PrefixIntent      = "i/"
	PrefixEnded       = "e/"
	PrefixPiece       = "p/"
	PrefixGrave       = "d/"
	PrefixRequest     = "r/"
	PrefixNode        = "n/"
	PrefixIncarnation = "x/"
	PrefixJob         = "j/"
	PrefixClass       = "c/"
	PrefixHeat        = "h/"
	PrefixFinding     = "s/"
	PrefixSession     = "v/"
	PrefixGateway     = "w/"
	PrefixUpto        = "u/"
	PrefixExpiry      = "t/"
	PrefixDropped     = PrefixExpiry + "0000000000000000/" // see DroppedKey
	PrefixView        = "view/"

	KeySchema   = "meta/schema"
	KeyVersion  = "meta/version"
	KeyCluster  = "meta/cluster"
	KeyFloor    = "meta/next"
	KeyClasses  = "meta/classes"
	KeyHeat     = "meta/heat"
	KeyScrub    = "meta/scrub"
	KeyKept     = "meta/rebuilt"
	KeyDrawn    = "meta/drawn"
	KeyAlarm    = "meta/alarm"
	KeyDisowned = "meta/disowned"
	KeyMembers  = "meta/members"
	KeyRepair   = "meta/repair"
	KeyCompact  = "meta/compact"
	KeyBalance  = "meta/balance"
)

func ObjectKey(key string) string { return PrefixObject + key }

// ExpiryKey is the key of the record that says when an object expires, empty for one that does not, or none. They are in the order of time.
func ExpiryKey(object *Object) string {
	if object == nil || object.Expires == 0 {
		return ""
	}
	return fmt.Sprintf("%s%016x/%s", PrefixExpiry, object.Expires, object.Key)
}

// ExpiryWrites changes the record of when an object expires, which is replaced by another. Either may be nil.
func ExpiryWrites(was, is *Object) (writes []kv.Write) {
	before, after := ExpiryKey(was), ExpiryKey(is)
	if before != "" && before != after {
		writes = append(writes, kv.Write{Key: before, Kind: kv.Remove})
	}
	if after != "" && before != after {
		writes = append(writes, kv.Write{Key: after, Value: []byte{}})
	}
	return writes
}

// OfExpiry takes the key of an expiry record apart.
func OfExpiry(record string) (at time.Time, key string, err error) {
	text, key, found := strings.Cut(strings.TrimPrefix(record, PrefixExpiry), "/")
	millis, err := strconv.ParseInt(text, 16, 64)
	if !found || err != nil {
		return time.Time{}, "", fmt.Errorf("record %q does not say when an object expires: %w", record, kv.ErrCorrupt)
	}
	return time.UnixMilli(millis), key, nil
}

func GroupKey(id block.GroupID) string        { return PrefixGroup + id.String() }
func LiveKey(id block.GroupID) string         { return PrefixLive + id.String() }
func BytesKey(id block.GroupID) string        { return PrefixBytes + id.String() }
func FreeableKey(id block.GroupID) string     { return PrefixFreeable + id.String() }
func IntentKey(stamp block.Stamp) string      { return PrefixIntent + stamp.String() }
func EndedKey(stamp block.Stamp) string       { return PrefixEnded + stamp.String() }
func GraveKey(address block.Address) string   { return PrefixGrave + address.String() }
func NodeKey(node block.NodeID) string        { return PrefixNode + string(node) }
func IncarnationKey(node block.NodeID) string { return PrefixIncarnation + string(node) }
func JobKey(id string) string                 { return PrefixJob + id }
func ViewKey(gateway string) string           { return PrefixView + gateway }
func MarksKey(gateway string) string          { return PrefixView + "\x00" + gateway }
func ClassKey(name string) string             { return PrefixClass + name }
func GatewayKey(gateway string) string        { return PrefixGateway + gateway }
func SessionKey(owner string) string          { return PrefixSession + owner }
func PieceKey(name string, index int) string {
	return fmt.Sprintf("%s%s/%08x", PrefixPiece, name, index)
}
func LaneKey(owner string, lane int) string {
	return fmt.Sprintf("%s%s/%04x", PrefixSession, owner, lane)
}
func UptoKey(owner string) string             { return PrefixUpto + owner }
func HeatPrefix(part int) string              { return fmt.Sprintf("%s%02x/", PrefixHeat, part) }
func HeatKey(part int, gateway string) string { return HeatPrefix(part) + gateway }
func AddressOfGrave(key string) (block.Address, error) {
	node, name, found := strings.Cut(strings.TrimPrefix(key, PrefixGrave), ":")
	if !found {
		return block.Address{}, fmt.Errorf("grave %q: no node: %w", key, kv.ErrCorrupt)
	}
	address, err := block.ParseKey(block.NodeID(node), name)
	if err != nil {
		return block.Address{}, fmt.Errorf("grave %q: %w: %w", key, kv.ErrCorrupt, err)
	}
	return address, nil
}
