#include "stripes.h"

/* Loops of known length, which tell how fast the processor runs. */

/* Adds registers 64 times per round, each sum needing the one before: 64 cycles per round. */
void dependent_adds(long rounds);

/* Multiplies 16 vectors of 64 bytes by a matrix per round, independently of each other. */
void affine_products(long rounds);

/* Whether affine_products can run. */
int has_affine_products(void);

/* Loads the first k blocks of stripes, whose length is a multiple of 256: that much of one block, then of the next. Asks
   for what is so many bytes ahead, if not 0. Returns the sum without carries of all words of 8 bytes. */
unsigned long read_blocks(long first, long calls, const unsigned char *memory, struct stripes s, int k, int ahead);

/* Whether read_blocks can run. */
int has_wide_loads(void);

/* Does nothing, to measure what a call from Go costs. */
void nothing(void);
