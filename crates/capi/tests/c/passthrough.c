/* Raw entries: through pointers of the entry and beside it, refused ones, queues, callbacks that submit, events. */

#include "check.h"

#define SECTOR 4096
#define OOB 16

struct told {
    ocssd_queue *queue;
    ocssd_command *next;
    int count, first_failed;
    uint16_t statuses[64], cids[64];
};

static void ended(void *context, const ocssd_completion *completion)
{
    struct told *told = (struct told *)context;

    told->statuses[told->count] = completion->status >> 1 & 0x7ff;
    told->cids[told->count++] = completion->cid;
    if (told->next) {
        ocssd_command *next = told->next;

        told->next = NULL;
        CHECK(ocssd_queue_submit(told->queue, next, ended, told), 0);
        CHECK(ocssd_queue_poll(told->queue, 1), -EBUSY);
        CHECK(ocssd_queue_close(&told->queue), -EBUSY);
    }
}

static void put_pointer(uint8_t *place, const void *pointer)
{
    uint64_t bits = (uint64_t)(uintptr_t)pointer;

    memcpy(place, &bits, sizeof bits);
}

/* Writes and reads sectors of two chunks by lists and metadata whose addresses stand in the entry. */
static void pointers_of_the_entry(void)
{
    ocssd_drive *drive = tiny(OCSSD_CLOCK_VIRTUAL);
    static uint8_t data[32 * SECTOR], oob[32 * OOB], back[32 * SECTOR], oob_back[32 * OOB];
    uint64_t lbas[32];
    ocssd_command command;
    ocssd_completion completion;

    for (int i = 0; i < 32; i++) {
        lbas[i] = lba_of(drive, 1, 1, i / 16, i % 16);
        memset(data + i * SECTOR, i + 1, SECTOR);
        memset(oob + i * OOB, 0x80 + i, OOB);
    }
    CHECK(ocssd_prepare_vector(&command, 0x91, lbas, 32, data, sizeof data), 0);
    command.lbas = NULL;
    command.lba_count = 0;
    put_pointer(command.entry + 40, lbas);
    put_pointer(command.entry + 16, oob);
    command.entry[2] = 0x34;
    command.entry[3] = 0x12;
    CHECK(ocssd_io(drive, &command, &completion), 0);
    CHECK(completion.cid, 0x1234);
    CHECK(completion.status, 0);
    /* The newest eight sectors of each chunk cannot be read yet. */
    for (int i = 0; i < 16; i++)
        lbas[i] = lba_of(drive, 1, 1, i / 8, i % 8);
    CHECK(ocssd_prepare_vector(&command, 0x92, lbas, 16, back, 16 * SECTOR), 0);
    command.metadata = oob_back;
    command.metadata_bytes = 16 * OOB;
    CHECK(ocssd_io(drive, &command, NULL), 0);
    CHECK(memcmp(back, data, 8 * SECTOR), 0);
    CHECK(memcmp(back + 8 * SECTOR, data + 16 * SECTOR, 8 * SECTOR), 0);
    CHECK(memcmp(oob_back, oob, 8 * OOB), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void refused(void)
{
    ocssd_drive *drive = tiny(OCSSD_CLOCK_VIRTUAL);
    static uint8_t data[8 * SECTOR];
    uint64_t lba = lba_of(drive, 0, 0, 0, 0), later[4], list[2] = {lba, lba};
    ocssd_command command, broken;
    ocssd_completion completion;

    for (int i = 0; i < 4; i++)
        later[i] = lba_of(drive, 0, 0, 0, 8 + i);
    /* Out of order: the chunk is empty. */
    CHECK(ocssd_prepare_vector(&command, 0x91, later, 4, data, 4 * SECTOR), 0);
    CHECK(ocssd_io(drive, &command, &completion), 0x2f2);
    CHECK(completion.status >> 15, 1);
    CHECK(strstr(ocssd_status_text(0x2f2), "Out of Order") != NULL, 1);
    /* An unknown opcode is the controller's to refuse. */
    broken = command;
    broken.entry[0] = 0x7f;
    CHECK(ocssd_io(drive, &broken, &completion), 0x001);
    CHECK(ocssd_admin(drive, &broken, &completion), 0x001);
    /* Data shorter than the command moves, and none. */
    broken = command;
    broken.data_bytes = 4 * SECTOR - 1;
    CHECK(ocssd_io(drive, &broken, NULL), 0x004);
    broken.data = NULL;
    CHECK(ocssd_io(drive, &broken, NULL), -EINVAL);
    broken.data_bytes = 0;
    CHECK(ocssd_io(drive, &broken, NULL), 0x004);
    /* A list that is shorter than the entry says, and none. */
    broken = command;
    broken.lba_count = 3;
    CHECK(ocssd_io(drive, &broken, NULL), 0x004);
    broken.lbas = NULL;
    CHECK(ocssd_io(drive, &broken, NULL), -EINVAL);
    broken.lba_count = 0;
    CHECK(ocssd_io(drive, &broken, NULL), 0x004);
    /* Metadata in the middle of the data. */
    broken = command;
    broken.metadata = data + 8;
    broken.metadata_bytes = 64;
    CHECK(ocssd_io(drive, &broken, NULL), -EINVAL);
    broken.metadata = NULL;
    CHECK(ocssd_io(drive, &broken, NULL), -EINVAL);
    /* NULL, and a pointer that is no multiple of eight. */
    CHECK(ocssd_io(drive, NULL, NULL), -EINVAL);
    CHECK(ocssd_io(NULL, &command, NULL), -EINVAL);
    CHECK(ocssd_io(drive, (const ocssd_command *)((uintptr_t)&command + 1), NULL), -EINVAL);
    /* What cannot be prepared. */
    CHECK(ocssd_prepare_vector(&command, 0x93, list, 2, NULL, 0), -EINVAL);
    CHECK(ocssd_prepare_vector(&command, 0x90, list, 65, NULL, 0), -EINVAL);
    CHECK(ocssd_prepare_vector(&command, 0x90, list, 0, NULL, 0), -EINVAL);
    CHECK(ocssd_prepare_vector(&command, 0x90, NULL, 1, NULL, 0), -EINVAL);
    CHECK(ocssd_prepare_scalar(&command, 0x02, lba, 65537, NULL, 0), -EINVAL);
    CHECK(ocssd_prepare_log_page(&command, 0xca, 1, 2, data, 32), -EINVAL);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void queues(void)
{
    ocssd_drive *drive = tiny(OCSSD_CLOCK_VIRTUAL);
    static uint8_t data[8 * SECTOR];
    ocssd_queue *queue = NULL, *other = NULL;
    ocssd_command writes[4], flush;
    struct told told = {0};

    CHECK(ocssd_queue_open(drive, OCSSD_QUEUE_IO, 0, &queue), -EINVAL);
    CHECK(ocssd_queue_open(drive, 7, 4, &queue), -EINVAL);
    CHECK(ocssd_queue_open(drive, OCSSD_QUEUE_IO, 3, &queue), 0);
    CHECK(ocssd_queue_open(drive, OCSSD_QUEUE_IO, 2, &other), 0);
    for (int i = 0; i < 4; i++) {
        CHECK(ocssd_prepare_scalar(&writes[i], 0x01, lba_of(drive, 0, i % 2, 0, i / 2 * 8), 8, data, sizeof data), 0);
        writes[i].entry[2] = (uint8_t)(i + 1);
    }
    CHECK(ocssd_prepare_scalar(&flush, 0x00, 0, 0, NULL, 0), 0);
    flush.entry[2] = 9;
    for (int i = 0; i < 3; i++)
        CHECK(ocssd_queue_submit(queue, &writes[i], ended, &told), 0);
    CHECK(ocssd_queue_submit(queue, &writes[3], ended, &told), -EAGAIN);
    CHECK(ocssd_queue_submit(other, &flush, NULL, NULL), 0);
    CHECK(told.count, 0);
    CHECK(ocssd_queue_close(&queue), -EBUSY);
    CHECK(ocssd_drive_close(&drive), -EBUSY);
    CHECK(ocssd_queue_poll(queue, 0), 0);
    told.queue = queue;
    told.next = &writes[3];
    /* One at a time; the first to end submits the fourth. */
    while (told.count < 4)
        CHECK(ocssd_queue_poll(queue, 1), 1);
    for (int i = 0; i < 4; i++)
        CHECK(told.statuses[i], 0);
    CHECK(told.cids[0] + told.cids[1] + told.cids[2] + told.cids[3], 1 + 2 + 3 + 4);
    CHECK(ocssd_queue_poll(queue, 1), 0);
    CHECK(ocssd_queue_poll(other, 9), 1);
    CHECK(ocssd_queue_close(&other), 0);
    CHECK(ocssd_queue_close(&queue), 0);
    CHECK(ocssd_queue_close(&queue), -EINVAL);
    CHECK(ocssd_queue_poll(queue, 1), -EINVAL);
    CHECK(ocssd_queue_submit(queue, &flush, ended, NULL), -EINVAL);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void admin(void)
{
    ocssd_drive *drive = tiny(OCSSD_CLOCK_VIRTUAL);
    ocssd_queue *queue = NULL, *second = NULL;
    ocssd_command event = {{0}, NULL, 0, NULL, 0, NULL, NULL, 0, 0}, geometry;
    static uint8_t page[4096];
    struct told told = {0};

    event.entry[0] = 0x0c;
    CHECK(ocssd_admin(drive, &event, NULL), -EINVAL);
    CHECK(ocssd_queue_open(drive, OCSSD_QUEUE_ADMIN, 8, &queue), 0);
    CHECK(ocssd_queue_open(drive, OCSSD_QUEUE_ADMIN, 8, &second), -EBUSY);
    for (int i = 0; i < 4; i++)
        CHECK(ocssd_queue_submit(queue, &event, ended, &told), 0);
    CHECK(ocssd_queue_submit(queue, &event, ended, &told), 0);
    CHECK(ocssd_prepare_geometry(&geometry, page), 0);
    CHECK(ocssd_queue_submit(queue, &geometry, ended, &told), 0);
    CHECK(ocssd_queue_poll(queue, 10), 2);
    CHECK(told.statuses[0], 0x105);
    CHECK(told.statuses[1], 0);
    CHECK(page[0], 2);
    /* The four are still held; a poll does not wait for what may never be. */
    CHECK(ocssd_queue_poll(queue, 10), 0);
    CHECK(ocssd_queue_close(&queue), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

/* A sector that was read with effort is news: the request that is held ends. */
static void event(void)
{
    ocssd_drive *drive = NULL;
    ocssd_queue *queue = NULL;
    ocssd_command request = {{0}, NULL, 0, NULL, 0, NULL, NULL, 0, 0}, command;
    static uint8_t data[16 * SECTOR];
    struct told told = {0};
    const char *toml = "preset = \"tiny\"\n[[fault]]\nkind = \"high_ecc\"\nat = \"g0/p0/c0/s1\"\n";
    uint64_t lba;

    CHECK(ocssd_drive_open_toml(toml, NULL, &drive), 0);
    lba = lba_of(drive, 0, 0, 0, 0);
    CHECK(ocssd_queue_open(drive, OCSSD_QUEUE_ADMIN, 4, &queue), 0);
    request.entry[0] = 0x0c;
    CHECK(ocssd_queue_submit(queue, &request, ended, &told), 0);
    CHECK(ocssd_prepare_scalar(&command, 0x01, lba, 16, data, sizeof data), 0);
    CHECK(ocssd_io(drive, &command, NULL), 0);
    CHECK(ocssd_queue_poll(queue, 4), 0);
    CHECK(ocssd_prepare_scalar(&command, 0x02, lba, 4, data, 4 * SECTOR), 0);
    CHECK(ocssd_io(drive, &command, NULL), 0);
    CHECK(ocssd_queue_poll(queue, 4), 1);
    CHECK(told.statuses[0], 0);
    CHECK(ocssd_queue_close(&queue), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

int main(void)
{
    pointers_of_the_entry();
    refused();
    queues();
    admin();
    event();
    return 0;
}
