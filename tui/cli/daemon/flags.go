package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/tui/cli/program"
)

// Remote says whom a server may serve at an address that other machines can reach.
type Remote string

const (
	RemoteNobody  Remote = ""
	RemoteKnown   Remote = "known"   // those who say who they are
	RemoteAnybody Remote = "anybody" // on a network where everybody may do everything
)

// RemoteFlag adds --allow-remote.
func RemoteFlag(command *cobra.Command) *Remote {
	const name = "allow-remote"
	value := new(Remote)
	command.Flags().StringVar((*string)(value), name, "", "allow an address that other machines can reach, for those who say who they are; "+
		"="+string(RemoteAnybody)+": for everybody, without asking")
	command.Flags().Lookup(name).NoOptDefVal = string(RemoteKnown)
	return value
}

// Check refuses the address that a flag names if other machines can reach it, unless that is allowed. how says in words how a server
// has its callers say who they are, and asks whether this one does.
func (r Remote) Check(command *cobra.Command, flag, address string, asks bool, how string) error {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	switch {
	case err != nil:
		return program.Misuse(command, "--%s %q: want host:port, such as %s", flag, address, DefaultListen)
	case r != RemoteNobody && r != RemoteKnown && r != RemoteAnybody:
		return program.Misuse(command, "--allow-remote=%s: want %s or %s", r, RemoteKnown, RemoteAnybody)
	case host == "localhost" || ip != nil && ip.IsLoopback() || r == RemoteAnybody || r == RemoteKnown && asks:
		return nil
	case r == RemoteKnown:
		return program.Misuse(command, "--%s %q can be reached by other machines, and nobody would be asked who they are: %s; "+
			"on a network where everybody may do everything, say --allow-remote=%s", flag, address, how, RemoteAnybody)
	}
	return program.Misuse(command, "--%s %q can be reached by other machines: use a loopback address such as 127.0.0.1, or add --allow-remote",
		flag, address)
}

// DefaultListen is where a gateway listens and is looked for unless told otherwise.
const DefaultListen = "127.0.0.1:7480"

// The environment that stores and catalogs are read from where the command line does not name them.
const (
	StoreVariable   = "RESTRIPE_STORE"
	DirectVariable  = "RESTRIPE_DIRECT"
	CatalogVariable = "RESTRIPE_CATALOG"
)

// SecretAddress returns the address that a flag names: itself, what is in the file after an @, or what is in the environment. A
// password is in one of the latter, as every user of a machine may see the command lines of all.
func SecretAddress(command *cobra.Command, flag, value, variable string) (string, error) {
	if value == "" {
		return os.Getenv(variable), nil
	}
	if name, isFile := strings.CutPrefix(value, "@"); isFile {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("reading the address that --%s names: %w", flag, err)
		}
		address := strings.TrimSpace(string(text))
		if address == "" || strings.ContainsAny(address, "\r\n") {
			return "", fmt.Errorf("the file %s, which --%s names, is not one line with an address", name, flag)
		}
		return address, nil
	}
	_, rest, _ := strings.Cut(value, "://")
	if user := rest[:max(0, strings.LastIndexByte(rest, '@'))]; strings.Contains(user, ":") {
		return "", program.Misuse(command, "--%s has a password, which every user of this machine could see: write the address into a file that "+
			"only you may read and give --%s @FILE, or set %s", flag, flag, variable)
	}
	return value, nil
}

// TLSFlag adds the flag that names Certificates.
func TLSFlag(command *cobra.Command) *string {
	return command.Flags().String("tls", "", "directory with a certificate, its key and whom to believe, as 'restripe pki issue' "+
		"makes it: gateways and agents have to be of the same cluster then (default: nobody says who they are, and nothing is encrypted)")
}

// certificates reads the certificates that --tls names; nil where it names none.
func Certificates(directory string, roles ...pki.Role) (*pki.Source, error) {
	if directory == "" {
		return nil, nil
	}
	source, err := pki.Load(directory)
	if err != nil {
		return nil, fmt.Errorf("--tls: %w", err)
	}
	if is := source.Identity(); !slices.Contains(roles, is.Role) {
		return nil, fmt.Errorf("--tls: the certificate in %s is of %s, and this is done by the roles %v", directory, is, roles)
	}
	if err := source.CheckAuthority(); err != nil {
		return nil, fmt.Errorf("--tls: %w", err)
	}
	if expires := source.Expires(); time.Now().After(expires) {
		return nil, fmt.Errorf("--tls: the certificate in %s has expired at %s: renew it, as `restripe pki renew` does", directory,
			expires.UTC().Format(time.RFC3339))
	}
	return source, nil
}

// lifelineFlag adds the flag that ties a server to the process that holds its standard input open.
func lifelineFlag(command *cobra.Command) *bool {
	return command.Flags().Bool(launch.LifelineFlag, false, "leave when standard input closes")
}

// withLifeline returns a context that also ends when standard input closes, if on is set. The goroutine that reads it
// ends with the process.
func withLifeline(ctx context.Context, s *program.Streams, on bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if on {
		go func() {
			defer cancel()
			if _, err := io.Copy(io.Discard, s.In); err != nil {
				fmt.Fprintf(s.Messages, "restripe: reading the lifeline: %v\n", err)
			}
		}()
	}
	return ctx, cancel
}
