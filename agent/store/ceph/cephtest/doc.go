// Package cephtest starts real Ceph clusters on the loopback interface: a monitor, a manager and as many OSDs as asked
// for, over hosts that exist in CRUSH alone, with everything they keep in a temporary folder. It takes Debian's packages
// (e2e/ceph.sh installs them) and the build tag ceph.
//
// With memstore, the default, an OSD keeps its objects in its memory and has lost them after KillOSD; with bluestore it
// has them again after StartOSD.
package cephtest
