package schema

import (
	"fmt"
	"strconv"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// The versions of records that this release knows. The fingerprints of version 1 were of another kind. Since version 3 a group may have
// empty columns, of which the release before knows nothing.
const (
	Version       = 3 // of catalogs that are made now
	OldestVersion = 2 // that is opened
)

// VersionOf returns the version that the record under KeySchema or KeyVersion says; 0 if it says none.
func VersionOf(record []byte) int {
	version, _ := strconv.Atoi(string(record)) // what is no number is no version
	return version
}

// InService returns the schema record of a catalog in service whose record under KeyVersion is as given.
func InService(version []byte) []byte {
	return []byte(strconv.Itoa(max(OldestVersion, VersionOf(version))))
}

// CheckVersion refuses the records of other releases, with kv.ErrNewer or the error for older ones.
func CheckVersion(version int, older error) error {
	switch {
	case version > Version:
		return kv.Final(fmt.Errorf("%w: its records have version %d, this program knows versions up to %d: "+
			"use a newer release of restripe, or name another catalog", kv.ErrNewer, version, Version))
	case version < OldestVersion:
		return kv.Final(fmt.Errorf("%w: its records have version %d, this program knows versions from %d on: "+
			"read the objects with the release that wrote them and put them into a new catalog", older, version, OldestVersion))
	}
	return nil
}
