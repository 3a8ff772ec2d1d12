package server

import (
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

func TestASlowClientIsToldSo(t *testing.T) {
	if status, code := statusOf(errSlow); status != 408 || code != api.CodeTimeout {
		t.Errorf("a slow client is told %d %s", status, code)
	}
}
