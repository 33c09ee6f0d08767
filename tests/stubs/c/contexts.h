/* CUDA contexts of living processes: the stub CUDA registers them, the stub NVML lists them.
 *
 * Each is an empty file in the state folder's `contexts`, whose name says everything:
 * PID-STARTTIME-BYTES-UUID. The start time tells a living process from a later one with its pid.
 */
#ifndef GPUPOOL_STUB_CONTEXTS_H
#define GPUPOOL_STUB_CONTEXTS_H

#include "state.h"

typedef struct {
    unsigned pid;
    u64 bytes;
    char uuid[UUID_LENGTH];
} Context;

/* Register or forget a context of this process. Returns 0, or -1 if the folder cannot be written. */
int context_register(const char *uuid, u64 bytes);
void context_forget(const char *uuid, u64 bytes);
/* Fill in the contexts of living processes and return how many there are, at most `most`. */
int contexts_alive(Context *out, int most);

#endif
