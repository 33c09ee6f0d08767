/* Stub libnvidia-ml.so.1, part three: where devices sit: CPUs, NUMA nodes, NVLink, PCIe. */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_SAME 0
#define LEVEL_NODE 40
#define LEVEL_SYSTEM 50
#define LINKS_OF_A_GPU 18
#define TO_GPU 0
#define TO_SWITCH 2

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

static void set_bit(u64 *words, unsigned size, unsigned long bit) {
    if (bit / 64 < size) words[bit / 64] |= 1ULL << (bit % 64);
}

EXPORT int nvmlDeviceGetCpuAffinity(Handle *handle, unsigned size, u64 *words) {
    RESOLVE(handle, target);
    const char *text = target.gpu->cpus;
    memset(words, 0, size * sizeof *words);
    if (!*text) return NOT_SUPPORTED;
    while (*text) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        for (; first <= last; first++) set_bit(words, size, first);
        text = *end == ',' ? end + 1 : end;
    }
    return OK;
}
EXPORT int nvmlDeviceGetMemoryAffinity(Handle *handle, unsigned size, u64 *words, int scope) {
    (void)scope;
    RESOLVE(handle, target);
    memset(words, 0, size * sizeof *words);
    if (target.gpu->numa < 0) return NOT_SUPPORTED;
    set_bit(words, size, (unsigned long)target.gpu->numa);
    return OK;
}
EXPORT int nvmlDeviceGetNumaNodeId(Handle *handle, int *node) {
    RESOLVE(handle, target);
    *node = target.gpu->numa;
    return target.gpu->numa < 0 ? NOT_SUPPORTED : OK;
}

EXPORT int nvmlDeviceGetTopologyCommonAncestor(Handle *one, Handle *other, unsigned *level) {
    RESOLVE(one, a);
    RESOLVE(other, b);
    *level = a.gpu->numa == b.gpu->numa ? LEVEL_NODE : LEVEL_SYSTEM;
    if (a.index == b.index) *level = LEVEL_SAME;
    for (int i = 0; i < a.state->near_count; i++) {
        const Near *near = &a.state->nears[i];
        if ((!strcmp(near->a, a.gpu->uuid) && !strcmp(near->b, b.gpu->uuid)) ||
            (!strcmp(near->b, a.gpu->uuid) && !strcmp(near->a, b.gpu->uuid)))
            *level = near->level;
    }
    return OK;
}

/* The link-th NVLink of a GPU; NULL if it is not connected. */
static const NvLink *link_of(const Target *target, unsigned link) {
    for (int i = 0; i < target->state->nvlink_count; i++)
        if (!strcmp(target->state->nvlinks[i].from, target->gpu->uuid) && !link--)
            return &target->state->nvlinks[i];
    return NULL;
}

EXPORT int nvmlDeviceGetNvLinkState(Handle *handle, unsigned link, unsigned *active) {
    RESOLVE(handle, target);
    if (target.mig || link >= LINKS_OF_A_GPU) return INVALID_ARGUMENT;
    if (!target.state->nvlink_count) return NOT_SUPPORTED;
    *active = link_of(&target, link) != NULL;
    return OK;
}
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(Handle *handle, unsigned link, unsigned *type) {
    RESOLVE(handle, target);
    const NvLink *found = link_of(&target, link);
    if (!found) return NOT_SUPPORTED;
    *type = strcmp(found->to, "switch") ? TO_GPU : TO_SWITCH;
    return OK;
}
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle *handle, unsigned link, PciInfo *info) {
    RESOLVE(handle, target);
    const Mig *mig;
    const NvLink *found = link_of(&target, link);
    int index = found ? state_find(target.state, found->to, &mig) : -1;
    if (index < 0) return NOT_SUPPORTED;
    memset(info, 0, sizeof *info);
    info->bus = target.state->gpus[index].bus;
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus & 0xff);
    return OK;
}
