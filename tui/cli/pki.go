package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/tui/cli/program"
)

func pkiCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "pki", Short: "Make the certificates by which the parts of a cluster know one another",
		Long: "Make the certificates by which the parts of a cluster know one another, with an authority in a directory. Its key is needed\n" +
			"to issue and to revoke, and nowhere else: keep it off the machines of the cluster. Any other authority will do as well that\n" +
			"puts spiffe://CLUSTER/ROLE/NAME into certificates, as cert-manager does; its files have the same names.",
	}, pkiInit(s), pkiIssue(s), pkiRenew(s), pkiList(s), pkiRevoke(s))
}

// authorityFlag adds the flag that names the directory of the authority.
func authorityFlag(command *cobra.Command) *string {
	return command.Flags().String("ca", "ca", "directory of the authority")
}

func pkiInit(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "init CLUSTER", Short: "Make an authority for a cluster of that name",
		Example: "  restripe pki init blue --ca /root/blue-ca", Args: cobra.ExactArgs(1),
	}
	directory := authorityFlag(command)
	life := command.Flags().Duration("life", pki.DefaultAuthorityLife, "how long the authority is valid, and so all that it issues")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if *life <= 0 {
			return program.Misuse(command, "--life %s: want a time above 0, such as 87600h", *life)
		}
		authority, err := pki.CreateFor(*directory, arguments[0], *life)
		if err != nil {
			return err
		}
		return program.WriteLines(s.Out, []string{
			fmt.Sprintf("the authority of cluster %s is in %s: keep it off the machines of the cluster, and a copy of it safe",
				authority.Cluster, *directory),
		})
	}
	return command
}

// lifeFlag adds the flag that says how long certificates are valid.
func lifeFlag(command *cobra.Command) *time.Duration {
	return command.Flags().Duration("life", pki.DefaultLife, "how long the certificate is valid")
}

func pkiIssue(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "issue ROLE NAME", Short: "Issue a certificate: of an agent, gateway, console, operator, admin or catalog",
		Long: "Issue a certificate and its key: of an agent, gateway, console, operator or admin, or of a member of the etcd that has the\n" +
			"catalog, which is the role catalog. The name of an agent is that of its node.\n" +
			"The directory gets " + pki.CertificateFile + ", " + pki.KeyFile + ", " + pki.AuthorityFile + " and " + pki.RevokedFile +
			"; it is what --tls names.",
		Example: "  restripe pki issue agent n1 --out n1-tls\n" +
			"  restripe pki issue gateway gw1 --host gw1.example.org --host 10.0.0.7 --out gw1-tls",
		Args: cobra.ExactArgs(2),
	}
	directory, life := authorityFlag(command), lifeFlag(command)
	into := command.Flags().String("out", "", "directory for the certificate (default NAME-tls)")
	hosts := command.Flags().StringArray("host", nil, "name or address under which browsers and other programs reach it; may be repeated")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if *life <= 0 {
			return program.Misuse(command, "--life %s: want a time above 0, such as 2160h", *life)
		}
		if *into == "" {
			*into = arguments[1] + "-tls"
		}
		authority, err := pki.Open(*directory)
		if err != nil {
			return err
		}
		issued, err := authority.Issue(pki.Identity{Role: pki.Role(arguments[0]), Name: arguments[1]}, *hosts, *life, *into)
		if err != nil {
			return err
		}
		return program.WriteLines(s.Out, []string{issuedLine(issued, *into)})
	}
	return command
}

func issuedLine(issued pki.Issued, directory string) string {
	return fmt.Sprintf("%s: certificate %s until %s, in %s", issued.Identity, issued.Serial, issued.Expires.Format(time.RFC3339), directory)
}

func pkiRenew(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "renew DIRECTORY...", Short: "Issue certificates anew, with new keys, in place",
		Long: "Issue certificates anew, with new keys, in place: what uses them takes the new ones within a moment, without a\n" +
			"restart. The ones before stay valid until they expire.",
		Example: "  restripe pki renew /etc/restripe/tls --within 720h", Args: cobra.MinimumNArgs(1),
	}
	directory, life := authorityFlag(command), lifeFlag(command)
	within := command.Flags().Duration("within", 0, "only those that expire within that time (default: all)")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if *life <= 0 {
			return program.Misuse(command, "--life %s: want a time above 0, such as 2160h", *life)
		}
		authority, err := pki.Open(*directory)
		if err != nil {
			return err
		}
		var lines []string
		for _, path := range arguments {
			if *within > 0 {
				source, err := pki.Load(path)
				if err != nil {
					return err
				}
				if expires := source.Expires(); time.Until(expires) > *within {
					lines = append(lines, fmt.Sprintf("%s: left, valid until %s", source.Identity(), expires.UTC().Format(time.RFC3339)))
					continue
				}
			}
			renewed, err := authority.Renew(path, *life)
			if err != nil {
				return err
			}
			lines = append(lines, issuedLine(renewed, path))
		}
		return program.WriteLines(s.Out, lines)
	}
	return command
}

func pkiList(s *session) *cobra.Command {
	command := &cobra.Command{Use: "list", Short: "List the certificates that were issued and have not expired", Args: cobra.NoArgs}
	directory := authorityFlag(command)
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(*cobra.Command, []string) error {
		authority, err := pki.Open(*directory)
		if err != nil {
			return err
		}
		list, err := authority.List()
		if err != nil {
			return err
		}
		l := listing{
			value: list, empty: "nothing is issued; `restripe pki issue` does",
			columns: []column{{title: "ROLE"}, {title: "NAME"}, {title: "SERIAL"}, {title: "EXPIRES"}, {title: "REVOKED"}, {title: "HOSTS"}},
		}
		for _, one := range list {
			revoked := "no"
			if one.Revoked != nil {
				revoked = one.Revoked.Format(time.RFC3339)
			}
			l.names = append(l.names, one.Serial)
			l.rows = append(l.rows, []string{
				string(one.Identity.Role), one.Identity.Name, one.Serial, one.Expires.Format(time.RFC3339), revoked, strings.Join(one.Hosts, " "),
			})
		}
		return s.show(format, l)
	}
	return command
}

func pkiRevoke(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "revoke SERIAL|ROLE/NAME", Short: "Say that a certificate is not valid any more",
		Long: "Say that a certificate is not valid any more: that of a serial number, or all of a role and name. The parts of a cluster know\n" +
			"it once they have the file " + pki.RevokedFile + " of the authority beside their certificates; it need not be kept secret.",
		Example: "  restripe pki revoke agent/n3", Args: cobra.ExactArgs(1),
	}
	directory := authorityFlag(command)
	command.RunE = func(_ *cobra.Command, arguments []string) error {
		authority, err := pki.Open(*directory)
		if err != nil {
			return err
		}
		count, err := authority.Revoke(arguments[0])
		if err != nil {
			return err
		}
		return program.WriteLines(s.Out, []string{
			fmt.Sprintf("certificates revoked: %d; now copy %s beside the certificates of every part of the cluster",
				count, filepath.Join(*directory, pki.RevokedFile)),
		})
	}
	return command
}
