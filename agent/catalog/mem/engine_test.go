package mem_test

import (
	"testing"

	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/mem"
)

func TestEngine(t *testing.T) {
	catalogtest.Run(t, func(*testing.T) catalogtest.Instance { return catalogtest.Instance{Engine: mem.New()} })
}
