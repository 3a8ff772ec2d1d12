// Package mem keeps values in the memory of the process: for tests, for the simulator and for trying things out.
//
// It is deterministic: List goes in key order, and nothing depends on time or chance. Closing is free of effect, so a
// simulated agent may stop and another may go on with the same Store; Erase and Damage play the part of failing disks.
package mem
