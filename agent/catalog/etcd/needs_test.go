package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/restripe/restripe/agent/catalog/etcd"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/pki"
)

// shut closes an engine when the test ends.
func shut(t *testing.T, engine *etcd.Engine) *etcd.Engine {
	t.Helper()
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// A cluster that takes less than a catalog writes is refused, with what to say to its members.
func TestOpenSaysWhatTheClusterNeeds(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*settings){
		func(s *settings) { s.Operations = 4096 },
		func(s *settings) { s.Bytes = etcd.MemberBytes - 1<<20 },
	} {
		_, err := etcd.Open(t.Context(), start(t, 1, change).address(""))
		if err == nil || !strings.Contains(err.Error(), "--max-txn-ops=8192 --max-request-bytes=18874368") {
			t.Errorf("opened with %v", err)
		}
	}
}

// What has the most that may be asked for is made also where etcd is asked for more than that: of a counter what it was is a condition,
// and of keys that are told of one more is written.
func TestLargestCountersAndNotices(t *testing.T) {
	t.Parallel()
	engine := shut(t, open(t, start(t, 1, nil).address(""), alone))
	for name, test := range map[string]struct {
		count  int
		kind   kv.WriteKind
		length int
	}{
		"increments":   {kv.UpdateBytes / kv.KeyLimit, kv.Increment, kv.KeyLimit},
		"more of them": {kv.UpdateRecords, kv.Increment, kv.UpdateBytes / kv.UpdateRecords},
		"counts":       {kv.UpdateRecords, kv.Count, kv.UpdateBytes / kv.UpdateRecords},
	} {
		var writes []kv.Write
		for i := range test.count {
			key := fmt.Sprintf("%s/%d/", name, i)
			writes = append(writes, kv.Write{Key: key + strings.Repeat("k", test.length-len(key)), Kind: test.kind, Add: 1, Notify: true})
		}
		last := writes[test.count-1].Key
		for range 2 {
			before := numberIn(t, engine, last)
			// A machine may be too slow for so much at once: whether it was made all the same is known once something later was.
			for try, isMade := 0, false; !isMade; try++ {
				failed, err := engine.Update(t.Context(), nil, writes)
				if isSlow := err != nil && strings.Contains(err.Error(), "request timed out"); try == 20 || failed != nil || err != nil && !isSlow {
					t.Fatalf("%s: %v, %v", name, failed, err)
				}
				isMade = err == nil
				for later := 0; !isMade && later < 20; later++ {
					if _, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "later", Value: []byte(name)}}); err == nil {
						isMade = test.kind == kv.Increment && numberIn(t, engine, last) > before
						break
					}
				}
			}
		}
		want := map[kv.WriteKind]string{kv.Increment: "2", kv.Count: "1"}[test.kind]
		if got, err := engine.Read(t.Context(), last); err != nil || string(got[0]) != want {
			t.Errorf("%s: the last is %q, %v", name, got, err)
		}
	}
}

// numberIn is the number under a key, 0 where there is none.
func numberIn(t *testing.T, engine kv.Engine, key string) int {
	t.Helper()
	got, err := engine.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	if got[0] != nil {
		if number, err = strconv.Atoi(string(got[0])); err != nil {
			t.Fatal(err)
		}
	}
	return number
}

