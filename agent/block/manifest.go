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
		if entry.Size < 0 || entry.At < 0 || entry.Offset < 0 || entry.Length < 0 || entry.Column < -1 {
			return nil, fmt.Errorf("decoding a manifest: %w: entry %d has a negative range", ErrMalformed, i)
		}
	}
	return entries, nil
}
