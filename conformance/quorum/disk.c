/* A disk whose syncs take as long as somebody holds them, and which remembers what was synced.
 *
 * Loaded before the C library (LD_PRELOAD) into a process of Kafka. A sync of a segment of the metadata log waits while the
 * file $KSPEC_DISK/hold is there. When it is done, $KSPEC_DISK/<name of the segment> has the length that was synced, in digits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int (*sync_call)(int);

static const char *segment_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 4) {
        return NULL;
    }
    path[length] = '\0';
    const char *name = strrchr(path, '/');
    int is_segment = strstr(path, "/__cluster_metadata-0/") != NULL && strcmp(path + length - 4, ".log") == 0;
    return is_segment && name != NULL ? name + 1 : NULL;
}

static int synced(const char *call, int fd) {
    sync_call real = (sync_call)dlsym(RTLD_NEXT, call);
    const char *folder = getenv("KSPEC_DISK");
    char path[PATH_MAX], file[2 * PATH_MAX];
    const char *segment = folder == NULL ? NULL : segment_of(fd, path);
    if (segment == NULL) {
        return real(fd);
    }
    struct stat before;
    int known = fstat(fd, &before);
    snprintf(file, sizeof file, "%s/hold", folder);
    while (access(file, F_OK) == 0) {
        usleep(5000);
    }
    int result = real(fd);
    if (result == 0 && known == 0) {
        snprintf(file, sizeof file, "%s/%s", folder, segment);
        FILE *told = fopen(file, "w");
        if (told != NULL) {
            fprintf(told, "%lld", (long long)before.st_size);
            fclose(told);
        }
    }
    return result;
}

int fsync(int fd) { return synced("fsync", fd); }

int fdatasync(int fd) { return synced("fdatasync", fd); }