// A database that is full is warned of in time, refuses what is written and says what to do; removing goes on, and with the cure
// everything.
func TestAFullDatabase(t *testing.T) {
	t.Parallel()
	members := start(t, 1, func(s *settings) { s.Quota = 32 << 20 })
	client, ctx := members.client(t), t.Context()
	engine := shut(t, open(t, members.address(""), alone))
	var refused error
	var removals []kv.Write
	warned := false
	for i := 0; i < 200 && refused == nil; i++ {
		key := fmt.Sprintf("%03d", i)
		_, refused = engine.Update(ctx, nil, []kv.Write{{Key: "a" + key, Value: make([]byte, 1<<20)}, {Key: "b" + key, Value: []byte("x")}})
		removals = append(removals, kv.Write{Key: "a" + key, Kind: kv.Remove})
		if size, err := engine.Size(ctx); err != nil {
			t.Fatal(err)
		} else if !warned && refused == nil && size.Bytes > size.Limit*65/100 {
			warned = true
			shut(t, open(t, members.address(""), alone, "is soon full"))
		}
		if refused != nil { // etcd makes the one by which it gets full
			values, err := engine.Read(ctx, "a"+key, "b"+key, fmt.Sprintf("b%03d", i-1))
			if err != nil || (values[0] == nil) != (values[1] == nil) || values[2] == nil {
				t.Errorf("after %d updates there are %d, %d and %d bytes, %v", i, len(values[0]), len(values[1]), len(values[2]), err)
			}
		}
	}
	if !warned {
		t.Error("it was never soon full")
	}
	for _, part := range []string{"etcdctl compact", "etcdctl defrag", "--quota-backend-bytes", "etcdctl alarm disarm"} {
		if refused == nil || !strings.Contains(refused.Error(), part) {
			t.Fatalf("a full database says %v, want %s", refused, part)
		}
	}
	if size, err := engine.Size(ctx); err != nil || size.Limit != 32<<20 || size.Bytes < size.Limit*3/4 {
		t.Errorf("a full database has a size of %+v, %v", size, err)
	}
	shut(t, open(t, members.address(""), alone, "is full and can be read only"))
	if failed, err := engine.Update(ctx, nil, removals); err != nil || failed != nil {
		t.Fatalf("removing what is in a full database: %v, %v", failed, err)
	}
	now, err := client.Get(ctx, "none")
	if err != nil {
		t.Fatal(err)
	}
	_, errCompact := client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	_, errDefragment := client.Defragment(ctx, members[0].settings.Client)
	_, errDisarm := client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	if err := errors.Join(errCompact, errDefragment, errDisarm); err != nil {
		t.Fatal(err)
	}
	if failed, err := engine.Update(ctx, nil, []kv.Write{{Key: "c", Value: make([]byte, 1<<20)}}); err != nil || failed != nil {
		t.Errorf("after the cure: %v, %v", failed, err)
	}
	shut(t, open(t, members.address(""), alone))
}

// A cluster whose members say that they differ is not opened, and what has it open is told what to do.
func TestMembersThatDiffer(t *testing.T) {
	t.Parallel()
	members := start(t, 1, nil)
	engine := shut(t, open(t, members.address(""), alone))
	client := members.client(t)
	status, err := client.Status(t.Context(), members[0].settings.Client)
	if err != nil {
		t.Fatal(err)
	}
	alarm := &etcdserverpb.AlarmRequest{
		MemberID: status.Header.MemberId, Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_CORRUPT,
	}
	if _, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(t.Context(), alarm); err != nil {
		t.Fatal(err)
	}
	_, errUpdate := engine.Update(t.Context(), nil, []kv.Write{{Key: "a", Value: []byte("1")}})
	_, errOpen := etcd.Open(t.Context(), members.address(""))
	for _, err := range []error{errUpdate, errOpen} {
		if err == nil || !strings.Contains(err.Error(), "replace the member that differs") {
			t.Errorf("members that differ are answered with %v", err)
		}
	}
}

