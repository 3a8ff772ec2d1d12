package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// ociDescriptor names a blob of an OCI layout.
type ociDescriptor struct {
	MediaType, Digest string
	Size              int64
	Annotations       map[string]string
	Platform          *struct{ Architecture, OS string }
}

// ociManifest is an index or a manifest.
type ociManifest struct {
	Manifests []ociDescriptor
	Config    ociDescriptor
	Layers    []ociDescriptor
	Subject   *ociDescriptor
}

// TestImages writes an image of the program for agents, twice, without a container engine, and looks at what is in it.
func TestImages(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "images")
	bill := write(t, "restripe-agent.cdx.json", `{"bomFormat": "CycloneDX"}`)
	command := exec.CommandContext(t.Context(), "../playbooks/images/build.sh")
	command.Env = append(os.Environ(), "PROGRAMS=restripe-agent", "ARCHITECTURES="+runtime.GOARCH, "OUT="+out, "VERSION=v1.2.3", "BILLS="+filepath.Dir(bill))
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("writing images: %v\n%s", err, said)
	}
	place := filepath.Join(out, "restripe-agent")
	blob := func(d ociDescriptor) string {
		return filepath.Join(place, "blobs", strings.Replace(d.Digest, ":", "/", 1))
	}
	read := func(path string, into any) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var top, index, manifest, attached ociManifest
	read(filepath.Join(place, "index.json"), &top)
	if len(top.Manifests) != 2 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" {
		t.Fatalf("the layout has %+v", top)
	}
	read(blob(top.Manifests[0]), &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Platform == nil || index.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("the index has %+v", index)
	}
	read(blob(top.Manifests[1]), &attached)
	if attached.Subject == nil || attached.Subject.Digest != top.Manifests[0].Digest || len(attached.Layers) != 1 {
		t.Errorf("what is in the program is attached as %+v", attached)
	}
	read(blob(index.Manifests[0]), &manifest)
	var config struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		}
	}
	read(blob(manifest.Config), &config)
	if c := config.Config; c.User != "65532:65532" || strings.Join(c.Entrypoint, " ") != "/usr/bin/restripe-agent" ||
		c.Labels["org.opencontainers.image.version"] != "v1.2.3" || len(c.Labels["org.opencontainers.image.revision"]) != 40 {
		t.Errorf("the image says %+v", c)
	}
	program, sizes := filepath.Join(t.TempDir(), "restripe-agent"), map[string]int64{}
	for _, layer := range manifest.Layers {
		unpackLayer(t, blob(layer), func(head *tar.Header, content io.Reader) {
			sizes[head.Name] = head.Size
			if head.Name != "usr/bin/restripe-agent" {
				return
			}
			text, err := io.ReadAll(content)
			if err == nil {
				err = os.WriteFile(program, text, 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if sizes["etc/ssl/certs/ca-certificates.crt"] == 0 || sizes["etc/passwd"] == 0 {
		t.Errorf("the image has %v", sizes)
	}
	if said, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput(); err != nil || !strings.Contains(string(said), "v1.2.3") {
		t.Errorf("the program says %s, %v", said, err)
	}
}

// unpackLayer visits what is in a layer of an image.
func unpackLayer(t *testing.T, path string, visit func(head *tar.Header, content io.Reader)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(packed); ; {
		head, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(head, reader)
	}
}
