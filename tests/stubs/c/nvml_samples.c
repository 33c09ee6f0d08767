/* Stub libnvidia-ml.so.1, part two: what changes by the second: memory, use, processes. */
#include "contexts.h"
#include "nvml.h"

#include <string.h>

#define MOST_CONTEXTS 512
#define NO_INSTANCE 0xffffffffu
/* NVML tells the forms of a struct apart by what callers write in here. */
#define VERSION(type, number) ((unsigned)(sizeof(type) | ((number) << 24)))

typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } MemoryV2;
typedef struct { unsigned pid; u64 bytes; unsigned gpu_instance, compute_instance; } ProcessInfo;
typedef struct { unsigned version; int sensor; int temperature; } TemperatureV1;

/* Whether something on device `uuid` counts for the target: itself, or an instance of it. */
static const Mig *no_mig = NULL;
static int concerns(const Target *target, const char *uuid, const Mig **mig) {
    int index = state_find(target->state, uuid, mig);
    return index == target->index && (!target->mig || target->mig == *mig);
}

static u64 used_of(const Target *target) {
    Context contexts[MOST_CONTEXTS];
    const Mig *mig = no_mig;
    u64 used = target->mig ? target->mig->used : target->gpu->used;
    int count = contexts_alive(contexts, MOST_CONTEXTS);
    for (int i = 0; i < count; i++)
        if (concerns(target, contexts[i].uuid, &mig)) used += contexts[i].bytes;
    for (int i = 0; i < target->state->process_count; i++) {
        const Process *process = &target->state->processes[i];
        if (process->bytes != ~0ULL && concerns(target, process->device, &mig))
            used += process->bytes;
    }
    return used;
}

static u64 total_of(const Target *target) {
    return target->mig ? target->mig->memory : target->gpu->memory;
}

EXPORT int nvmlDeviceGetMemoryInfo(Handle *handle, Memory *memory) {
    RESOLVE(handle, target);
    if (!total_of(&target)) return NOT_SUPPORTED;
    memory->total = total_of(&target);
    memory->used = used_of(&target);
    memory->free = memory->total > memory->used ? memory->total - memory->used : 0;
    return OK;
}
EXPORT int nvmlDeviceGetMemoryInfo_v2(Handle *handle, MemoryV2 *memory) {
    Memory plain;
    if (memory->version != VERSION(MemoryV2, 2)) return VERSION_MISMATCH;
    int failed = nvmlDeviceGetMemoryInfo(handle, &plain);
    if (failed) return failed;
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return OK;
}

EXPORT int nvmlDeviceGetUtilizationRates(Handle *handle, Utilization *rates) {
    RESOLVE(handle, target);
    if (target.mig || target.gpu->mig_mode) return NOT_SUPPORTED;
    rates->gpu = target.gpu->utilisation;
    rates->memory = total_of(&target) ? (unsigned)(100 * used_of(&target) / total_of(&target)) : 0;
    return OK;
}
EXPORT int nvmlDeviceGetTemperature(Handle *handle, int sensor, unsigned *temperature) {
    RESOLVE(handle, target);
    if (target.mig || sensor) return INVALID_ARGUMENT;
    *temperature = target.gpu->temperature;
    return OK;
}
EXPORT int nvmlDeviceGetTemperatureV(Handle *handle, TemperatureV1 *temperature) {
    RESOLVE(handle, target);
    if (temperature->version != VERSION(TemperatureV1, 1)) return VERSION_MISMATCH;
    if (target.mig || temperature->sensor) return INVALID_ARGUMENT;
    temperature->temperature = (int)target.gpu->temperature;
    return OK;
}
EXPORT int nvmlDeviceGetPowerUsage(Handle *handle, unsigned *power_mw) {
    RESOLVE(handle, target);
    if (target.mig) return INVALID_ARGUMENT;
    *power_mw = target.gpu->power_mw;
    return OK;
}

static void put(ProcessInfo *out, unsigned at, unsigned pid, u64 bytes, const Mig *mig) {
    out[at].pid = pid;
    out[at].bytes = bytes;
    out[at].gpu_instance = mig ? mig->gpu_instance : NO_INSTANCE;
    out[at].compute_instance = mig ? mig->compute_instance : NO_INSTANCE;
}

/* Both the state's processes, alive or not (another container's pid is none of ours), and the
 * contexts of living ones. */
static int list_processes(Handle *handle, char kind, unsigned *count, ProcessInfo *out) {
    Context contexts[MOST_CONTEXTS];
    const Mig *mig = no_mig;
    unsigned room = out ? *count : 0, found = 0;
    RESOLVE(handle, target);
    if (target.gpu->processes_error) return target.gpu->processes_error;
    for (int i = 0; i < target.state->process_count; i++) {
        const Process *process = &target.state->processes[i];
        if (process->kind != kind || !concerns(&target, process->device, &mig)) continue;
        if (found < room) put(out, found, process->pid, process->bytes, mig);
        found++;
    }
    int alive = kind == 'c' ? contexts_alive(contexts, MOST_CONTEXTS) : 0;
    for (int i = 0; i < alive; i++) {
        if (!concerns(&target, contexts[i].uuid, &mig)) continue;
        if (found < room) put(out, found, contexts[i].pid, contexts[i].bytes, mig);
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(Handle *h, unsigned *count, ProcessInfo *out) {
    return list_processes(h, 'c', count, out);
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(Handle *h, unsigned *count, ProcessInfo *out) {
    return list_processes(h, 'c', count, out);
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(Handle *h, unsigned *count, ProcessInfo *out) {
    return list_processes(h, 'g', count, out);
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(Handle *h, unsigned *count, ProcessInfo *out) {
    return list_processes(h, 'g', count, out);
}
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v2(Handle *h, unsigned *n, ProcessInfo *out) {
    return list_processes(h, 'm', n, out);
}
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(Handle *h, unsigned *n, ProcessInfo *out) {
    return list_processes(h, 'm', n, out);
}
EXPORT int nvmlDeviceGetProcessUtilization(Handle *handle, void *out, unsigned *count, u64 since) {
    (void)out, (void)since;
    RESOLVE(handle, target);
    *count = 0;
    return NOT_FOUND;
}