// Users need a role that may read and write the prefix of the catalog. What they are known by is lost with the members, and got anew.
func TestUsers(t *testing.T) {
	t.Parallel()
	members := start(t, 1, nil)
	client, ctx := members.client(t), t.Context()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("s3cr3t/word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := []func() error{
		func() error { _, err := client.RoleAdd(ctx, "catalog"); return err },
		func() error {
			_, err := client.RoleGrantPermission(ctx, "catalog", "restripe/photos/", clientv3.GetPrefixRangeEnd("restripe/photos/"),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := client.UserAdd(ctx, "gateway", "s3cr3t/word"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "gateway", "catalog"); return err },
		func() error { _, err := client.UserAdd(ctx, "root", "other-s3cr3t"); return err },
		func() error { _, err := client.RoleAdd(ctx, "root"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	host := members[0].settings.Client
	for _, address := range []string{
		"etcd://" + host, "etcd://gateway:wrong-s3cr3t@" + host, "etcd://gateway:s3cr3t%2Fword@" + host + "?catalog=other",
	} {
		_, err := etcd.Open(ctx, address)
		if err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "give the user and the password") {
			t.Errorf("%s is opened with %v", address, err)
		}
	}
	engine := shut(t, open(t, "etcd://gateway:s3cr3t%2Fword@"+host+"?catalog=photos", alone))
	filed := shut(t, open(t, "etcd://gateway@"+host+"?catalog=photos&passwordfile="+file, alone))
	tokens := engine.Watch(ctx, "a")
	for i := range 2 {
		want := fmt.Sprint(i)
		await(t, "an update of "+want, func(ctx context.Context) bool {
			_, err := filed.Update(ctx, nil, []kv.Write{{Key: "a", Value: []byte(want), Notify: true}})
			if err != nil && i == 0 {
				t.Errorf("a user that may is told: %v", err)
			}
			return err == nil
		})
		for got := ""; got != want; {
			if _, open := <-tokens; !open {
				t.Fatal("the watch has ended")
			}
			values, err := engine.Read(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			got = string(values[0])
		}
		if i == 0 {
			members[0].kill(t)
			members[0].run(t)
		}
	}
}

// With etcds:// what the members show is verified.
func TestCertificates(t *testing.T) {
	t.Parallel()
	members := start(t, 1, func(s *settings) { s.Secure = true })
	host := members[0].settings.Client
	certificate := filepath.Join(members[0].settings.Directory, "fixtures", "client", "cert.pem")
	await(t, "a certificate", func(context.Context) bool {
		_, err := os.Stat(certificate)
		return err == nil
	})
	var engine *etcd.Engine
	await(t, "a member that takes the certificate", func(ctx context.Context) (opened bool) {
		var err error
		engine, err = etcd.Open(ctx, "etcds://"+host+"?cacert="+certificate)
		return err == nil
	})
	shut(t, engine)
	if _, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "a", Value: []byte("1")}}); err != nil {
		t.Error(err)
	}
	if _, err := etcd.Open(t.Context(), "etcds://"+host); err == nil || !strings.Contains(err.Error(), "name with cacert=") {
		t.Errorf("a certificate of nobody is taken: %v", err)
	}
}

// Who has no certificate that the members accept is told so at once, with the cure.
func TestWhomTheMembersDoNotAccept(t *testing.T) {
	t.Parallel()
	authority, err := pki.Create(filepath.Join(t.TempDir(), "authority"), "test")
	if err != nil {
		t.Fatal(err)
	}
	own, other := t.TempDir(), t.TempDir()
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleGateway, Name: "catalog"}, []string{"127.0.0.1"}, 0, own); err != nil {
		t.Fatal(err)
	}
	stranger, err := pki.Create(filepath.Join(t.TempDir(), "authority"), "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Issue(pki.Identity{Role: pki.RoleGateway, Name: "catalog"}, []string{"127.0.0.1"}, 0, other); err != nil {
		t.Fatal(err)
	}
	members := start(t, 1, func(s *settings) { s.Certificates = own })
	address := "etcds://" + members.hosts() + "?cacert=" + own + "/ca.crt"
	shown := func(folder string) string { return "&cert=" + folder + "/tls.crt&key=" + folder + "/tls.key" }
	await(t, "a member that takes the certificate", func(ctx context.Context) bool {
		engine, err := etcd.Open(ctx, address+shown(own))
		if err == nil {
			shut(t, engine)
		}
		return err == nil
	})
	for what, query := range map[string]string{"no certificate": "", "one of another authority": shown(other)} {
		began := time.Now()
		if _, err := etcd.Open(t.Context(), address+query); err == nil || !strings.Contains(err.Error(), "name with cert= and key=") {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s: told after %v", what, time.Since(began))
	}
}
