// Command record replays a script of keys on a terminal screen over a running console, and writes what a person would
// have seen: a recording in asciicast v2 that `asciinema play` plays, and an SVG picture for every shot of the script.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/restripe/restripe/tui/screen"
	"github.com/restripe/restripe/tui/screen/drive"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	console := flag.String("console", "127.0.0.1:7482", "address of the console, host:port or a URL")
	script := flag.String("script", "", "file with what to do")
	out := flag.String("out", ".", "directory for session.cast and the pictures")
	width := flag.Int("width", 100, "columns of the screen")
	height := flag.Int("height", 30, "lines of the screen")
	patience := flag.Duration("patience", 2*time.Minute, "how long a line of the script may take")
	flag.Parse()
	if *script == "" {
		return errors.New("-script names no file")
	}
	text, err := os.ReadFile(*script)
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, connections, err := screen.Dial(*console, os.Getenv(screen.TokenVariable), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connections.Close()) }()
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return fmt.Errorf("making the directory: %w", err)
	}
	file, err := os.Create(filepath.Join(*out, "session.cast"))
	if err != nil {
		return fmt.Errorf("making the recording: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	recording, err := newCast(file, *width, *height, time.Now())
	if err != nil {
		return err
	}
	s, err := drive.Start(ctx, screen.Options{Client: client, Address: *console}, *width, *height, recording)
	if err != nil {
		return err
	}
	player := drive.Script{Patience: *patience, Shot: func(s *drive.Screen, name string) error {
		return writePicture(filepath.Join(*out, filepath.Base(name)+".svg"), s)
	}}
	return errors.Join(player.Run(ctx, s, string(text)), s.Stop())
}

func writePicture(path string, s *drive.Screen) error {
	if err := os.WriteFile(path, []byte(picture(s.Content(), s.Width, s.Height)), 0o644); err != nil {
		return fmt.Errorf("writing a picture: %w", err)
	}
	return nil
}
