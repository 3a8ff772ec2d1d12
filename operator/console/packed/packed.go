// Package packed serves the files of web pages compressed, to browsers that take them so.
package packed

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Files are those of the pages that are smaller compressed, by name, compressed.
type Files map[string][]byte

// Pack compresses what is text. It is done once, as the files of a program never change.
func Pack(pages fs.FS) (Files, error) {
	files := Files{}
	err := fs.WalkDir(pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !compressible[path.Ext(name)] {
			return err
		}
		text, err := fs.ReadFile(pages, name)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		if _, err := zip.Write(text); err != nil {
			return err
		}
		if err := zip.Close(); err != nil {
			return err
		}
		if out.Len() < len(text) {
			files[name] = out.Bytes()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compressing the web pages: %w", err)
	}
	return files, nil
}

var compressible = map[string]bool{".css": true, ".html": true, ".js": true, ".json": true, ".svg": true}

// Serve sends a file compressed where that is wanted and there is such a file; else it reports false.
func (f Files) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	text, found := f[name]
	if found || compressible[path.Ext(name)] {
		w.Header().Add("Vary", "Accept-Encoding")
	}
	if !found || !takesGzip(r) || r.Header.Get("Range") != "" {
		return false
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	if r.Method != http.MethodHead {
		// Nobody is left to tell of an error: the one who asked has gone.
		_, _ = w.Write(text)
	}
	return true
}

// takesGzip reports whether a browser says that it takes gzip; a weight of 0 says that it does not.
func takesGzip(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		if name == "gzip" {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

// Remembered says how long browsers may keep a file: one whose name has the hash of what is in it for good, the others
// until they have asked whether it is the same.
func Remembered(name string) string {
	if strings.HasPrefix(name, "assets/") {
		return "public, max-age=31536000, immutable"
	}
	return "no-cache"
}
