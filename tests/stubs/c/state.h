/* What the stub libraries pretend: read from the folder named by GPUPOOL_STUB_STATE.
 *
 * `devices` in that folder is a text file, one thing a line, fields parted by tabs, as key=value; it
 * is written by ../state.py and read again whenever it was replaced. Both libraries build this in.
 */
#ifndef GPUPOOL_STUB_STATE_H
#define GPUPOOL_STUB_STATE_H

#define EXPORT __attribute__((visibility("default")))
#define UUID_LENGTH 96
#define MOST_GPUS 64
#define MOST_MIGS 8
#define MOST_XIDS 64
#define MOST_PROCESSES 512
#define MOST_LINKS 1024

typedef unsigned long long u64;

typedef struct {
    char uuid[UUID_LENGTH];
    char name[UUID_LENGTH];
    unsigned slot; /* its index among the instances of its GPU: there may be holes */
    unsigned gpu_instance;
    unsigned compute_instance;
    u64 memory;
    u64 used;
} Mig;

typedef struct {
    char uuid[UUID_LENGTH];
    char name[UUID_LENGTH];
    u64 memory; /* 0: the device has none of its own */
    u64 used;
    unsigned utilisation;
    unsigned temperature;
    unsigned power_mw;
    int numa; /* -1: not known */
    char cpus[256];
    unsigned bus;
    int error; /* what each call on it returns; 0 is success */
    int processes_error; /* what listing its processes returns */
    int mig_mode;
    int mig_count;
    Mig migs[MOST_MIGS];
    u64 ecc;
    unsigned retired_single;
    unsigned retired_double;
    unsigned retired_pending;
    unsigned remap_pending;
    unsigned remap_failed;
    int xid_count;
    unsigned xids[MOST_XIDS];
} Gpu;

typedef struct {
    char device[UUID_LENGTH];
    char kind; /* c: compute, g: graphics, m: MPS */
    unsigned pid;
    u64 bytes; /* all ones: NVML cannot say */
} Process;

typedef struct {
    char from[UUID_LENGTH];
    char to[UUID_LENGTH]; /* a UUID, or "switch" */
} NvLink;

typedef struct {
    char a[UUID_LENGTH];
    char b[UUID_LENGTH];
    unsigned level;
} Near;

typedef struct {
    int fail; /* what every call returns; 0 is success */
    u64 context_bytes;
    int gpu_count;
    Gpu gpus[MOST_GPUS];
    int process_count;
    Process processes[MOST_PROCESSES];
    int nvlink_count;
    NvLink nvlinks[MOST_LINKS];
    int near_count;
    Near nears[MOST_LINKS];
} State;

/* The state as it is now. Never NULL: without a folder it is one in which NVML has no driver. */
const State *state_now(void);
/* The state folder, or NULL. */
const char *state_folder(void);
/* The position of a GPU, or of the GPU of a MIG instance (then *mig is set); -1 if there is none. */
int state_find(const State *state, const char *uuid, const Mig **mig);

#endif
