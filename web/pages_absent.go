//go:build !pages

package web

import "io/fs"

// Pages returns nil: this program was built without the tag pages, and has no web interface.
func Pages() fs.FS { return nil }
