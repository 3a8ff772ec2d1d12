package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// release is what the version of this tree is called, which is the default tag of images where the chart looks for them.
func release(t *testing.T) string {
	t.Helper()
	chart := contents(t, "playbooks/chart/Chart.yaml")
	says := regexp.MustCompile(`(?m)^appVersion: (v\d+\.\d+\.\d+)$`).FindStringSubmatch(chart)
	if says == nil {
		t.Fatalf("the chart is of no release:\n%s", chart)
	}
	return says[1]
}

// Chart, images and programs are of one release, the last that CHANGELOG.md has, unless VERSION says another one: what `make images` writes
// is what the chart runs.
func TestPackageOfTheChartIsOfTheRelease(t *testing.T) {
	is := release(t)
	last := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindStringSubmatch(contents(t, "CHANGELOG.md"))
	if last == nil || "v"+last[1] != is || !strings.Contains(contents(t, "playbooks/chart/Chart.yaml"), "\nversion: "+last[1]+"\n") {
		t.Errorf("the chart is of %s, CHANGELOG.md of %v", is, last)
	}
	if said := contents(t, "tui/cli/program/version.go"); !strings.Contains(said, fmt.Sprintf("var release = %q", is)) {
		t.Errorf("programs are not of %s", is)
	}
	if values := contents(t, "playbooks/chart/values.yaml"); !strings.Contains(values, "\n  tag: \"\" ") {
		t.Errorf("the chart has a tag of its own:\n%s", values)
	}
}

// TestImages writes an image of the program for agents, twice, without a container engine, and looks at what is in it.
func TestImages(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "images")
	bill := write(t, "restripe-agent.cdx.json", `{"bomFormat": "CycloneDX"}`)
	command := exec.CommandContext(t.Context(), "../playbooks/images/build.sh")
	command.Env = append(os.Environ(), "PROGRAMS=restripe-agent", "ARCHITECTURES="+runtime.GOARCH, "OUT="+out, "VERSION=", "BILLS="+filepath.Dir(bill))
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("writing images: %v\n%s", err, said)
	}
	place, tag := filepath.Join(out, "restripe-agent"), release(t)
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
	if len(top.Manifests) != 2 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != tag {
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
		c.Labels["org.opencontainers.image.version"] != tag || len(c.Labels["org.opencontainers.image.revision"]) != 40 {
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
	if said, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput(); err != nil || !strings.Contains(string(said), " "+tag+"+") {
		t.Errorf("the program says %s, %v", said, err)
	}
	loaded := ""
	file, err := os.Open(place + "-" + runtime.GOARCH + ".tar")
	if err != nil {
		t.Fatal(err)
	}
	visitArchive(t, file, func(head *tar.Header, content io.Reader) {
		if head.Name == "manifest.json" {
			text, err := io.ReadAll(content)
			if err != nil {
				t.Fatal(err)
			}
			loaded = string(text)
		}
	})
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if want := "localhost/restripe-agent"; !strings.Contains(loaded, `"`+want+":"+tag+`"`) ||
		!strings.Contains(contents(t, "playbooks/chart/values.yaml"), "\n  agent: "+want+"\n") {
		t.Errorf("what is loaded is %s, and the chart runs another image than %s:%s", loaded, want, tag)
	}
}

// unpackLayer visits what is in a layer of an image.
func unpackLayer(t *testing.T, path string, visit func(head *tar.Header, content io.Reader)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	visitArchive(t, packed, visit)
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func visitArchive(t *testing.T, archive io.Reader, visit func(head *tar.Header, content io.Reader)) {
	t.Helper()
	for reader := tar.NewReader(archive); ; {
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
