package block

import "fmt"

// MaxManifestEntries is how many ranges one manifest may list.
const MaxManifestEntries = MaxUnits

// EncodeManifest returns the form kept in Header.Manifest; nil for no entries.
func EncodeManifest(entries []ManifestEntry) ([]byte, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	if len(entries) > MaxManifestEntries {
		return nil, fmt.Errorf("encoding a manifest: %w: %d entries, at most %d are allowed", ErrInvalid, len(entries), MaxManifestEntries)
	}
	encoded, err := encoding.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("encoding a manifest: %w", err)
	}
	return encoded, nil
}

// DecodeManifest reads the form made by EncodeManifest. Anything else is ErrMalformed.
func DecodeManifest(encoded []byte) ([]ManifestEntry, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	var entries []ManifestEntry
	if err := decoding.Unmarshal(encoded, &entries); err != nil {
		return nil, fmt.Errorf("decoding a manifest: %w: %w", ErrMalformed, err)
	}
	for i, entry := range entries {
		if entry.Size < 0 || entry.At < 0 || entry.Offset < 0 || entry.Length < 0 || entry.Column < -1 || entry.Columns < 0 {
			return nil, fmt.Errorf("decoding a manifest: %w: entry %d has a negative range", ErrMalformed, i)
		}
	}
	return entries, nil
}

// MergeManifests returns every range that one of the manifests of a group has, once, with the newest of its revisions and
// the size that is known of its object, in the order of first appearance. Ranges of a group never change, so manifests
// of different times differ in these alone.
func MergeManifests(manifests ...[]ManifestEntry) []ManifestEntry {
	if len(manifests) == 1 {
		return manifests[0]
	}
	type place struct {
		key            string
		origin         GroupID
		column         int
		at, from, long int64
	}
	var merged []ManifestEntry
	index := map[place]int{}
	for _, entries := range manifests {
		for _, entry := range entries {
			name := place{string(entry.Key), entry.Origin, entry.Column, entry.At, entry.Offset, entry.Length}
			i, seen := index[name]
			if !seen {
				index[name] = len(merged)
				merged = append(merged, entry)
				continue
			}
			if merged[i].Revision.Sequence < entry.Revision.Sequence {
				merged[i].Revision, merged[i].Metadata, merged[i].Checksum = entry.Revision, entry.Metadata, entry.Checksum
			}
			merged[i].Size = max(merged[i].Size, entry.Size)
		}
	}
	return merged
}

// FilledColumns says of each column of a group whether its own entries of its manifest have bytes in it, given as those who made them
// lay them out: in one column, or (Column -1) over the cells of the group, row by row. In the others nothing was ever put, so that
// they are zeros, stored or not.
func FilledColumns(entries []ManifestEntry, columns, cellBytes int) []bool {
	filled := make([]bool, columns)
	for i := range entries {
		entry := &entries[i]
		if entry.Origin != (GroupID{}) {
			continue
		}
		if entry.Column >= 0 && entry.Column < columns {
			filled[entry.Column] = true
		}
		if entry.Column >= 0 || entry.Length <= 0 {
			continue
		}
		first, last := entry.Offset/int64(cellBytes), (entry.Offset+entry.Length-1)/int64(cellBytes)
		for cell := first; cell <= min(last, first+int64(columns)-1); cell++ {
			filled[cell%int64(columns)] = true
		}
	}
	return filled
}
