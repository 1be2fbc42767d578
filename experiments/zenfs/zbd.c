// libzbd's calls that ZenFS makes, on a `zns` target of this process instead of a kernel's device; and pread and pwrite of the
// descriptors that it gives. One thread owns the drive; callers wait for their requests.
//
//   LD_PRELOAD="libzbd-ocssd.so libzenfs.so" ZBD_DRIVE=image ZBD_TARGET=zns:width=group db_bench --fs_uri=zenfs://dev:...
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libzbd/zbd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include "ocssd.h"

struct ask {
    struct ocssd_request request;
    int result;
    int ended;
    pthread_cond_t told;
    struct ask *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ask *first, **last = &first;
static struct ocssd_drive *drive;
static struct ocssd_target *target;
static struct ocssd_zones zones;
static pthread_t owner;
static int stop, descriptors[64];

static int die(const char *what) {
    fprintf(stderr, "zbd: %s: %s\n", what, ocssd_last_error());
    exit(1);
}

static void ended(void *context, int result, uint16_t status) {
    struct ask *ask = context;
    (void)status;
    pthread_mutex_lock(&lock);
    ask->result = result;
    ask->ended = 1;
    pthread_cond_signal(&ask->told);
    pthread_mutex_unlock(&lock);
}

static void *own(void *nothing) {
    int in_flight = 0;
    struct ask *waiting = NULL;
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&lock);
    for (;;) {
        if (!waiting && first) {
            waiting = first;
            first = NULL;
            last = &first;
        }
        pthread_mutex_unlock(&lock);
        while (waiting) {
            struct ask *next = waiting->next;
            int rc = ocssd_target_submit(target, &waiting->request, ended, waiting);
            if (rc == -EAGAIN)
                break;
            if (rc)
                ended(waiting, rc, 0);
            else
                in_flight++;
            waiting = next;
        }
        int told = ocssd_target_poll(target, 1024);
        if (told < 0)
            die("poll");
        in_flight -= told;
        pthread_mutex_lock(&lock);
        if (told || (first && !waiting))
            continue;
        if (stop && !in_flight && !waiting)
            break;
        if (!in_flight && !first) {
            pthread_cond_wait(&asked, &lock);
        } else {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 10000;
            if (until.tv_nsec >= 1000000000) {
                until.tv_sec++;
                until.tv_nsec -= 1000000000;
            }
            pthread_cond_timedwait(&asked, &lock, &until);
        }
    }
    pthread_mutex_unlock(&lock);
    return nothing;
}

static int run(uint32_t op, uint64_t offset, uint64_t bytes, void *data) {
    struct ask ask = {.request = {.op = op, .offset = offset, .bytes = bytes, .data = data}};
    pthread_cond_init(&ask.told, NULL);
    pthread_mutex_lock(&lock);
    *last = &ask;
    last = &ask.next;
    pthread_cond_signal(&asked);
    while (!ask.ended)
        pthread_cond_wait(&ask.told, &lock);
    pthread_mutex_unlock(&lock);
    return ask.result;
}

static void finish(void) {
    pthread_mutex_lock(&lock);
    stop = 1;
    pthread_cond_signal(&asked);
    pthread_mutex_unlock(&lock);
    pthread_join(owner, NULL);
    // The drive's own count, SMART (02h): thousands of 512 bytes. What the close writes is not in it.
    struct ocssd_command command = {0};
    uint64_t smart[64] = {0};
    if (!ocssd_prepare_log_page(&command, 2, 0xFFFFFFFF, 0, smart, sizeof smart) && !ocssd_admin(drive, &command, NULL))
        fprintf(stderr, "zbd: %llu bytes written to the media, %llu read\n", (unsigned long long)smart[6] * 512000,
                (unsigned long long)smart[4] * 512000);
    if (ocssd_target_close(&target) || ocssd_drive_close(&drive))
        die("close");
}

static void start(void) {
    struct ocssd_drive_options options = {.clock = getenv("ZBD_VIRTUAL") ? OCSSD_CLOCK_VIRTUAL : OCSSD_CLOCK_WALL};
    const char *what = getenv("ZBD_TARGET");
    if (ocssd_drive_open(getenv("ZBD_DRIVE"), &options, &drive))
        die("drive");
    if (ocssd_target_open(drive, what ? what : "zns", NULL, &target) || ocssd_zoned_info(target, &zones))
        die("target");
    pthread_create(&owner, NULL, own, NULL);
    atexit(finish);
}

int zbd_open(const char *name, int flags, struct zbd_info *info) {
    (void)name;
    (void)flags;
    pthread_once(&once, start);
    memset(info, 0, sizeof *info);
    info->nr_zones = zones.zone_count;
    info->zone_size = zones.zone_bytes;
    info->zone_sectors = zones.zone_bytes >> 9;
    info->nr_sectors = zones.zone_count * (zones.zone_bytes >> 9);
    info->lblock_size = info->pblock_size = zones.block_bytes;
    info->nr_lblocks = info->nr_pblocks = zones.zone_count * zones.zone_bytes / zones.block_bytes;
    info->max_nr_open_zones = zones.open_max;
    info->max_nr_active_zones = zones.active_max;
    info->model = ZBD_DM_HOST_MANAGED;
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0 || fd >= 64)
        die("descriptors");
    descriptors[fd] = 1;
    return fd;
}

