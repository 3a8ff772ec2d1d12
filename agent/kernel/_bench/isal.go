package main

// #cgo CFLAGS: -O2
// #cgo CFLAGS: -I${SRCDIR}/isal/include
// #cgo LDFLAGS: -L${SRCDIR}/isal/lib -Wl,-rpath,${SRCDIR}/isal/lib -lisal
// #include <isa-l.h>
// #include "isal.h"
// enum { ISAL_VERSION_WITH_GFNI = ISAL_MAKE_VERSION(2, 31, 0) };
import "C"

import (
	"fmt"
	"unsafe"
)

// isalVersion names the version compiled against.
func isalVersion() string {
	text := fmt.Sprintf("%d.%d.%d", C.ISAL_MAJOR_VERSION, C.ISAL_MINOR_VERSION, C.ISAL_PATCH_VERSION)
	if C.ISAL_VERSION < C.ISAL_VERSION_WITH_GFNI {
		return text + " (without its GFNI kernels, which came with 2.31)"
	}
	return text
}

// isal is a matrix prepared for ISA-L.
type isal struct {
	k, m   int
	tables []byte
}

func newISAL(rows matrix) *isal {
	i := &isal{k: len(rows[0]), m: len(rows)}
	var flat []byte
	for _, row := range rows {
		flat = append(flat, row...)
	}
	i.tables = make([]byte, 32*i.k*i.m)
	C.ec_init_tables(C.int(i.k), C.int(i.m), pointer(flat), pointer(i.tables))
	return i
}

// isalCauchy is ISA-L's own Cauchy matrix.
func isalCauchy(k, m int) matrix {
	flat := make([]byte, (k+m)*k)
	C.gf_gen_cauchy1_matrix(pointer(flat), C.int(k+m), C.int(k))
	rows := make(matrix, m)
	for i := range rows {
		rows[i] = flat[(k+i)*k : (k+i+1)*k]
	}
	return rows
}

// apply returns the calls that compute the destinations from the sources, which are indices of blocks.
func (i *isal) apply(s *stripes, sources, destinations []int) func(first, calls int) {
	from, to, layout := integers(sources), integers(destinations), layoutOf(s)
	return func(first, calls int) {
		C.isal_apply(C.long(first), C.long(calls), pointer(s.memory), layout, C.int(i.k), C.int(i.m), &from[0], &to[0], pointer(i.tables))
	}
}

// update returns the calls that add columns times sources to the destinations; with a sum of two blocks, older and
// newer, the first source is made before.
func (i *isal) update(s *stripes, columns, sources, destinations []int, sum ...int) func(first, calls int) {
	at, from, to, layout := integers(columns), integers(sources), integers(destinations), layoutOf(s)
	older, newer := -1, -1
	if len(sum) == 2 {
		older, newer = sum[0], sum[1]
	}
	return func(_, calls int) {
		C.isal_update(C.long(calls), pointer(s.memory), layout, C.int(i.k), C.int(i.m), C.int(len(at)), &at[0], &from[0],
			C.int(older), C.int(newer), &to[0], pointer(i.tables))
	}
}

func layoutOf(s *stripes) C.struct_stripes {
	return C.struct_stripes{stride: C.size_t(s.stride), blocks: C.int(s.blocks), length: C.int(s.blockBytes), stripes: C.long(s.count())}
}

func pointer(data []byte) *C.uchar { return (*C.uchar)(unsafe.Pointer(unsafe.SliceData(data))) }

func integers(values []int) []C.int {
	list := make([]C.int, len(values))
	for i, value := range values {
		list[i] = C.int(value)
	}
	return list
}
