package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/policies/importer"
	"github.com/restripe/restripe/tui/cli/program"
)

func importCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "import", Short: "Translate what other systems declare into policies",
		Long: "Translate what other systems declare into objects that `restripe apply` takes. What has no counterpart is listed in comments,\n" +
			"by the name it has in the input, and on standard error.",
	}, importLifecycle(s), importCeph(s))
}

// backendFlag adds --backend.
func backendFlag(command *cobra.Command) *string {
	return command.Flags().String("backend", localBackend, "StorageBackend that the policies are for")
}

func importLifecycle(s *session) *cobra.Command {
	var options importer.S3Options
	command := &cobra.Command{
		Use: "s3-lifecycle FILE|-", Short: "Translate the lifecycle configuration of an S3 bucket",
		Long: "Translate what `aws s3api get-bucket-lifecycle-configuration` prints: a policy for every prefix with transitions. S3 goes by\n" +
			"age and Restripe by use: the days of the first step become the dwell time.",
		Example: "  restripe import s3-lifecycle lifecycle.json --key-prefix photos/ > photos.yaml",
		Args:    cobra.ExactArgs(1),
	}
	backend := backendFlag(command)
	command.Flags().StringVar(&options.KeyPrefix, "key-prefix", "", "goes before every prefix of the bucket")
	command.RunE = func(_ *cobra.Command, arguments []string) error {
		text, err := s.readInput(arguments[0])
		if err != nil {
			return err
		}
		options.Backend = *backend
		result, err := importer.S3Lifecycle(text, options)
		return s.showImport(arguments[0], result, err)
	}
	return command
}

func importCeph(s *session) *cobra.Command {
	var options importer.CephOptions
	var profile string
	command := &cobra.Command{
		Use: "ceph-profile POOL-FILE|-", Short: "Translate a pool of Ceph and its erasure-code profile",
		Long: "Translate what `ceph osd pool get NAME all -f json` prints, and for an erasure-coded pool what\n" +
			"`ceph osd erasure-code-profile get NAME -f json` prints, into a scheme and a policy with that one step.",
		Example: "  restripe import ceph-profile pool.json --profile profile.json > pool.yaml",
		Args:    cobra.ExactArgs(1),
	}
	backend := backendFlag(command)
	command.Flags().StringVar(&profile, "profile", "", "file of the erasure-code profile (default: the pool is replicated)")
	command.Flags().StringVar(&options.Prefix, "prefix", "", "of the keys that were the pool's (default: the pool's name and a slash)")
	command.RunE = func(_ *cobra.Command, arguments []string) error {
		pool, err := s.readInput(arguments[0])
		if err != nil {
			return err
		}
		var settings []byte
		if profile != "" {
			if settings, err = s.readInput(profile); err != nil {
				return err
			}
		}
		options.Backend = *backend
		result, err := importer.Ceph(settings, pool, options)
		return s.showImport(arguments[0], result, err)
	}
	return command
}

// mostInput bounds what is read of a file that is translated.
const mostInput = 16 << 20

// readInput reads a file, or standard input for -.
func (s *session) readInput(path string) (text []byte, err error) {
	in := s.In
	if path != standardInput {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		// A file that was only read has nothing to lose when closing it fails.
		defer func() { _ = file.Close() }()
		in = file
	}
	if text, err = io.ReadAll(io.LimitReader(in, mostInput+1)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(text) > mostInput {
		return nil, fmt.Errorf("%s is larger than %s", path, words.Bytes(mostInput))
	}
	return text, nil
}

// errNothingImported ends an import of which nothing came.
var errNothingImported = errors.New("nothing of it can be carried over")

func (s *session) showImport(path string, result *importer.Result, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, refusal := range result.Refused {
		fmt.Fprintf(s.Messages, "not carried over: %s\n", refusal)
	}
	if len(result.Objects) == 0 {
		return fmt.Errorf("%s: %w", path, errNothingImported)
	}
	text, err := result.YAML()
	if err != nil {
		return err
	}
	if _, err := s.Out.Write(text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
