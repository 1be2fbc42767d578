/* The rule of threads: two drives in two threads at once; one drive handed from one to the other; a second thread refused. */

#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

#define SECTOR 4096

static void *work(void *context)
{
    ocssd_drive *drive = *(ocssd_drive **)context;
    static _Thread_local uint8_t data[8 * SECTOR];
    ocssd_command command;

    for (uint32_t chunk = 0; chunk < 8; chunk++) {
        for (uint32_t sector = 0; sector < 32; sector += 8) {
            memset(data, (int)(chunk + sector), sizeof data);
            CHECK(ocssd_prepare_scalar(&command, 0x01, lba_of(drive, 0, 0, chunk, sector), 8, data, sizeof data), 0);
            CHECK(ocssd_io(drive, &command, NULL), 0);
        }
        CHECK(ocssd_prepare_scalar(&command, 0x02, lba_of(drive, 0, 0, chunk, 8), 8, data, sizeof data), 0);
        CHECK(ocssd_io(drive, &command, NULL), 0);
        CHECK(data[0], chunk + 8);
    }
    /* Each thread has its own last error. */
    CHECK(ocssd_drive_open("no-such-preset", NULL, &drive), -ENOENT);
    CHECK_SAYS("no-such-preset");
    return NULL;
}

static void two_drives(void)
{
    ocssd_drive *drives[2] = {tiny(OCSSD_CLOCK_VIRTUAL), tiny(OCSSD_CLOCK_VIRTUAL)};
    pthread_t threads[2];
    uint64_t now[2];

    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &drives[i]), 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL), 0);
    /* The drives were handed back, and virtual time is that of the work, not of the machine. */
    for (int i = 0; i < 2; i++) {
        CHECK(ocssd_drive_now(drives[i], &now[i]), 0);
        CHECK(ocssd_drive_close(&drives[i]), 0);
    }
    CHECK(now[0], now[1]);
}

static atomic_int waited;

static void *wait_long(void *context)
{
    int result;

    /* The other thread may be inside at first. */
    do
        result = ocssd_drive_wait(*(ocssd_drive **)context, 300000000);
    while (result == -EBUSY);
    CHECK(result, 0);
    atomic_store(&waited, 1);
    return NULL;
}

/* While one thread waits inside the drive, calls of another are refused and change nothing. */
static void one_drive(void)
{
    ocssd_drive *drive = tiny(OCSSD_CLOCK_WALL);
    pthread_t thread;
    uint64_t now = 0;
    int refused = 0;

    CHECK(pthread_create(&thread, NULL, wait_long, &drive), 0);
    while (!atomic_load(&waited)) {
        int result = ocssd_drive_now(drive, &now);

        CHECK(result == 0 || result == -EBUSY, 1);
        refused |= result == -EBUSY;
    }
    CHECK(pthread_join(thread, NULL), 0);
    CHECK(refused, 1);
    CHECK(ocssd_drive_now(drive, &now), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

int main(void)
{
    two_drives();
    one_drive();
    return 0;
}
