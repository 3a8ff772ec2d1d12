package policies

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Format is the language of a source.
type Format string

// The formats.
const (
	YAML Format = "yaml"
	JSON Format = "json"
	CUE  Format = "cue"
)

// Source is a file that was read. CUE files of one package in one directory are one source of several files.
type Source struct {
	Name   string // as it is shown in findings
	Format Format
	Text   []byte

	rest []Source // further files of the same CUE package
}

// formats are the endings of files that are read.
var formats = map[string]Format{".yaml": YAML, ".yml": YAML, ".json": JSON, ".cue": CUE}

// ReadSource reads a source that is no file, such as standard input. Its name is what findings call it.
func ReadSource(name string, format Format, reader io.Reader) (Source, error) {
	text, err := io.ReadAll(io.LimitReader(reader, maxFileBytes+1))
	if err != nil {
		return Source{}, fmt.Errorf("reading %s: %w", name, err)
	}
	return Source{Name: name, Format: format, Text: text}, nil
}

// ReadPaths reads files, and of directories and those below them every *.yaml, *.yml, *.json and *.cue; names that begin
// with a dot or an underscore are passed over in directories. What cannot be read is among the findings.
func ReadPaths(paths ...string) ([]Source, Findings) {
	var sources []Source
	var findings Findings
	wrong := func(name, format string, values ...any) {
		findings = append(findings, Finding{Position: Position{File: name}, Message: fmt.Sprintf(format, values...)})
	}
	read := func(name string, format Format) {
		file, err := os.Open(name)
		if err != nil {
			wrong(name, "cannot be read: %v", reason(err))
			return
		}
		source, err := ReadSource(name, format, file)
		// A file that was only read has nothing to lose when closing it fails.
		_ = file.Close()
		if err != nil {
			wrong(name, "cannot be read: %v", reason(err))
			return
		}
		sources = append(sources, source)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			wrong(path, "cannot be read: %v", reason(err))
		case info.IsDir():
			names, err := list(path)
			if err != nil {
				wrong(path, "cannot be read: %v", reason(err))
			}
			if err == nil && len(names) == 0 {
				wrong(path, "has no file that ends in .yaml, .yml, .json or .cue; name the right directory")
			}
			for _, name := range names {
				read(name, formats[filepath.Ext(name)])
			}
		case formats[filepath.Ext(path)] == "":
			wrong(path, "does not end in .yaml, .yml, .json or .cue; rename it so that it is known how to read it")
		default:
			read(path, formats[filepath.Ext(path)])
		}
	}
	return sources, findings
}

// reason takes the path off an error of the file system: a finding begins with it.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// list returns the files of a directory that are read, in order.
func list(directory string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(directory, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := name != directory && (strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_"))
		switch {
		case entry.IsDir() && (hidden || entry.Name() == "cue.mod"):
			return filepath.SkipDir
		case !entry.IsDir() && !hidden && formats[filepath.Ext(name)] != "":
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}
