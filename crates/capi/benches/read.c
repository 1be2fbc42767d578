/* Processor time of a 4 KiB read through the C library in virtual time: waited for, through a queue, and of block targets.
 *
 *     cc -O2 read.c $(pkg-config --cflags --libs ocssd) -o read && ./read [READS]
 *
 * Prints a line per way: nanoseconds of this thread's processor time per read, the shortest and the median of nine rounds.
 */

#define _POSIX_C_SOURCE 200809L

#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECTOR 4096
#define CHUNKS 64
#define ROUNDS 9
#define DEPTH 64

static ocssd_drive *drive;
static ocssd_geometry geometry;
static ocssd_queue *queue;
static ocssd_target *target;
static uint8_t buffers[DEPTH][SECTOR];
static uint64_t state = 1, blocks, units = CHUNKS;
static long in_progress;

static void must(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s: %d %s\n", what, result, ocssd_last_error());
    exit(1);
}

/* Any sector that was written, of one chunk in each of 64 units. */
static uint64_t any(uint64_t count)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % count;
}

static uint64_t any_lba(void)
{
    ocssd_address address = {0};
    uint64_t unit = any(units), lba = 0;

    address.group = (uint32_t)(unit / geometry.pus_per_group);
    address.pu = (uint32_t)(unit % geometry.pus_per_group);
    address.sector = (uint32_t)any(geometry.sectors_per_chunk);
    must(ocssd_address_pack(&geometry, &address, &lba), "address");
    return lba;
}

static void prepare(ocssd_command *command, long number)
{
    uint64_t lba = any_lba();

    must(ocssd_prepare_vector(command, 0x92, &lba, 1, buffers[number % DEPTH], SECTOR), "prepare");
}

static void raw(long reads)
{
    ocssd_command command;

    for (long i = 0; i < reads; i++) {
        prepare(&command, i);
        must(ocssd_io(drive, &command, NULL), "read");
    }
}

/* An opcode that does not exist: what a call costs that reads nothing. */
static void refused(long reads)
{
    ocssd_command command;

    for (long i = 0; i < reads; i++) {
        prepare(&command, i);
        command.entry[0] = 0x7f;
        if (ocssd_io(drive, &command, NULL) != 1)
            must(-1, "refusal");
    }
}

static void ended(void *context, const ocssd_completion *completion)
{
    (void)context;
    must(completion->status >> 1, "completion");
    in_progress--;
}

static void queued(long reads)
{
    ocssd_command command;

    for (long i = 0; i < reads; i++) {
        while (in_progress == DEPTH)
            if (ocssd_queue_poll(queue, DEPTH) < 0)
                must(-1, "poll");
        prepare(&command, i);
        must(ocssd_queue_submit(queue, &command, ended, NULL), "submit");
        in_progress++;
    }
    while (in_progress > 0)
        if (ocssd_queue_poll(queue, DEPTH) < 0)
            must(-1, "poll");
}

static void of_target(long reads)
{
    for (long i = 0; i < reads; i++)
        must(ocssd_target_read(target, buffers[0], SECTOR, any(blocks) * SECTOR), "target read");
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const char *name, void (*way)(long), long reads)
{
    double each[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        double start = now();

        way(reads);
        each[round] = (now() - start) / (double)reads;
    }
    qsort(each, ROUNDS, sizeof each[0], compare);
    printf("%-24s min %7.0f ns  median %7.0f ns per read\n", name, each[0], each[ROUNDS / 2]);
}

static void write_chunks(void)
{
    static uint8_t data[64 * SECTOR];
    ocssd_command command;

    for (uint32_t unit = 0; unit < CHUNKS; unit++)
        for (uint32_t sector = 0; sector < geometry.sectors_per_chunk; sector += 64) {
            ocssd_address address = {unit / geometry.pus_per_group, unit % geometry.pus_per_group, 0, sector};
            uint64_t lba = 0;

            must(ocssd_address_pack(&geometry, &address, &lba), "address");
            must(ocssd_prepare_scalar(&command, 0x01, lba, 64, data, sizeof data), "prepare");
            must(ocssd_io(drive, &command, NULL), "write");
        }
}

static void open_target(const char *what, uint64_t count)
{
    static uint8_t data[1 << 20];
    ocssd_info info;

    must(ocssd_target_open(drive, what, "pu:64-127", &target), what);
    must(ocssd_target_info(target, &info), "info");
    blocks = count;
    for (uint64_t at = 0; at < (blocks + info.unreadable_tail) * SECTOR; at += sizeof data)
        must(ocssd_target_write(target, data, sizeof data, at, 0), "target write");
    must(ocssd_target_flush(target), "flush");
}

int main(int count, char **arguments)
{
    const char *settings[] = {"sectors_per_chunk=1024"};
    ocssd_drive_options options = {0};
    long reads = count > 1 ? atol(arguments[1]) : 200000;

    options.settings = settings;
    options.settings_count = 1;
    must(ocssd_drive_open("westlake", &options, &drive), "open");
    must(ocssd_drive_geometry(drive, &geometry), "geometry");
    write_chunks();
    measure("refused, waited for", refused, reads);
    units = 1;
    measure("raw, 4 MiB of the drive", raw, reads);
    units = CHUNKS;
    measure("raw, waited for", raw, reads);
    must(ocssd_queue_open(drive, OCSSD_QUEUE_IO, DEPTH, &queue), "queue");
    measure("raw, queue of 64", queued, reads);
    must(ocssd_queue_close(&queue), "close");
    open_target("linear", 60000);
    measure("linear, waited for", of_target, reads);
    must(ocssd_target_close(&target), "close");
    must(ocssd_drive_close(&drive), "close");
    must(ocssd_drive_open("westlake", &options, &drive), "open");
    open_target("pblk", 60000);
    measure("pblk, waited for", of_target, reads);
    must(ocssd_target_close(&target), "close");
    must(ocssd_drive_close(&drive), "close");
    return 0;
}
