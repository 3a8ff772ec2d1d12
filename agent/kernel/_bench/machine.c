#include "machine.h"

#include <immintrin.h>
#include <string.h>

void dependent_adds(long rounds) {
    long sum = 0, one = 1;
    for (long i = 0; i < rounds; i++)
        __asm__ volatile(".rept 64\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(one));
}

int has_affine_products(void) { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("gfni"); }

__attribute__((target("avx512f,gfni"))) void affine_products(long rounds) {
    for (long i = 0; i < rounds; i++)
        __asm__ volatile(
            ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
            "vgf2p8affineqb $0, %%zmm16, %%zmm17, %%zmm\\r\n\t"
            ".endr"
            :
            :
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
              "xmm12", "xmm13", "xmm14", "xmm15");
}

int has_wide_loads(void) { return __builtin_cpu_supports("avx512f"); }

enum { line = 64, step = 4 * line };

__attribute__((target("avx512f"))) unsigned long read_blocks(long first, long calls, const unsigned char *memory,
                                                             struct stripes s, int k, int ahead) {
    __m512i sum[step / line] = {0};
    for (long call = first; call < first + calls; call++) {
        const unsigned char *start = memory + s.stride * s.blocks * (call % s.stripes);
        for (long at = 0; at < s.length; at += step) {
            for (int i = 0; i < k; i++) {
                const unsigned char *from = start + s.stride * i + at;
#pragma GCC unroll 4
                for (int j = 0; ahead && j < step; j += line)
                    _mm_prefetch((const char *)from + ahead + j, _MM_HINT_T0);
#pragma GCC unroll 4
                for (int j = 0; j < step / line; j++)
                    sum[j] = _mm512_xor_si512(sum[j], _mm512_loadu_si512(from + j * line));
            }
        }
    }
    unsigned long words[sizeof sum / sizeof(unsigned long)], total = 0;
    memcpy(words, sum, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        total ^= words[i];
    return total;
}

void nothing(void) {}
