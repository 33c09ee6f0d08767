/* See contexts.h. Called by the stub CUDA (register, forget) and the stub NVML (list). */
#include "contexts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* When a process started, in clock ticks since boot; 0 if it is gone or a zombie. */
static u64 start_of(unsigned pid) {
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    /* The command may hold spaces and brackets: its closing one is the last of the line. */
    char *after = strrchr(text, ')');
    char phase = 0;
    u64 start = 0;
    if (!after || sscanf(after + 1,
                         " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d"
                         " %*d %llu",
                         &phase, &start) != 2)
        return 0;
    return phase == 'Z' || phase == 'X' ? 0 : start;
}

static void name_of(char *to, size_t size, const char *uuid, u64 bytes) {
    unsigned pid = (unsigned)getpid();
    snprintf(to, size, "%s/contexts/%u-%llu-%llu-%s", state_folder(), pid, start_of(pid), bytes,
             uuid);
}

int context_register(const char *uuid, u64 bytes) {
    char path[4096];
    if (!state_folder()) return -1;
    name_of(path, sizeof path, uuid, bytes);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    return file < 0 ? -1 : close(file);
}

void context_forget(const char *uuid, u64 bytes) {
    char path[4096];
    if (!state_folder()) return;
    name_of(path, sizeof path, uuid, bytes);
    unlink(path);
}

int contexts_alive(Context *out, int most) {
    char path[4096];
    int count = 0;
    if (!state_folder()) return 0;
    snprintf(path, sizeof path, "%s/contexts", state_folder());
    DIR *folder = opendir(path);
    if (!folder) return 0;
    for (struct dirent *entry; count < most && (entry = readdir(folder));) {
        u64 start;
        Context *context = &out[count];
        if (sscanf(entry->d_name, "%u-%llu-%llu-%95s", &context->pid, &start, &context->bytes,
                   context->uuid) == 4 &&
            start && start_of(context->pid) == start)
            count++;
    }
    closedir(folder);
    return count;
}
