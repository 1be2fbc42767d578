/* A block device of a drive's units, written asynchronously: 1024 writes with 32 in progress, a flush, and all read back.
 *
 *     cc block.c $(pkg-config --cflags --libs ocssd) -o block && ./block
 */

#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITES 1024
#define DEPTH 32

struct job {
    ocssd_target *target;
    uint32_t block_bytes;
    uint64_t blocks;
    uint8_t *block;
    int next, ended, failed;
};

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, ocssd_last_error());
        exit(1);
    }
}

/* All over the device: 7919 is a prime, so that no two writes share a block. */
static uint64_t place_of(const struct job *job, int number)
{
    return (uint64_t)number * 7919 % job->blocks;
}

static void submit_next(struct job *job);

/* Called by ocssd_target_poll: each end submits the next write. */
static void ended(void *context, int result, uint16_t status)
{
    struct job *job = (struct job *)context;

    if (result < 0) {
        fprintf(stderr, "a write failed: %s\n", ocssd_status_text(status));
        job->failed++;
    }
    job->ended++;
    submit_next(job);
}

static void submit_next(struct job *job)
{
    ocssd_request request = {0};
    int number = job->next;

    if (number == WRITES)
        return;
    job->next++;
    memset(job->block, number, job->block_bytes);
    memcpy(job->block, &number, sizeof number);
    request.op = OCSSD_OP_WRITE;
    request.offset = place_of(job, number) * job->block_bytes;
    request.bytes = job->block_bytes;
    /* What is written is copied by the call, so that one block serves all. */
    request.data = job->block;
    must(ocssd_target_submit(job->target, &request, ended, job), "submit");
}

int main(void)
{
    ocssd_drive *drive = NULL;
    struct job job = {0};
    ocssd_info info;
    uint64_t start = 0, end = 0;

    must(ocssd_drive_open("cnex-tlc", NULL, &drive), "open the drive");
    must(ocssd_target_open(drive, "pblk", "pu:0-7", &job.target), "open pblk");
    must(ocssd_target_info(job.target, &info), "info");
    job.block_bytes = info.block_bytes;
    job.blocks = info.block_count;
    job.block = malloc(info.block_bytes);
    if (!job.block)
        return 1;
    printf("pblk on 8 units: %llu blocks of %u bytes\n", (unsigned long long)info.block_count, info.block_bytes);

    must(ocssd_drive_now(drive, &start), "time");
    while (job.next < DEPTH)
        submit_next(&job);
    while (job.ended < WRITES)
        must(ocssd_target_poll(job.target, DEPTH), "poll");
    must(ocssd_target_flush(job.target), "flush");
    must(ocssd_drive_now(drive, &end), "time");
    printf("%d writes and a flush in %.2f ms of the drive's time, %d failed\n", WRITES, (double)(end - start) / 1e6, job.failed);

    for (int number = 0; number < WRITES; number++) {
        int found;

        must(ocssd_target_read(job.target, job.block, info.block_bytes, place_of(&job, number) * info.block_bytes), "read");
        memcpy(&found, job.block, sizeof found);
        if (found != number) {
            fprintf(stderr, "write %d came back as %d\n", number, found);
            return 1;
        }
    }
    printf("all read back\n");
    free(job.block);
    must(ocssd_target_close(&job.target), "close the target");
    must(ocssd_drive_close(&drive), "close the drive");
    return job.failed > 0;
}