void zbd_close(int fd) {
    descriptors[fd] = 0;
    close(fd);
}

// The device thread must not be inside of the library: a report is a request.
int zbd_report_zones(int fd, off_t offset, off_t length, enum zbd_report_option only, struct zbd_zone *into, unsigned int *count) {
    (void)fd;
    (void)only;
    uint64_t from = offset / zones.zone_bytes, to = length ? (offset + length) / zones.zone_bytes : zones.zone_count;
    if (to > zones.zone_count)
        to = zones.zone_count;
    if (!into) {
        *count = to - from;
        return 0;
    }
    if (to - from > *count)
        to = from + *count;
    struct ocssd_zone *found = calloc(to - from, sizeof *found);
    int rc = run(OCSSD_OP_REPORT_ZONES, offset, (to - from) * sizeof *found, found);
    for (uint64_t n = 0; !rc && n < to - from; n++) {
        struct zbd_zone *zone = &into[n];
        memset(zone, 0, sizeof *zone);
        zone->start = found[n].offset;
        zone->len = zones.zone_bytes;
        zone->capacity = found[n].capacity;
        zone->type = ZBD_ZONE_TYPE_SWR;
        zone->wp = found[n].write_pointer == UINT64_MAX ? zone->start + zone->len : found[n].write_pointer;
        switch (found[n].state) {
        case OCSSD_ZONE_EMPTY: zone->cond = ZBD_ZONE_COND_EMPTY; break;
        case OCSSD_ZONE_IMPLICITLY_OPENED: zone->cond = ZBD_ZONE_COND_IMP_OPEN; break;
        case OCSSD_ZONE_EXPLICITLY_OPENED: zone->cond = ZBD_ZONE_COND_EXP_OPEN; break;
        case OCSSD_ZONE_CLOSED: zone->cond = ZBD_ZONE_COND_CLOSED; break;
        case OCSSD_ZONE_FULL: zone->cond = ZBD_ZONE_COND_FULL; break;
        case OCSSD_ZONE_READ_ONLY: zone->cond = ZBD_ZONE_COND_READONLY; break;
        default: zone->cond = ZBD_ZONE_COND_OFFLINE;
        }
    }
    free(found);
    *count = to - from;
    errno = -rc;
    return rc ? -1 : 0;
}

int zbd_list_zones(int fd, off_t offset, off_t length, enum zbd_report_option only, struct zbd_zone **into, unsigned int *count) {
    if (zbd_report_zones(fd, offset, length, only, NULL, count))
        return -1;
    *into = calloc(*count, sizeof **into);
    return zbd_report_zones(fd, offset, length, only, *into, count);
}

int zbd_zones_operation(int fd, enum zbd_zone_op op, off_t offset, off_t length) {
    (void)fd;
    static const uint32_t ops[] = {0, OCSSD_OP_RESET_ZONE, OCSSD_OP_OPEN_ZONE, OCSSD_OP_CLOSE_ZONE, OCSSD_OP_FINISH_ZONE};
    for (uint64_t at = offset; at < (uint64_t)offset + length; at += zones.zone_bytes) {
        int rc = run(ops[op], at, 0, NULL);
        if (rc) {
            fprintf(stderr, "zbd: operation %d at %llu: %d\n", op, (unsigned long long)at, rc);
            errno = -rc;
            return -1;
        }
    }
    return 0;
}

ssize_t pread(int fd, void *data, size_t bytes, off_t offset) {
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (fd < 0 || fd >= 64 || !descriptors[fd]) {
        if (!real)
            real = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
        return real(fd, data, bytes, offset);
    }
    uint64_t block = zones.block_bytes, from = offset / block * block, to = (offset + bytes + block - 1) / block * block;
    if (from == (uint64_t)offset && to == offset + bytes) {
        int rc = run(OCSSD_OP_READ, from, bytes, data);
        errno = -rc;
        return rc ? -1 : (ssize_t)bytes;
    }
    char *whole = malloc(to - from);
    int rc = run(OCSSD_OP_READ, from, to - from, whole);
    if (!rc)
        memcpy(data, whole + (offset - from), bytes);
    free(whole);
    errno = -rc;
    return rc ? -1 : (ssize_t)bytes;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (fd < 0 || fd >= 64 || !descriptors[fd]) {
        if (!real)
            real = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
        return real(fd, data, bytes, offset);
    }
    int rc = run(OCSSD_OP_WRITE, offset, bytes, (void *)data);
    errno = -rc;
    return rc ? -1 : (ssize_t)bytes;
}
