package kernel

import "github.com/klauspost/cpuid/v2"

// machinePaths returns the paths of this machine, the best one last.
func machinePaths() []path {
	paths := []path{generic}
	if !cpuid.CPU.Supports(cpuid.AVX2) {
		return paths
	}
	paths = append(paths, avx2)
	if !cpuid.CPU.Supports(cpuid.GFNI) {
		return paths
	}
	paths = append(paths, avx2gfni)
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VBMI, cpuid.VPCLMULQDQ, cpuid.BMI2) {
		paths = append(paths, avx512)
	}
	return paths
}
