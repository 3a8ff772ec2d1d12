package wire

import "fmt"

// Versions are the versions of the protocol that one side understands, from the least to the most. A version is more than the
// magic of a frame: it is what the messages mean. The zero value is what releases said that did not say any, and stands for
// the first version alone.
type Versions struct {
	Least uint8 `cbor:"1,keyasint"`
	Most  uint8 `cbor:"2,keyasint"`
}

// VersionShort is the version with which messages of runs end with their last byte that is not zero (OpDeliverLast).
const VersionShort uint8 = 2

// Understood are the versions that this release understands. A release that raises Most keeps Least so that it still meets the
// release before it, which is what a rolling upgrade takes (docs/compatibility.md).
var Understood = Versions{Least: 1, Most: VersionShort}

// Meet returns the newest version that both sides understand. ErrBadRequest if there is none; who says which side is which.
func (v Versions) Meet(other Versions, who string) (uint8, error) {
	if v == (Versions{}) {
		v = Versions{Least: 1, Most: 1}
	}
	if other == (Versions{}) {
		other = Versions{Least: 1, Most: 1}
	}
	most := min(v.Most, other.Most)
	if most < max(v.Least, other.Least) {
		return 0, fmt.Errorf("%w: %s speaks versions %d to %d of the protocol, this side %d to %d; "+
			"upgrade the older one, by a release between them if need be", ErrBadRequest, who, other.Least, other.Most, v.Least, v.Most)
	}
	return most, nil
}
