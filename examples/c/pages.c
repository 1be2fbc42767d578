/* Pages of any length, flushed in buffers of 8 MiB as a log-structured store does it: each flush is a transaction with a number,
 * and is sent again after a restart that lost its answer, which changes nothing.
 *
 *     cc pages.c $(pkg-config --cflags --libs ocssd) -o pages && ./pages
 */

#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (8u << 20)
#define PAGES 4096
#define FLUSHES 4
#define SESSION 42

static uint8_t *buffer;
static ocssd_page table[PAGES];

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, ocssd_last_error());
        exit(1);
    }
}

/* Pages of 64 to 4063 bytes, one behind the other, that say which flush they come from. Returns how many rows fit. */
static uint32_t fill(uint32_t number, uint32_t *bytes)
{
    uint32_t row = 0, end = 0;

    for (; row < PAGES; row++) {
        uint32_t length = 64 + (row * 2654435761u + number) % 4000;

        if (end + length > BUFFER_BYTES)
            break;
        table[row].page = row;
        table[row].offset = end;
        table[row].bytes = length;
        memset(buffer + end, (int)(number + row), length);
        memcpy(buffer + end, &number, sizeof number);
        end += length;
    }
    *bytes = end;
    return row;
}

int main(void)
{
    ocssd_drive *drive = NULL;
    ocssd_target *target = NULL;
    uint64_t start = 0, end = 0, applied = 0, durable = 0, pages = 0, live = 0, length = 0;
    uint32_t rows = 0, bytes = 0;

    buffer = malloc(BUFFER_BYTES);
    if (!buffer)
        return 1;
    must(ocssd_drive_open("cnex-tlc", NULL, &drive), "open the drive");
    must(ocssd_target_open(drive, "eleos", "pu:0-7", &target), "open eleos");
    must(ocssd_pages_open_session(target, SESSION, NULL, NULL), "open the session");
    must(ocssd_drive_now(drive, &start), "time");
    for (uint32_t number = 1; number <= FLUSHES; number++) {
        rows = fill(number, &bytes);
        must(ocssd_pages_flush(target, SESSION, number, buffer, bytes, table, rows, OCSSD_FUA, &durable), "flush");
    }
    must(ocssd_drive_now(drive, &end), "time");
    printf("%d flushes of %u pages in %.2f ms of the drive's time, %llu durable\n", FLUSHES, rows, (double)(end - start) / 1e6,
           (unsigned long long)durable);

    /* A restart: the session says how far it came. The last flush is sent again, as if its answer had been lost. */
    must(ocssd_target_close(&target), "close the target");
    must(ocssd_target_open(drive, "eleos", "pu:0-7", &target), "open it again");
    must(ocssd_pages_open_session(target, SESSION, &applied, &durable), "resume the session");
    printf("the session is at %llu\n", (unsigned long long)applied);
    must(ocssd_pages_flush(target, SESSION, applied, NULL, 0, NULL, 0, 0, NULL), "send it again");
    must(ocssd_pages_stat(target, &pages, &live), "stat");
    for (uint32_t row = 0; row < rows; row++) {
        must(ocssd_pages_read(target, row, 0, buffer, BUFFER_BYTES, &length), "read");
        if (length != table[row].bytes || memcmp(buffer, &(uint32_t){FLUSHES}, sizeof(uint32_t)) != 0) {
            fprintf(stderr, "page %u is not the one that was flushed last\n", row);
            return 1;
        }
    }
    printf("%llu pages of %llu bytes, all read back\n", (unsigned long long)pages, (unsigned long long)live);
    free(buffer);
    must(ocssd_target_close(&target), "close the target");
    must(ocssd_drive_close(&drive), "close the drive");
    return 0;
}
