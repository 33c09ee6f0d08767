/* Stub libnvidia-ml.so.1, part one: init, errors, which devices there are and who they are. */
#include "nvml.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MOST_HANDLES 1024
#define GPU_HAS_NO_INSTANCE 0xffffffffu

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

typedef struct {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    unsigned gpu_slices, compute_slices;
    u64 memory_mb;
} Attributes;

static int inits = 0;
static Handle handles[MOST_HANDLES];
static int handle_count = 0;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

int nvml_ready(const State **state) {
    if (!inits) return UNINITIALIZED;
    *state = state_now();
    return (*state)->fail;
}

int nvml_resolve(const Handle *handle, Target *target) {
    if (!handle) return INVALID_ARGUMENT;
    int failed = nvml_ready(&target->state);
    if (failed) return failed;
    target->index = state_find(target->state, handle->uuid, &target->mig);
    if (target->index < 0) return GPU_IS_LOST;
    target->gpu = &target->state->gpus[target->index];
    return target->gpu->error;
}

Handle *nvml_handle(const char *uuid) {
    Handle *found = NULL;
    pthread_mutex_lock(&making);
    for (int i = 0; i < handle_count && !found; i++)
        if (!strcmp(handles[i].uuid, uuid)) found = &handles[i];
    if (!found && handle_count < MOST_HANDLES) {
        found = &handles[handle_count++];
        snprintf(found->uuid, sizeof found->uuid, "%s", uuid);
    }
    pthread_mutex_unlock(&making);
    return found;
}

static int write_text(char *to, unsigned size, const char *text) {
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    snprintf(to, size, "%s", text);
    return OK;
}

EXPORT int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int failed = state_now()->fail;
    if (!failed) inits++;
    return failed;
}
EXPORT int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT int nvmlInit(void) { return nvmlInitWithFlags(0); }
EXPORT int nvmlShutdown(void) {
    if (!inits) return UNINITIALIZED;
    inits--;
    return OK;
}

EXPORT const char *nvmlErrorString(int code) {
    switch (code) {
        case OK: return "Success";
        case UNINITIALIZED: return "Uninitialized";
        case INVALID_ARGUMENT: return "Invalid Argument";
        case NOT_SUPPORTED: return "Not Supported";
        case NOT_FOUND: return "Not Found";
        case INSUFFICIENT_SIZE: return "Insufficient Size";
        case DRIVER_NOT_LOADED: return "Driver Not Loaded";
        case TIMEOUT: return "Timeout";
        case VERSION_MISMATCH: return "Argument Version Mismatch";
        case GPU_IS_LOST: return "GPU is lost";
        default: return "Unknown Error";
    }
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    const State *state;
    int failed = nvml_ready(&state);
    return failed ? failed : write_text(text, size, "580.00.stub");
}
EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned size) {
    const State *state;
    int failed = nvml_ready(&state);
    return failed ? failed : write_text(text, size, "13.580.00.stub");
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = 13000;
    return OK;
}
EXPORT int nvmlSystemGetCudaDriverVersion(int *version) {
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count) {
    const State *state;
    int failed = nvml_ready(&state);
    if (!failed) *count = (unsigned)state->gpu_count;
    return failed;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle **handle) {
    const State *state;
    int failed = nvml_ready(&state);
    if (failed) return failed;
    if (index >= (unsigned)state->gpu_count) return INVALID_ARGUMENT;
    *handle = nvml_handle(state->gpus[index].uuid);
    return state->gpus[index].error;
}
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, Handle **handle) {
    const State *state;
    const Mig *mig;
    int failed = nvml_ready(&state);
    if (failed) return failed;
    int index = state_find(state, uuid, &mig);
    if (index < 0) return NOT_FOUND;
    *handle = nvml_handle(uuid);
    return state->gpus[index].error;
}

EXPORT int nvmlDeviceGetIndex(Handle *handle, unsigned *index) {
    RESOLVE(handle, target);
    *index = (unsigned)target.index;
    return OK;
}
EXPORT int nvmlDeviceGetMinorNumber(Handle *handle, unsigned *minor) {
    RESOLVE(handle, target);
    *minor = target.gpu->bus;
    return OK;
}
EXPORT int nvmlDeviceGetUUID(Handle *handle, char *text, unsigned size) {
    RESOLVE(handle, target);
    return write_text(text, size, target.mig ? target.mig->uuid : target.gpu->uuid);
}
EXPORT int nvmlDeviceGetName(Handle *handle, char *text, unsigned size) {
    RESOLVE(handle, target);
    return write_text(text, size, target.mig ? target.mig->name : target.gpu->name);
}
EXPORT int nvmlDeviceGetCudaComputeCapability(Handle *handle, int *major, int *minor) {
    RESOLVE(handle, target);
    *major = 8;
    *minor = 0;
    return OK;
}
EXPORT int nvmlDeviceGetPciInfo_v3(Handle *handle, PciInfo *info) {
    RESOLVE(handle, target);
    memset(info, 0, sizeof *info);
    info->bus = target.gpu->bus;
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", target.gpu->bus & 0xff);
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "0000:%02X:00.0",
             target.gpu->bus & 0xff);
    return OK;
}

EXPORT int nvmlDeviceGetMigMode(Handle *handle, unsigned *now, unsigned *pending) {
    RESOLVE(handle, target);
    if (target.mig) return INVALID_ARGUMENT;
    *now = *pending = (unsigned)target.gpu->mig_mode;
    return OK;
}
EXPORT int nvmlDeviceIsMigDeviceHandle(Handle *handle, unsigned *is_mig) {
    RESOLVE(handle, target);
    *is_mig = target.mig != NULL;
    return OK;
}
EXPORT int nvmlDeviceGetMaxMigDeviceCount(Handle *handle, unsigned *count) {
    RESOLVE(handle, target);
    *count = target.gpu->mig_mode ? MOST_MIGS : 0;
    return OK;
}
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(Handle *handle, unsigned index, Handle **mig) {
    RESOLVE(handle, target);
    if (target.mig || !target.gpu->mig_mode) return NOT_SUPPORTED;
    if (index >= MOST_MIGS) return INVALID_ARGUMENT;
    for (int i = 0; i < target.gpu->mig_count; i++) {
        if (target.gpu->migs[i].slot != index) continue;
        *mig = nvml_handle(target.gpu->migs[i].uuid);
        return OK;
    }
    return NOT_FOUND;
}
EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Handle *handle, Handle **gpu) {
    RESOLVE(handle, target);
    if (!target.mig) return INVALID_ARGUMENT;
    *gpu = nvml_handle(target.gpu->uuid);
    return OK;
}
EXPORT int nvmlDeviceGetGpuInstanceId(Handle *handle, unsigned *id) {
    RESOLVE(handle, target);
    *id = target.mig ? target.mig->gpu_instance : GPU_HAS_NO_INSTANCE;
    return target.mig ? OK : INVALID_ARGUMENT;
}
EXPORT int nvmlDeviceGetComputeInstanceId(Handle *handle, unsigned *id) {
    RESOLVE(handle, target);
    *id = target.mig ? target.mig->compute_instance : GPU_HAS_NO_INSTANCE;
    return target.mig ? OK : INVALID_ARGUMENT;
}
EXPORT int nvmlDeviceGetAttributes_v2(Handle *handle, Attributes *attributes) {
    RESOLVE(handle, target);
    if (!target.mig) return NOT_SUPPORTED;
    memset(attributes, 0, sizeof *attributes);
    attributes->multiprocessors = 14;
    attributes->gpu_slices = attributes->compute_slices = 1;
    attributes->memory_mb = target.mig->memory >> 20;
    return OK;
}
