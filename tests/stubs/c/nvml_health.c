/* Stub libnvidia-ml.so.1, part four: what is wrong with a device: ECC, pages, rows, XID events. */
#include "nvml.h"

#include <stdlib.h>
#include <string.h>

#define UNCORRECTED 1
#define DOUBLE_BIT 1
#define XID_EVENT 0x8ULL
#define MOST_WATCHED 64

typedef struct {
    Handle *device;
    u64 type;
    u64 value;
    unsigned gpu_instance, compute_instance;
} EventData;

typedef struct {
    int count;
    Handle *devices[MOST_WATCHED];
    int told[MOST_WATCHED]; /* how many of its XIDs were told already */
} EventSet;

EXPORT int nvmlDeviceGetTotalEccErrors(Handle *handle, int type, int counter, u64 *count) {
    (void)counter;
    RESOLVE(handle, target);
    *count = type == UNCORRECTED ? target.gpu->ecc : 0;
    return target.mig ? INVALID_ARGUMENT : OK;
}
EXPORT int nvmlDeviceGetRemappedRows(Handle *handle, unsigned *corrected, unsigned *uncorrected,
                                     unsigned *pending, unsigned *failed) {
    RESOLVE(handle, target);
    *corrected = *uncorrected = 0;
    *pending = target.gpu->remap_pending;
    *failed = target.gpu->remap_failed;
    return target.mig ? INVALID_ARGUMENT : OK;
}

EXPORT int nvmlDeviceGetRetiredPages(Handle *handle, int cause, unsigned *count, u64 *addresses) {
    RESOLVE(handle, target);
    unsigned there = cause == DOUBLE_BIT ? target.gpu->retired_double : target.gpu->retired_single;
    unsigned room = *count;
    *count = there;
    if (there > room) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; addresses && i < there; i++) addresses[i] = 0x1000ULL * (i + 1);
    return OK;
}
EXPORT int nvmlDeviceGetRetiredPages_v2(Handle *handle, int cause, unsigned *count,
                                        u64 *addresses, u64 *times) {
    int failed = nvmlDeviceGetRetiredPages(handle, cause, count, addresses);
    for (unsigned i = 0; !failed && times && i < *count; i++) times[i] = 0;
    return failed;
}
EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(Handle *handle, unsigned *pending) {
    RESOLVE(handle, target);
    *pending = target.gpu->retired_pending;
    return OK;
}

EXPORT int nvmlEventSetCreate(EventSet **set) {
    const State *state;
    int failed = nvml_ready(&state);
    if (failed) return failed;
    *set = calloc(1, sizeof **set);
    return OK;
}
EXPORT int nvmlEventSetFree(EventSet *set) {
    free(set);
    return OK;
}
EXPORT int nvmlDeviceGetSupportedEventTypes(Handle *handle, u64 *types) {
    RESOLVE(handle, target);
    *types = XID_EVENT;
    return OK;
}
EXPORT int nvmlDeviceRegisterEvents(Handle *handle, u64 types, EventSet *set) {
    RESOLVE(handle, target);
    if (target.mig || !(types & XID_EVENT)) return NOT_SUPPORTED;
    if (set->count == MOST_WATCHED) return INVALID_ARGUMENT;
    set->devices[set->count] = handle;
    set->told[set->count++] = target.gpu->xid_count;
    return OK;
}

/* Never waits: what it would wait for is written by the test that calls it. */
EXPORT int nvmlEventSetWait_v2(EventSet *set, EventData *event, unsigned timeout_ms) {
    const State *state;
    const Mig *mig;
    (void)timeout_ms;
    int failed = nvml_ready(&state);
    if (failed) return failed;
    for (int i = 0; i < set->count; i++) {
        int index = state_find(state, set->devices[i]->uuid, &mig);
        if (index < 0 || set->told[i] >= state->gpus[index].xid_count) continue;
        memset(event, 0, sizeof *event);
        event->device = set->devices[i];
        event->type = XID_EVENT;
        event->value = state->gpus[index].xids[set->told[i]++];
        event->gpu_instance = event->compute_instance = 0xffffffffu;
        return OK;
    }
    return TIMEOUT;
}
