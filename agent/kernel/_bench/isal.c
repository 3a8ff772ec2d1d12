#include "isal.h"

#include <isa-l.h>

enum { most_blocks = 128 };

static void locate(unsigned char **blocks, unsigned char *stripe, size_t stride, const int *indices, int count) {
    for (int i = 0; i < count; i++)
        blocks[i] = stripe + stride * indices[i];
}

void isal_apply(long first, long calls, unsigned char *memory, struct stripes s, int k, int m, const int *sources,
                const int *destinations, unsigned char *tables) {
    unsigned char *in[most_blocks], *out[most_blocks];
    long located = -1;
    for (long call = first; call < first + calls; call++) {
        long stripe = s.stripes > 1 ? call % s.stripes : 0;
        if (stripe != located) {
            unsigned char *start = memory + s.stride * s.blocks * stripe;
            locate(in, start, s.stride, sources, k);
            locate(out, start, s.stride, destinations, m);
            located = stripe;
        }
        ec_encode_data(s.length, k, m, tables, in, out);
    }
}

void isal_update(long calls, unsigned char *memory, struct stripes s, int k, int m, int count, const int *columns,
                 const int *sources, int older, int newer, const int *destinations, unsigned char *tables) {
    unsigned char *in[most_blocks], *out[most_blocks];
    locate(in, memory, s.stride, sources, count);
    locate(out, memory, s.stride, destinations, m);
    void *sum[3] = {in[0], in[0], in[0]};
    if (older >= 0) {
        sum[0] = memory + s.stride * older;
        sum[1] = memory + s.stride * newer;
    }
    for (long call = 0; call < calls; call++) {
        if (older >= 0)
            xor_gen(3, s.length, sum);
        for (int i = 0; i < count; i++)
            ec_encode_data_update(s.length, k, m, columns[i], tables, in[i], out);
    }
}
