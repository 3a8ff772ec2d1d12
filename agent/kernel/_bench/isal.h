#include "stripes.h"

/* The calls of ISA-L, repeated here, so that calls from Go to C are not measured with them. */

/* destinations = matrix * sources, where sources and destinations are indices of blocks. */
void isal_apply(long first, long calls, unsigned char *memory, struct stripes s, int k, int m, const int *sources,
                const int *destinations, unsigned char *tables);

/* destinations += columns of the matrix * sources, one after the other. If older is not negative, the first source is
   made before, as the sum of the blocks older and newer. */
void isal_update(long calls, unsigned char *memory, struct stripes s, int k, int m, int count, const int *columns,
                 const int *sources, int older, int newer, const int *destinations, unsigned char *tables);
