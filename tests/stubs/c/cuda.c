/* Stub libcuda.so.1: enough of the driver API for cuda.core to make a primary context.
 *
 * A context takes no memory of any GPU: it is registered where the stub NVML lists it, for as long
 * as its process lives. As with the real driver, a forked child of a process that has initialised
 * CUDA can use it no more.
 */
#define _GNU_SOURCE
#include "contexts.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_SUCH_SYMBOL = 500,
    NOT_SUPPORTED = 801,
};
#define ATTRIBUTE_CAPABILITY_MAJOR 75
#define ATTRIBUTE_CAPABILITY_MINOR 76

typedef struct {
    char uuid[UUID_LENGTH];
    char name[UUID_LENGTH];
    u64 memory;
    int holders;
    u64 bytes;
} Device;

static Device devices[MOST_GPUS];
static int device_count = 0;
static pid_t owner = 0;
static __thread Device *current = NULL;

static void see(const char *uuid, const char *name, u64 memory) {
    Device *device = &devices[device_count++];
    snprintf(device->uuid, sizeof device->uuid, "%s", uuid);
    snprintf(device->name, sizeof device->name, "%s", name);
    device->memory = memory;
}

/* A GPU in MIG mode shows its first instance, as CUDA does. */
static void see_gpu(const Gpu *gpu, const Mig *mig) {
    if (!mig && gpu->mig_mode) mig = gpu->mig_count ? &gpu->migs[0] : NULL;
    if (mig) see(mig->uuid, mig->name, mig->memory);
    else if (!gpu->mig_mode) see(gpu->uuid, gpu->name, gpu->memory);
}

/* CUDA stops reading the list at its first entry that is no device. */
static void see_visible(const State *state, const char *visible) {
    char text[4096], *rest = NULL;
    snprintf(text, sizeof text, "%s", visible);
    for (char *entry = strtok_r(text, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest)) {
        const Mig *mig = NULL;
        int is_uuid = !strncmp(entry, "GPU-", 4) || !strncmp(entry, "MIG-", 4);
        int index = is_uuid ? state_find(state, entry, &mig) : atoi(entry);
        if (index < 0 || index >= state->gpu_count || device_count == MOST_GPUS) return;
        see_gpu(&state->gpus[index], mig);
    }
}

EXPORT int cuInit(unsigned flags) {
    const State *state = state_now();
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    (void)flags;
    if (owner) return owner == getpid() ? SUCCESS : NOT_INITIALIZED;
    if (state->fail) return NO_DEVICE;
    if (visible) see_visible(state, visible);
    else
        for (int i = 0; i < state->gpu_count; i++) see_gpu(&state->gpus[i], NULL);
    if (!device_count) return NO_DEVICE;
    owner = getpid();
    return SUCCESS;
}

static int check(int ordinal) {
    if (owner != getpid()) return NOT_INITIALIZED;
    return ordinal < 0 || ordinal >= device_count ? INVALID_DEVICE : SUCCESS;
}

EXPORT int cuDriverGetVersion(int *version) {
    *version = 13000;
    return SUCCESS;
}
EXPORT int cuDeviceGetCount(int *count) {
    if (owner != getpid()) return NOT_INITIALIZED;
    *count = device_count;
    return SUCCESS;
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return check(ordinal);
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == ATTRIBUTE_CAPABILITY_MAJOR ? 8 : attribute != ATTRIBUTE_CAPABILITY_MINOR;
    return check(device);
}
EXPORT int cuDeviceGetName(char *text, int size, int device) {
    int failed = check(device);
    if (!failed) snprintf(text, (size_t)size, "%s", devices[device].name);
    return failed;
}
EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    int failed = check(device), at = 0;
    if (failed) return failed;
    memset(uuid, 0, 16);
    for (const char *digit = devices[device].uuid + 4; *digit && at < 32; digit++) {
        if (*digit == '-') continue;
        char one[2] = {*digit, '\0'};
        uuid[at / 2] |= (unsigned char)(strtoul(one, NULL, 16) << (at % 2 ? 0 : 4));
        at++;
    }
    return SUCCESS;
}
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    int failed = check(device);
    if (!failed) *bytes = devices[device].memory;
    return failed;
}

EXPORT int cuDevicePrimaryCtxRetain(Device **context, int device) {
    int failed = check(device);
    if (failed) return failed;
    *context = &devices[device];
    if (devices[device].holders++) return SUCCESS;
    devices[device].bytes = state_now()->context_bytes;
    return context_register(devices[device].uuid, devices[device].bytes) ? NO_DEVICE : SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    int failed = check(device);
    if (failed) return failed;
    if (!devices[device].holders) return INVALID_CONTEXT;
    if (!--devices[device].holders) context_forget(devices[device].uuid, devices[device].bytes);
    return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
    int failed = check(device);
    if (failed) return failed;
    if (devices[device].holders) context_forget(devices[device].uuid, devices[device].bytes);
    devices[device].holders = 0;
    return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    int failed = check(device);
    if (failed) return failed;
    *flags = 0;
    *active = devices[device].holders > 0;
    return SUCCESS;
}

EXPORT int cuCtxSetCurrent(Device *context) {
    current = context;
    return SUCCESS;
}
EXPORT int cuCtxGetCurrent(Device **context) {
    *context = current;
    return SUCCESS;
}
EXPORT int cuCtxPushCurrent_v2(Device *context) { return cuCtxSetCurrent(context); }
EXPORT int cuCtxPopCurrent_v2(Device **context) {
    *context = current;
    current = NULL;
    return SUCCESS;
}
EXPORT int cuCtxGetDevice(int *device) {
    if (!current) return INVALID_CONTEXT;
    *device = (int)(current - devices);
    return SUCCESS;
}
EXPORT int cuCtxGetId(Device *context, u64 *id) {
    *id = context ? (u64)(context - devices) + 1 : 0;
    return SUCCESS;
}
EXPORT int cuCtxSynchronize(void) { return current ? SUCCESS : INVALID_CONTEXT; }

EXPORT int cuGetErrorName(int code, const char **text) {
    *text = code == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_STUB";
    return SUCCESS;
}
EXPORT int cuGetErrorString(int code, const char **text) {
    *text = code == NO_DEVICE ? "no CUDA-capable device is detected" : "the stub driver said no";
    return SUCCESS;
}

static int not_in_the_stub(void) { return NOT_SUPPORTED; }

/* The newest form of a function, as callers who name a driver version expect. Each function the
 * stub lacks is there, and says that it is not supported. */
EXPORT int cuGetProcAddress_v2(const char *name, void **address, int version, u64 flags,
                               int *status) {
    Dl_info self;
    char newer[256];
    (void)version, (void)flags;
    if (!dladdr((void *)cuInit, &self)) return NO_SUCH_SYMBOL;
    void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    snprintf(newer, sizeof newer, "%s_v2", name);
    *address = dlsym(library, newer);
    if (!*address) *address = dlsym(library, name);
    if (!*address) *address = (void *)not_in_the_stub;
    if (status) *status = 0;
    return SUCCESS;
}
EXPORT int cuGetProcAddress(const char *name, void **address, int version, u64 flags) {
    return cuGetProcAddress_v2(name, address, version, flags, NULL);
}
