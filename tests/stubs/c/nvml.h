/* What the files of the stub libnvidia-ml.so.1 share: handles, error codes, who a handle is. */
#ifndef GPUPOOL_STUB_NVML_H
#define GPUPOOL_STUB_NVML_H

#include "state.h"

enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25,
};

/* A handle names its device for good: a changed order of the GPUs leaves it valid. */
typedef struct {
    char uuid[UUID_LENGTH];
} Handle;

typedef struct {
    const State *state;
    int index;
    const Gpu *gpu;
    const Mig *mig; /* NULL for a whole GPU */
} Target;

/* Whether NVML works at all; returns what the called function has to return. */
int nvml_ready(const State **state);
/* Who a handle is; returns what the called function has to return. */
int nvml_resolve(const Handle *handle, Target *target);
/* The one handle of a device. */
Handle *nvml_handle(const char *uuid);

#define RESOLVE(handle, target)                        \
    Target target;                                     \
    do {                                               \
        int failed = nvml_resolve((handle), &target);  \
        if (failed) return failed;                     \
    } while (0)

#endif
