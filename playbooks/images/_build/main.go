// Command images writes images of containers without a container engine: an OCI layout and an archive for each program, for every
// processor that it was built for. The same programs give the same digests, whoever writes them, wherever and when.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is whom programs run as in containers: nobody who has anything.
const user = 65532

// options say what an image is made of.
type options struct {
	program  string    // name of the program: restripe
	links    []string  // further names of it
	builds   string    // directory with PROGRAM of each processor in a directory of its name: amd64/restripe
	version  string    // of the program
	revision string    // commit that it was built from
	created  time.Time // of the commit
	roots    string    // file of the certificate authorities that are believed
	bill     string    // file of what is in the program, as CycloneDX; empty: none
	into     string    // directory that gets NAME (an OCI layout), and NAME-PROCESSOR.tar
}

func main() {
	var o options
	var seconds int64
	flag.StringVar(&o.program, "program", "", "name of the program")
	flag.Func("link", "further name of the program; may be repeated", func(name string) error {
		o.links = append(o.links, name)
		return nil
	})
	flag.StringVar(&o.builds, "builds", "", "directory with PROCESSOR/PROGRAM")
	flag.StringVar(&o.version, "version", "", "version of the program")
	flag.StringVar(&o.revision, "revision", "", "commit that it was built from")
	flag.Int64Var(&seconds, "created", 0, "time of the commit, in seconds since 1970")
	flag.StringVar(&o.roots, "roots", "/etc/ssl/certs/ca-certificates.crt", "certificate authorities that are believed")
	flag.StringVar(&o.bill, "bill", "", "what is in the program, as CycloneDX in JSON")
	flag.StringVar(&o.into, "into", "", "directory that gets the images")
	flag.Parse()
	o.created = time.Unix(seconds, 0).UTC()
	if err := write(&o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// write writes the images of a program, and says what it wrote.
func write(o *options, out io.Writer) error {
	found, err := filepath.Glob(filepath.Join(o.builds, "*", o.program))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("there is no %s in the folders of %s: build it first", o.program, o.builds)
	}
	slices.Sort(found)
	var added []mutate.IndexAddendum
	for _, path := range found {
		processor := filepath.Base(filepath.Dir(path))
		image, err := imageOf(o, path, processor)
		if err != nil {
			return err
		}
		archive := filepath.Join(o.into, o.program+"-"+processor+".tar")
		tag, err := name.NewTag("localhost/" + o.program + ":" + o.version)
		if err != nil {
			return fmt.Errorf("%q is no version that an image can have: %w", o.version, err)
		}
		if err := tarball.WriteToFile(archive, tag, image); err != nil {
			return fmt.Errorf("writing %s: %w", archive, err)
		}
		added = append(added, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: processor},
		}})
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), added...)
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	place := filepath.Join(o.into, o.program)
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	written, err := layout.Write(place, empty.Index)
	if err != nil {
		return fmt.Errorf("writing %s: %w", place, err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.version})
	if err := written.AppendIndex(index, named); err != nil {
		return fmt.Errorf("writing %s: %w", place, err)
	}
	if o.bill != "" {
		if err := attach(o, written, index); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s, %s, for %d processors\n", place, digest, len(added))
	return nil
}

// imageOf makes the image of a program for one processor.
func imageOf(o *options, path, processor string) (v1.Image, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots, err := os.ReadFile(o.roots)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authorities: %w; name another file with -roots", err)
	}
	base, err := layerOf(o.created, []file{
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: roots},
		{name: "etc/passwd", mode: 0o644, text: fmt.Appendf(nil, "restripe:x:%d:%d::/var/lib/restripe:/sbin/nologin\n", user, user)},
		{name: "etc/group", mode: 0o644, text: fmt.Appendf(nil, "restripe:x:%d:\n", user)},
		{name: "tmp/", mode: 0o1777}, {name: "var/", mode: 0o755}, {name: "var/lib/", mode: 0o755},
		{name: "var/lib/restripe/", mode: 0o700, owned: true},
	})
	if err != nil {
		return nil, err
	}
	files := []file{
		{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755}, {name: "usr/bin/" + o.program, mode: 0o755, text: program},
	}
	for _, name := range o.links {
		files = append(files, file{name: "usr/bin/" + name, mode: 0o777, link: o.program})
	}
	top, err := layerOf(o.created, files)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), base, top)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", processor, v1.Time{Time: o.created}
	config.History = []v1.History{
		{Created: v1.Time{Time: o.created}, CreatedBy: "certificate authorities, a user"},
		{Created: v1.Time{Time: o.created}, CreatedBy: o.program + " " + o.version},
	}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/var/lib/restripe", Entrypoint: []string{"/usr/bin/" + o.program},
		Env: []string{"PATH=/usr/bin", "HOME=/var/lib/restripe"},
		Labels: map[string]string{
			"org.opencontainers.image.title": o.program, "org.opencontainers.image.version": o.version,
			"org.opencontainers.image.revision": o.revision, "org.opencontainers.image.created": o.created.Format(time.RFC3339),
			"org.opencontainers.image.source": "https://github.com/restripe/restripe",
		},
	}
	return mutate.ConfigFile(image, config)
}

// file is a file of a layer, or a directory where its name ends with a slash.
type file struct {
	name  string
	link  string // what a symbolic link leads to; empty: it is none
	mode  int64
	text  []byte
	owned bool // by the user whom programs run as; else by root
}

// layerOf makes a layer whose bytes depend on nothing else.
func layerOf(at time.Time, files []file) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		head := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			head.Typeflag = tar.TypeDir
		}
		if f.link != "" {
			head.Typeflag, head.Linkname = tar.TypeSymlink, f.link
		}
		if f.owned {
			head.Uid, head.Gid = user, user
		}
		if err := w.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// attach adds what is in the program to a layout, as a manifest that refers to the image.
func attach(o *options, place layout.Path, index v1.ImageIndex) error {
	const kind = "application/vnd.cyclonedx+json"
	text, err := os.ReadFile(o.bill)
	if err != nil {
		return err
	}
	of, err := index.Digest()
	if err != nil {
		return err
	}
	size, err := index.Size()
	if err != nil {
		return err
	}
	bill, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(text, kind))
	if err != nil {
		return err
	}
	bill = mutate.ConfigMediaType(bill, kind)
	refers, is := mutate.Subject(bill, v1.Descriptor{MediaType: types.OCIImageIndex, Digest: of, Size: size}).(v1.Image)
	if !is {
		return fmt.Errorf("attaching %s: what refers to the image is no image", o.bill)
	}
	return place.AppendImage(refers)
}
