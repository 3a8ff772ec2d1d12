//go:build !amd64

package kernel

// Here only the generic path exists, which calls none of these: a call is a broken invariant, and panics.
const noAssembly = "kernel: no assembly on this machine"

func addTile(path, *[]byte, *[]byte, *tile, int, int, bool, bool) {
	panic(noAssembly) // invariant: see above
}

func addColumn(path, *[]byte, *column, int, *byte, int, int) {
	panic(noAssembly) // invariant: see above
}

func setRow(path, *[]byte, *column, int, *[]byte, int, int) {
	panic(noAssembly) // invariant: see above
}

func addDelta(path, *[]byte, *column, int, *byte, *byte, int, int) {
	panic(noAssembly) // invariant: see above
}

func foldAVX512(*[256]byte, *byte, *byte, int) {
	panic(noAssembly) // invariant: see above
}

func checksumAVX512(uint32, *[4]uint64, *byte, int) uint32 {
	panic(noAssembly) // invariant: see above
}

func unfoldAVX512(*[256]byte, *byte, *[128]byte) {
	panic(noAssembly) // invariant: see above
}
