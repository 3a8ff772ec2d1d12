package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/serve"
)

// joined joins errors; a call that failed keeps its own error first.
func joined(err error, more ...error) error { return errors.Join(append([]error{err}, more...)...) }

// remote says whom a server may serve at an address that other machines can reach.
type remote string

const (
	remoteNobody  remote = ""
	remoteKnown   remote = "known"   // those who say who they are
	remoteAnybody remote = "anybody" // on a network where everybody may do everything
)

// remoteFlag adds --allow-remote.
func remoteFlag(command *cobra.Command) *remote {
	const name = "allow-remote"
	value := new(remote)
	command.Flags().StringVar((*string)(value), name, "", "allow an address that other machines can reach, for those who say who they are; "+
		"="+string(remoteAnybody)+": for everybody, without asking")
	command.Flags().Lookup(name).NoOptDefVal = string(remoteKnown)
	return value
}

// check refuses the address that a flag names if other machines can reach it, unless that is allowed. how says in words how a server
// has its callers say who they are, and asks whether this one does.
func (r remote) check(command *cobra.Command, flag, address string, asks bool, how string) error {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	switch {
	case err != nil:
		return misuse(command, "--%s %q: want host:port, such as %s", flag, address, defaultListen)
	case r != remoteNobody && r != remoteKnown && r != remoteAnybody:
		return misuse(command, "--allow-remote=%s: want %s or %s", r, remoteKnown, remoteAnybody)
	case host == "localhost" || ip != nil && ip.IsLoopback() || r == remoteAnybody || r == remoteKnown && asks:
		return nil
	case r == remoteKnown:
		return misuse(command, "--%s %q can be reached by other machines, and nobody would be asked who they are: %s; "+
			"on a network where everybody may do everything, say --allow-remote=%s", flag, address, how, remoteAnybody)
	}
	return misuse(command, "--%s %q can be reached by other machines: use a loopback address such as 127.0.0.1, or add --allow-remote",
		flag, address)
}

// The environment that stores and catalogs are read from where the command line does not name them.
const (
	storeVariable   = "RESTRIPE_STORE"
	catalogVariable = "RESTRIPE_CATALOG"
)

// secretAddress returns the address that a flag names: itself, what is in the file after an @, or what is in the environment. A
// password is in one of the latter, as every user of a machine may see the command lines of all.
func secretAddress(command *cobra.Command, flag, value, variable string) (string, error) {
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
		return "", misuse(command, "--%s has a password, which every user of this machine could see: write the address into a file that "+
			"only you may read and give --%s @FILE, or set %s", flag, flag, variable)
	}
	return value, nil
}

// tlsFlag adds the flag that names certificates.
func tlsFlag(command *cobra.Command) *string {
	return command.Flags().String("tls", "", "directory with a certificate, its key and whom to believe, as `restripe pki issue` "+
		"makes it: gateways and agents have to be of the same cluster then (default: nobody says who they are, and nothing is encrypted)")
}

// certificates reads the certificates that --tls names; nil where it names none.
func certificates(directory string, roles ...pki.Role) (*pki.Source, error) {
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
	return source, nil
}

// servingFlag adds the flag that names the certificate of what is served to people.
func servingFlag(command *cobra.Command) *string {
	return command.Flags().String("tls", "", "directory with the certificate that --https serves with, its key and whom to believe, "+
		"as `restripe pki issue` makes it with --host")
}

// serving returns the configuration of a server for people, of the certificate that --tls names; nil without --https.
func serving(command *cobra.Command, https bool, directory string, role pki.Role) (*tls.Config, error) {
	switch {
	case !https && directory == "":
		return nil, nil
	case !https:
		return nil, misuse(command, "--tls names the certificate that --https serves with: add --https")
	case directory == "":
		return nil, misuse(command, "--https takes a certificate: name the directory of one with --tls")
	}
	source, err := certificates(directory, role)
	if err != nil {
		return nil, err
	}
	return source.Serving(), nil
}

// lifelineFlag adds the flag that ties a server to the process that holds its standard input open.
func lifelineFlag(command *cobra.Command) *bool {
	return command.Flags().Bool(launch.LifelineFlag, false, "leave when standard input closes")
}

// withLifeline returns a context that also ends when standard input closes, if on is set. The goroutine that reads it
// ends with the process.
func (s *session) withLifeline(ctx context.Context, on bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if on {
		go func() {
			defer cancel()
			if _, err := io.Copy(io.Discard, s.in); err != nil {
				fmt.Fprintf(s.messages, "restripe: reading the lifeline: %v\n", err)
			}
		}()
	}
	return ctx, cancel
}

// announce tells the person or the launcher at standard output where a server listens.
func (s *session) announce(what, id, address string) error {
	return writeLines(s.out, []string{what + " " + id + launch.ListeningMark + address})
}

// serverLog returns the log of a server: text on standard error.
func (s *session) serverLog() *slog.Logger {
	return slog.New(serve.LimitLog(slog.NewTextHandler(s.messages, nil)))
}
