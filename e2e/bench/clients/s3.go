package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
)

// The part s3 has clients put and get objects of 1 MiB over S3, from servers that keep them in directories of one disk: a gateway over as
// many nodes as its scheme has blocks, a gateway of Ceph over as many OSDs, whose pool has the same code, and versitygw, which keeps one
// copy as a file. The same clients ask all of them.
const (
	s3Scheme  = "rs(4,2)"
	s3Data    = 4
	s3Parity  = 2
	s3Bucket  = "bench"
	s3Region  = "us-east-1"
	s3Key     = "restripe-bench"
	s3Secret  = "restripe-bench-secret"
	cephName  = "Ceph RGW"
	versity   = "versitygw"
	sumSigned = "UNSIGNED-PAYLOAD" // in place of a digest of the body
)

var byHTTPName, byS3Name = gatewayName + " by HTTP", gatewayName + " by S3"

// s3At asks a server of S3 for objects in a bucket. Requests are signed, their bodies are not.
func s3At(address string) connector {
	return func() (session, error) {
		transport := &http.Transport{DisableCompression: true}
		return &httpSession{
			base: "http://" + address + "/" + s3Bucket + "/", transport: transport, client: &http.Client{Transport: transport}, sign: signed,
		}, nil
	}
}

func signed(request *http.Request) *http.Request {
	request.Header.Set("X-Amz-Content-Sha256", sumSigned)
	return signer.SignV4(*request, s3Key, s3Secret, "", s3Region)
}

// makeBucket makes the bucket of this part at a server that begins to answer.
func makeBucket(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	var last error
	err := patiently(ctx, 100*time.Millisecond, func() (bool, error) {
		s := &httpSession{base: "http://" + address + "/", transport: &http.Transport{}, sign: signed}
		s.client = &http.Client{Transport: s.transport, Timeout: patience}
		last = s.ask(http.MethodPut, s3Bucket, nil, http.StatusOK)
		return last == nil, errors.Join(s.Close())
	})
	if err != nil {
		return fmt.Errorf("making a bucket at %s: %w", address, errors.Join(last, err))
	}
	return nil
}

// s3Server is a server of S3 that runs.
type s3Server struct {
	name    string
	address string // of S3
	front   int    // its process that clients speak to
	others  []int  // those behind it
	stop    func() error
}

// s3Peers starts the servers of others that are installed, and says why the rest is missing.
func (b *bench) s3Peers(ctx context.Context) (servers []*s3Server, missing []string, err error) {
	for _, start := range []func(context.Context, string) (*s3Server, string, error){b.startCeph, b.startVersity} {
		folder, err := os.MkdirTemp("", "s3-") // sockets of Ceph have short paths
		if err != nil {
			return servers, missing, err
		}
		server, reason, err := start(ctx, folder)
		switch {
		case err != nil:
			return servers, missing, errors.Join(err, os.RemoveAll(folder))
		case server == nil:
			b.say("%s", reason)
			missing = append(missing, reason)
			if err := os.RemoveAll(folder); err != nil {
				return servers, missing, err
			}
		default:
			stop := server.stop
			server.stop = func() error { return errors.Join(stop(), os.RemoveAll(folder)) }
			servers = append(servers, server)
			if err := makeBucket(ctx, server.address); err != nil {
				return servers, missing, fmt.Errorf("%s: %w", server.name, err)
			}
		}
	}
	return servers, missing, nil
}

// clientsFolder is where e2e/clients/setup.sh and setup.sh beside this file put programs.
func clientsFolder() string {
	if folder := os.Getenv("RESTRIPE_CLIENTS"); folder != "" {
		return folder
	}
	return ".cache/clients"
}

// startVersity starts versitygw over a directory; a reason where it is not installed.
func (b *bench) startVersity(ctx context.Context, folder string) (*s3Server, string, error) {
	program := filepath.Join(clientsFolder(), "bin", "versitygw")
	if _, err := os.Stat(program); err != nil {
		found, err := exec.LookPath("versitygw")
		if err != nil {
			return nil, versity + " is not among them: it was not installed (`e2e/bench/clients/setup.sh` builds it).", nil
		}
		program = found
	}
	b.say("starting %s over a directory", versity)
	var started peers
	address, err := started.run(ctx, func(port string) []string {
		return []string{program, "--port", "127.0.0.1:" + port, "--access", s3Key, "--secret", s3Secret, "--region", s3Region, "--keep-alive",
			"--quiet", "posix", folder}
	})
	if err != nil {
		return nil, "", errors.Join(err, started.stop())
	}
	return &s3Server{name: versity, address: address, front: started.pids[address], stop: started.stop}, "", nil
}

