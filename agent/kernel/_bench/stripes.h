#pragma once

#include <stddef.h>

/* Block i of stripe s begins at memory + (s*blocks + i)*stride; call number c works on stripe c modulo stripes. */
struct stripes {
    size_t stride;
    int blocks, length;
    long stripes;
};
