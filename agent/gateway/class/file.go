package class

import (
	"fmt"
	"os"

	"github.com/restripe/restripe/agent/gateway/api"
)

// LoadClasses reads a class file.
func LoadClasses(path string) ([]api.Class, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the class file: %w", err)
	}
	classes, err := api.ParseClasses(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return classes, nil
}
