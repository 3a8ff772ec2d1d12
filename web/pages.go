//go:build pages

package web

import (
	"embed"
	"io/fs"
)

// dist is what `npm run build` writes. All of it: some names begin with an underscore.
//
//go:embed all:dist
var dist embed.FS

// Pages returns the files of the web interface, index.html at their root.
func Pages() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // invariant: dist is a valid path
	}
	return files
}
