package kind_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shared are values of two gateways over the catalog in a Redis.
const shared = `
catalog: {secret: catalog}
gateways: {users: people, replicas: 2, service: {type: NodePort}}
`

// longestSilence is for how long clients may go without an answer while gateways come and go one by one; machines are slow that do
// other things too.
const longestSilence = 15 * time.Second

// TestSeveralGateways: two gateways share a catalog in Redis, each on a machine of its own; clients of the Service are served while a
// gateway is deleted, a machine is emptied, and gateways and agents are upgraded.
func TestSeveralGateways(t *testing.T) {
	s := begin(t)
	s.fixed = shared
	tell(t, part{"install", s.installShared}, part{"policies", s.declare}, part{"objects", s.store}, part{"gateway", s.loseGateway},
		part{"drain", s.drainUsed}, part{"upgrade", s.upgradeUsed}, part{"take away", s.takeAway})
}

// installShared: a Redis that keeps what it acknowledges, on the first worker, and the chart.
func (s *story) installShared(t *testing.T) {
	s.prepare(t, "shared")
	password := rand.Text()
	s.kubectl(t, "", "-n", namespace, "create", "secret", "generic", "catalog",
		"--from-literal", "catalog=redis://:"+password+"@redis."+namespace+".svc:6379", "--from-literal", "password="+password)
	s.kubectl(t, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: redis, namespace: %s}
spec: {selector: {app: redis}, ports: [{port: 6379}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: redis, namespace: %[1]s}
spec:
  serviceName: redis
  selector: {matchLabels: {app: redis}}
  template:
    metadata: {labels: {app: redis}}
    spec:
      automountServiceAccountToken: false
      nodeSelector: {kubernetes.io/hostname: %s}
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: redis
        image: localhost/k8s/redis:debian
        imagePullPolicy: Never
        command: [redis-server, --dir, /data, --appendonly, "yes", --appendfsync, always, --requirepass, $(PASSWORD)]
        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: catalog, key: password}}}]
        readinessProbe: {tcpSocket: {port: 6379}, periodSeconds: 2}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: disks, resources: {requests: {storage: 1Gi}}}
`, namespace, s.workers[0]), "apply", "-f", "-")
	s.kubectl(t, "", "-n", namespace, "rollout", "status", "statefulset/redis", "--timeout=5m")
	s.helm(t, "install", release, chart, "-f", s.values(t, s.old), "--set", "agent.maxUnavailable="+strconv.Itoa(perWorker))
	s.ready(t)
	var on []string
	for _, line := range s.pods(t, "gateway") {
		on = append(on, strings.Fields(line)[0])
	}
	slices.Sort(on)
	if want := s.workers[:]; !slices.Equal(on, want) {
		t.Errorf("gateways are on %q, want one on each of %q", on, want)
	}
}

// use reads objects all the time, until the function that it returns is called, which says how often that failed and for how long at
// most there was no answer. Whatever is read has to be what was stored.
func (s *story) use(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	reads, failures, longest := 0, 0, time.Duration(0)
	var wrong []string
	var last error
	go func() {
		defer close(ended)
		served := time.Now()
		for ctx.Err() == nil {
			for key, want := range s.photos {
				patience, enough := context.WithTimeout(ctx, 10*time.Second)
				text, err := s.read(patience, key)
				enough()
				switch {
				case ctx.Err() != nil:
					return
				case err != nil:
					failures, last = failures+1, err
					continue
				case !bytes.Equal(text, want):
					wrong = append(wrong, key)
				}
				longest, served, reads = max(longest, time.Since(served)), time.Now(), reads+1
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() {
		t.Helper()
		cancel()
		<-ended
		t.Logf("%d reads; the longest time without an answer was %v; %d failed, the last with: %v",
			reads, longest.Round(time.Millisecond), failures, last)
		if len(wrong) > 0 || reads == 0 || longest > longestSilence {
			t.Errorf("%d reads, the longest time without an answer %v, want at most %v; not what was stored are %q",
				reads, longest, longestSilence, wrong)
		}
	}
}

// loseGateway: one of two gateways is deleted, and the other serves.
func (s *story) loseGateway(t *testing.T) {
	defer s.use(t)()
	s.kubectl(t, "", "-n", namespace, "delete", "pod", release+"-gateway-1", "--timeout=2m")
	s.kubectl(t, "", "-n", namespace, "rollout", "status", "statefulset/r-gateway", "--timeout=5m")
}

// drainUsed: the machine of one gateway and half of the agents is emptied, and comes back.
func (s *story) drainUsed(t *testing.T) {
	defer s.use(t)()
	s.kubectl(t, "", "drain", s.workers[1], "--ignore-daemonsets", "--delete-emptydir-data", "--timeout", "5m")
	s.kubectl(t, "", "-n", namespace, "rollout", "status", "statefulset/r-gateway", "--timeout=5m")
	s.check(t, s.files)
	s.kubectl(t, "", "uncordon", s.workers[1])
	s.agentsReady(t)
	s.hears(t, len(s.agents))
}

// upgradeUsed: gateways take the new release one after the other, and so do agents.
func (s *story) upgradeUsed(t *testing.T) {
	defer s.use(t)()
	s.helm(t, "upgrade", release, chart, "-f", s.values(t, s.new))
	for _, what := range []string{"statefulset/r-gateway", "statefulset/r-console", "deployment/r-operator"} {
		s.kubectl(t, "", "-n", namespace, "rollout", "status", what, "--timeout=5m")
	}
	s.restart(t, s.agents[0], s.agents[1])
	s.restart(t, s.agents[perWorker:]...)
	s.checkImages(t, "gateway", s.new)
	s.check(t, s.files)
}
