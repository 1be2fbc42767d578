/* A database without a journal: each commit writes a handful of pages of 16 KiB all over the device and a header that counts
 * commits, as one transaction. Every third is given up. After a restart the pages are those of the header's commit.
 *
 *     cc transactions.c $(pkg-config --cflags --libs ocssd) -o transactions && ./transactions
 */

#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 16384
#define PAGES 1000
#define CHANGED 5
#define TRANSACTIONS 300

static ocssd_target *target;
static uint8_t page[PAGE_BYTES];
static int expected[PAGES];

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, ocssd_last_error());
        exit(1);
    }
}

static uint64_t place_of(int number)
{
    return (uint64_t)(number + 1) * PAGE_BYTES;
}

static void write_page(uint64_t transaction, uint64_t place, int value)
{
    memset(page, value, PAGE_BYTES);
    memcpy(page, &value, sizeof value);
    must(ocssd_transaction_write(target, transaction, page, PAGE_BYTES, place), "write");
}

static int read_page(uint64_t place)
{
    int value;

    must(ocssd_target_read(target, page, PAGE_BYTES, place), "read");
    memcpy(&value, page, sizeof value);
    return value;
}

int main(void)
{
    ocssd_drive *drive = NULL;
    uint64_t start = 0, end = 0, transaction = 0;
    int commits = 0, wrong = 0;

    /* A small drive, so that the map of its blocks is made quickly. */
    must(ocssd_drive_open_toml("preset = \"cnex-tlc\"\nchunks_per_pu = 60", NULL, &drive), "open the drive");
    must(ocssd_target_open(drive, "ox-block", "pu:0-7", &target), "open ox-block");
    must(ocssd_drive_now(drive, &start), "time");
    for (int number = 1; number <= TRANSACTIONS; number++) {
        int gives_up = number % 3 == 0;

        must(ocssd_transaction_begin(target, &transaction), "begin");
        for (int i = 0; i < CHANGED; i++) {
            int changed = (number * 31 + i * 197) % PAGES;

            write_page(transaction, place_of(changed), number);
            if (!gives_up)
                expected[changed] = number;
        }
        write_page(transaction, 0, commits + !gives_up);
        if (gives_up) {
            must(ocssd_transaction_abort(target, transaction), "give up");
        } else {
            must(ocssd_transaction_commit(target, transaction), "commit");
            commits++;
        }
    }
    must(ocssd_drive_now(drive, &end), "time");
    printf("%d commits in %.2f ms of the drive's time\n", commits, (double)(end - start) / 1e6);

    /* One more is begun and never ended. */
    must(ocssd_transaction_begin(target, &transaction), "begin");
    write_page(transaction, 0, -1);
    must(ocssd_target_close(&target), "close the target");
    must(ocssd_target_open(drive, "ox-block", "pu:0-7", &target), "open it again");
    printf("the header says %d commits\n", read_page(0));
    for (int number = 0; number < PAGES; number++)
        wrong += read_page(place_of(number)) != expected[number];
    printf("%d of %d pages are not those of the last commit\n", wrong, PAGES);
    must(ocssd_target_close(&target), "close the target");
    must(ocssd_drive_close(&drive), "close the drive");
    return wrong > 0;
}
