//go:build ceph

package cephtest

import (
	"crypto/rand"
	"fmt"
)

// What makes a cluster small and quick on one machine. Daemons write into their folder alone; clients have no admin
// socket and no log.
const configuration = `[global]
fsid = %[1]s
mon host = [v2:127.0.0.1:%[2]d]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
ms type = async+posix
ms async op threads = 1
ms bind msgr1 = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd heartbeat interval = 1
osd heartbeat grace = 5

[mon]
mon data = %[3]s/mon.a
keyring = %[3]s/daemons.keyring
log file = %[3]s/log/$name.log
mon cluster log file = %[3]s/log/cluster.log
run dir = %[3]s/run
admin socket = %[3]s/run/$name.asok
crash dir = %[3]s/crash
mon allow pool size one = true
mon allow pool delete = true
mon max pg per osd = 2000
mon data avail warn = 1
mon data avail crit = 1
mon osd full ratio = .97
mon osd backfillfull ratio = .96
mon osd nearfull ratio = .95
mon osd down out interval = 600
mon osd min down reporters = 1
mon osd reporter subtree level = osd
mon osd adjust heartbeat grace = false
mon osd prime pg temp = false
mon election timeout = 2
mon lease = 2
mon tick interval = 1
paxos propose interval = 0.05
paxos min wait = 0.02
rocksdb cache size = 16777216
mon memory target = 268435456

[mgr]
mgr data = %[3]s/mgr.x
keyring = %[3]s/daemons.keyring
log file = %[3]s/log/$name.log
run dir = %[3]s/run
admin socket = %[3]s/run/$name.asok
crash dir = %[3]s/crash
mgr initial modules =
mgr stats period = 1

[osd]
osd data = %[3]s/osd.$id
keyring = %[3]s/daemons.keyring
log file = %[3]s/log/$name.log
run dir = %[3]s/run
admin socket = %[3]s/run/$name.asok
crash dir = %[3]s/crash
osd objectstore = %[4]s
osd crush update on start = false
osd fast shutdown = %[5]t
osd memory target autotune = false
osd memory target = 1073741824
osd memory base = 67108864
osd memory cache min = 16777216
osd op num shards = 1
osd op num threads per shard = 2
osd op queue = wpq
osd mon heartbeat interval = 5
osd max pg log entries = 100
osd min pg log entries = 50
osd scrub load threshold = 0.001
osd check max object name len on startup = false
memstore device bytes = 2147483648
memstore page set = false
bluestore block size = 8589934592
bluestore block create = true
bluestore block preallocate file = false
bluestore block db create = false
bluestore block wal create = false
bluestore cache autotune = false
bluestore cache size = %[6]d
bluestore default buffered read = %[7]t
bluestore rocksdb cf = false
bluestore fsck on mkfs = false
bluestore fsck on mount = false
bdev aio poll ms = 20
`

func (c *Cluster) configuration() string {
	objectStore := "memstore"
	if c.options.Bluestore {
		objectStore = "bluestore"
	}
	cache := c.options.CacheBytes
	if cache == 0 {
		cache = 32 << 20
	}
	return fmt.Sprintf(configuration, c.fsid, c.port, c.directory, objectStore, c.options.Bluestore, cache, c.options.CacheBytes > 0)
}

// newUUID returns a random UUID, version 4 of RFC 9562.
func newUUID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