// s3Rows are what the part measured.
type s3Rows struct {
	rows    []largeRow
	missing []string // which peers, and why
}

// s3Targets is the most that there may be: gateway by two protocols, and two peers.
func (b *bench) s3Targets() int { return 2 * 4 }

func (b *bench) s3(ctx context.Context) (result s3Rows, err error) {
	class := api.ClassSpec{Name: "default", Ladder: s3Scheme, Prefixes: []string{""}}
	c, err := b.startNodes(ctx, launch.StoreFile, s3Data+s3Parity, nil, class)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := makeBucket(ctx, c.s3); err != nil {
		return result, err
	}
	servers, missing, err := b.s3Peers(ctx)
	defer func() {
		for _, server := range servers {
			err = errors.Join(err, server.stop())
		}
	}()
	if err != nil {
		return result, err
	}
	result.missing = missing
	behind := without(c.processes, c.gateway)
	asked := []largeLoad{
		{byHTTPName, c.gateway, behind, httpAt(c.http), newLedger("http/", largeObjects, largeSize)},
		{byS3Name, c.gateway, behind, s3At(c.s3), newLedger("s3/", largeObjects, largeSize)},
	}
	for _, server := range servers {
		asked = append(asked, largeLoad{server.name, server.front, server.others, s3At(server.address), newLedger("", largeObjects, largeSize)})
	}
	for _, one := range asked {
		b.say("putting %d objects of 1 MiB, %s", largeObjects, one.name)
		if err := one.book.fill(one.connect); err != nil {
			return result, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	result.rows, err = b.loadLarge(ctx, "over directories", asked)
	return result, err
}

func (b *bench) reportS3(r s3Rows) string {
	t := newText("## Objects over S3")
	t.prose("%d clients get and put objects of 1 MiB, each with a connection of its own, among %d of them that are there; what is read is "+
		"verified. The gateway keeps them under %s over %d nodes, each a directory; %s, Ceph's gateway for S3, in a pool of %d+%d over %d OSDs, "+
		"each BlueStore in a file of a directory, with a cache that has room for them all, and with its index in pools of one copy, as the "+
		"gateway has its catalog in one file; %s as a file of a directory, without any protection. All directories are on one disk. The gateway "+
		"and Ceph answer a put when the disk has what was put, %s when the kernel has it.", largeClients, largeObjects, s3Scheme,
		s3Data+s3Parity, cephName, s3Data, s3Parity, s3Data+s3Parity, versity, versity)
	t.say("")
	t.prose("The same clients ask all of them over S3, with requests that are signed and bodies that are not; the gateway has no access keys "+
		"here and verifies no signature, the others do. Processor is the time for 1 MiB of objects: of the process that clients speak to, of "+
		"all processes behind it (agents; monitor, manager and OSDs), and of both. Ratios are to %s in the same round, in brackets are the "+
		"slowest and the fastest round.", cephName)
	for _, reason := range r.missing {
		t.say("\n%s", reason)
	}
	t.say("\n| load | | MiB a second | to %s | p50 ms | p99 | processor of the server, ms for 1 MiB | behind it | both | to %s "+
		"| memory of the server MiB |\n|%s", cephName, cephName, strings.Repeat("---|", 11))
	for i := range r.rows {
		row := &r.rows[i]
		for _, name := range row.names {
			rate, processor := "-", "-"
			if name != cephName {
				rate = number("%.2f", row.ratio(name, cephName, perSecond))
				processor = number("%.2f", median(row.bothOf(name))/median(row.bothOf(cephName)))
			}
			t.say("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |", row.what, name, spread("%.0f", row.values(name, perSecond)), rate,
				number("%.1f", row.median(name, p50)), number("%.1f", row.median(name, func(r *round) float64 { return r.all.p99 })),
				number("%.2f", row.median(name, processorOfMebibyte)), number("%.2f", median(row.behind(name))),
				number("%.2f", median(row.bothOf(name))), processor, mebibytes(highest(row.values(name, peakOf))))
		}
	}
	return t.String()
}
