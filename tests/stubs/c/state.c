/* Reads the state file whenever it was replaced. Called by every stub function. */
#include "state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_FIELDS 48
#define LINE_LENGTH 8192
#define NO_DRIVER 9

typedef struct {
    char *kind;
    int count;
    char *keys[MOST_FIELDS];
    char *values[MOST_FIELDS];
} Line;

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
/* An old state is never freed: another thread may still look at it, and tests change few. */
static const State *current = NULL;
static char current_path[4096];
static struct stat current_stat;

static const State *without_driver(void) {
    static State state;
    state.fail = NO_DRIVER;
    return &state;
}

const char *state_folder(void) { return getenv("GPUPOOL_STUB_STATE"); }

static Line split(char *text) {
    Line line = {.count = 0};
    char *rest = NULL;
    text[strcspn(text, "\n")] = '\0';
    line.kind = strtok_r(text, "\t", &rest);
    for (char *field; (field = strtok_r(NULL, "\t", &rest)) && line.count < MOST_FIELDS;) {
        char *sign = strchr(field, '=');
        if (!sign) continue;
        *sign = '\0';
        line.keys[line.count] = field;
        line.values[line.count++] = sign + 1;
    }
    return line;
}

static const char *text_of(const Line *line, const char *key) {
    for (int i = 0; i < line->count; i++)
        if (!strcmp(line->keys[i], key)) return line->values[i];
    return "";
}

static u64 number_of(const Line *line, const char *key) {
    return strtoull(text_of(line, key), NULL, 10);
}

static void copy(char *to, size_t size, const Line *line, const char *key) {
    snprintf(to, size, "%s", text_of(line, key));
}

static void read_xids(Gpu *gpu, const char *text) {
    while (*text && gpu->xid_count < MOST_XIDS) {
        char *end;
        gpu->xids[gpu->xid_count++] = (unsigned)strtoul(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
}

static void read_gpu(State *state, const Line *line) {
    if (state->gpu_count == MOST_GPUS) return;
    Gpu *gpu = &state->gpus[state->gpu_count++];
    copy(gpu->uuid, sizeof gpu->uuid, line, "uuid");
    copy(gpu->name, sizeof gpu->name, line, "name");
    copy(gpu->cpus, sizeof gpu->cpus, line, "cpus");
    gpu->memory = number_of(line, "memory");
    gpu->used = number_of(line, "used");
    gpu->utilisation = (unsigned)number_of(line, "utilisation");
    gpu->temperature = (unsigned)number_of(line, "temperature");
    gpu->power_mw = (unsigned)number_of(line, "power_mw");
    gpu->numa = atoi(text_of(line, "numa"));
    gpu->bus = (unsigned)number_of(line, "bus");
    gpu->error = (int)number_of(line, "error");
    gpu->processes_error = (int)number_of(line, "processes_error");
    gpu->mig_mode = (int)number_of(line, "mig_mode");
    gpu->ecc = number_of(line, "ecc");
    gpu->retired_single = (unsigned)number_of(line, "retired_single");
    gpu->retired_double = (unsigned)number_of(line, "retired_double");
    gpu->retired_pending = (unsigned)number_of(line, "retired_pending");
    gpu->remap_pending = (unsigned)number_of(line, "remap_pending");
    gpu->remap_failed = (unsigned)number_of(line, "remap_failed");
    read_xids(gpu, text_of(line, "xids"));
}

static void read_mig(State *state, const Line *line) {
    const Mig *none = NULL;
    int at = state_find(state, text_of(line, "gpu"), &none);
    if (at < 0 || state->gpus[at].mig_count == MOST_MIGS) return;
    Mig *mig = &state->gpus[at].migs[state->gpus[at].mig_count++];
    copy(mig->uuid, sizeof mig->uuid, line, "uuid");
    copy(mig->name, sizeof mig->name, line, "name");
    mig->slot = (unsigned)number_of(line, "slot");
    mig->gpu_instance = (unsigned)number_of(line, "gpu_instance");
    mig->compute_instance = (unsigned)number_of(line, "compute_instance");
    mig->memory = number_of(line, "memory");
    mig->used = number_of(line, "used");
}

static void read_process(State *state, const Line *line) {
    if (state->process_count == MOST_PROCESSES) return;
    Process *process = &state->processes[state->process_count++];
    copy(process->device, sizeof process->device, line, "device");
    process->kind = text_of(line, "kind")[0];
    process->pid = (unsigned)number_of(line, "pid");
    process->bytes = *text_of(line, "bytes") ? number_of(line, "bytes") : ~0ULL;
}

static void read_nvlink(State *state, const Line *line) {
    if (state->nvlink_count == MOST_LINKS) return;
    NvLink *link = &state->nvlinks[state->nvlink_count++];
    copy(link->from, sizeof link->from, line, "from");
    copy(link->to, sizeof link->to, line, "to");
}

static void read_near(State *state, const Line *line) {
    if (state->near_count == MOST_LINKS) return;
    Near *near = &state->nears[state->near_count++];
    copy(near->a, sizeof near->a, line, "a");
    copy(near->b, sizeof near->b, line, "b");
    near->level = (unsigned)number_of(line, "level");
}

static void read_line(State *state, char *text) {
    Line line = split(text);
    if (!line.kind) return;
    if (!strcmp(line.kind, "host")) {
        state->fail = (int)number_of(&line, "fail");
        state->context_bytes = number_of(&line, "context_bytes");
    } else if (!strcmp(line.kind, "gpu")) read_gpu(state, &line);
    else if (!strcmp(line.kind, "mig")) read_mig(state, &line);
    else if (!strcmp(line.kind, "process")) read_process(state, &line);
    else if (!strcmp(line.kind, "nvlink")) read_nvlink(state, &line);
    else if (!strcmp(line.kind, "near")) read_near(state, &line);
}

static int is_current(const char *path, const struct stat *seen) {
    return current && !strcmp(path, current_path) && seen->st_ino == current_stat.st_ino &&
           seen->st_size == current_stat.st_size &&
           seen->st_mtim.tv_sec == current_stat.st_mtim.tv_sec &&
           seen->st_mtim.tv_nsec == current_stat.st_mtim.tv_nsec;
}

static const State *read_again(const char *path) {
    char text[LINE_LENGTH];
    FILE *file = fopen(path, "re");
    if (!file) return without_driver();
    State *state = calloc(1, sizeof *state);
    if (!state || fstat(fileno(file), &current_stat)) {
        free(state);
        fclose(file);
        return without_driver();
    }
    while (fgets(text, sizeof text, file)) read_line(state, text);
    fclose(file);
    snprintf(current_path, sizeof current_path, "%s", path);
    current = state;
    return state;
}

const State *state_now(void) {
    char path[4096];
    struct stat seen;
    const char *folder = state_folder();
    if (!folder) return without_driver();
    snprintf(path, sizeof path, "%s/devices", folder);
    if (stat(path, &seen)) return without_driver();
    pthread_mutex_lock(&reading);
    const State *state = is_current(path, &seen) ? current : read_again(path);
    pthread_mutex_unlock(&reading);
    return state;
}

int state_find(const State *state, const char *uuid, const Mig **mig) {
    *mig = NULL;
    for (int i = 0; i < state->gpu_count; i++) {
        if (!strcmp(state->gpus[i].uuid, uuid)) return i;
        for (int m = 0; m < state->gpus[i].mig_count; m++)
            if (!strcmp(state->gpus[i].migs[m].uuid, uuid)) {
                *mig = &state->gpus[i].migs[m];
                return i;
            }
    }
    return -1;
}
