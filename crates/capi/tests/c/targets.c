/* Block targets: waited for and submitted, what is refused, and raw commands beside them. */

#include "check.h"

#define BLOCK 4096

struct told {
    ocssd_target *target;
    int count, again;
    int results[64];
};

static uint8_t memory[64][BLOCK];

static void ended(void *context, int result, uint16_t status)
{
    struct told *told = (struct told *)context;

    CHECK((result == 0) == (status == 0), 1);
    told->results[told->count++] = result;
    if (told->again > 0) {
        ocssd_request read = {OCSSD_OP_READ, 0, 0, BLOCK, memory[63]};

        told->again--;
        CHECK(ocssd_target_submit(told->target, &read, ended, told), 0);
        CHECK(ocssd_target_poll(told->target, 1), -EBUSY);
        CHECK(ocssd_target_close(&told->target), -EBUSY);
    }
}

static void all_of(uint8_t *block, uint8_t value, int line)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i] != value) {
            fprintf(stderr, "line %d: byte %d is %d, but should be %d\n", line, i, block[i], value);
            exit(1);
        }
}

static ocssd_target *pblk(ocssd_drive *drive, const char *place)
{
    ocssd_target *target = NULL;

    CHECK(ocssd_target_open(drive, "pblk:over_provisioning_percent=20", place, &target), 0);
    return target;
}

static void waited_for(uint32_t clock)
{
    ocssd_drive *drive = NULL;
    ocssd_drive_options options = {0};
    ocssd_target *target;
    ocssd_info info;
    static uint8_t large[3 << 20], back[3 << 20];
    uint64_t size;

    options.clock = clock;
    CHECK(ocssd_drive_open("qemu", &options, &drive), 0);
    target = pblk(drive, NULL);
    CHECK(ocssd_target_info(target, &info), 0);
    CHECK(info.block_bytes, BLOCK);
    CHECK(info.zone_count, 0);
    size = info.block_count * BLOCK;
    memset(memory[0], 0x11, BLOCK);
    CHECK(ocssd_target_write(target, memory[0], BLOCK, 0, 0), 0);
    CHECK(ocssd_target_write(target, memory[0], BLOCK, size - BLOCK, OCSSD_FUA), 0);
    CHECK(ocssd_target_flush(target), 0);
    CHECK(ocssd_target_read(target, memory[1], BLOCK, size - BLOCK), 0);
    all_of(memory[1], 0x11, __LINE__);
    CHECK(ocssd_target_discard(target, BLOCK, 0), 0);
    CHECK(ocssd_target_read(target, memory[1], BLOCK, 0), 0);
    all_of(memory[1], 0, __LINE__);
    CHECK(ocssd_target_write_zeroes(target, BLOCK, size - BLOCK), 0);
    CHECK(ocssd_target_read(target, memory[1], BLOCK, size - BLOCK), 0);
    all_of(memory[1], 0, __LINE__);
    /* More than one request can have. */
    for (unsigned i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)(i * 2654435761u >> 24);
    CHECK(ocssd_target_write(target, large, sizeof large, 16 * BLOCK, 0), 0);
    CHECK(ocssd_target_read(target, back, sizeof back, 16 * BLOCK), 0);
    CHECK(memcmp(large, back, sizeof large), 0);
    /* What is no whole block, lies outside, or is no request. */
    CHECK(ocssd_target_write(target, memory[0], 100, 0, 0), -EINVAL);
    CHECK(ocssd_target_write(target, memory[0], BLOCK, 100, 0), -EINVAL);
    CHECK(ocssd_target_write(target, memory[0], BLOCK, size, 0), -EINVAL);
    CHECK(ocssd_target_read(target, memory[0], BLOCK, UINT64_MAX - BLOCK + 1), -EINVAL);
    CHECK(ocssd_target_write(target, memory[0], 0, 0, 0), -EINVAL);
    CHECK(ocssd_target_write(target, NULL, BLOCK, 0, 0), -EINVAL);
    CHECK(ocssd_target_write(target, memory[0], BLOCK, 0, 2), -EINVAL);
    CHECK(ocssd_target_read(NULL, memory[0], BLOCK, 0), -EINVAL);
    CHECK(ocssd_target_reset_zone(target, 0), -EOPNOTSUPP);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_close(&target), -EINVAL);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void submitted(void)
{
    ocssd_drive *drive = NULL;
    ocssd_target *target;
    struct told told = {0};
    ocssd_request request = {OCSSD_OP_WRITE, 0, 0, BLOCK, NULL};

    CHECK(ocssd_drive_open("qemu", NULL, &drive), 0);
    target = pblk(drive, "all");
    told.target = target;
    for (int i = 0; i < 32; i++) {
        memset(memory[i], i + 1, BLOCK);
        request.offset = (uint64_t)i * BLOCK;
        request.data = memory[i];
        CHECK(ocssd_target_submit(target, &request, ended, &told), 0);
        /* What is written was copied. */
        memset(memory[i], 0xee, BLOCK);
    }
    CHECK(ocssd_target_close(&target), -EBUSY);
    told.again = 2;
    while (told.count < 34)
        CHECK(ocssd_target_poll(target, 5) > 0, 1);
    CHECK(ocssd_target_poll(target, 5), 0);
    request.op = OCSSD_OP_READ;
    for (int i = 0; i < 16; i++) {
        request.offset = (uint64_t)i * BLOCK;
        request.data = memory[i];
        CHECK(ocssd_target_submit(target, &request, NULL, NULL), 0);
    }
    CHECK(ocssd_target_poll(target, 16) >= 1, 1);
    while (ocssd_target_poll(target, 16) > 0)
        continue;
    for (int i = 0; i < 16; i++)
        all_of(memory[i], (uint8_t)(i + 1), __LINE__);
    request.bytes = 2 << 20;
    CHECK(ocssd_target_submit(target, &request, ended, &told), -EINVAL);
    request.op = OCSSD_OP_FLUSH;
    CHECK(ocssd_target_submit(target, &request, ended, &told), -EINVAL);
    request.op = 99;
    CHECK(ocssd_target_submit(target, &request, ended, &told), -EINVAL);
    CHECK(ocssd_target_submit(target, NULL, ended, &told), -EINVAL);
    /* As many as the target's depth, and one more. */
    request.op = OCSSD_OP_FLUSH;
    request.offset = request.bytes = 0;
    request.data = NULL;
    for (int i = 0; i < 1024; i++)
        CHECK(ocssd_target_submit(target, &request, NULL, NULL), 0);
    CHECK(ocssd_target_submit(target, &request, NULL, NULL), -EAGAIN);
    while (ocssd_target_poll(target, 4096) > 0)
        continue;
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void zones(void)
{
    ocssd_drive *drive = tiny(OCSSD_CLOCK_VIRTUAL);
    ocssd_target *target = NULL;
    ocssd_info info;
    static uint8_t data[32 * BLOCK], back[8 * BLOCK];
    uint64_t zone;

    CHECK(ocssd_target_open(drive, "linear:depth=3", NULL, &target), -EINVAL);
    CHECK(ocssd_target_open(drive, "linear", NULL, &target), 0);
    CHECK(ocssd_target_info(target, &info), 0);
    CHECK(info.zone_count > 1, 1);
    zone = info.zone_blocks * BLOCK;
    memset(data, 0x77, sizeof data);
    /* The second write unit of the first parallel unit, whose first is empty. */
    CHECK(ocssd_target_write(target, data, 8 * BLOCK, zone + 32 * BLOCK, 0), -EINVAL);
    CHECK_SAYS("Out of Order");
    for (unsigned at = 0; at < info.zone_blocks; at += 32)
        CHECK(ocssd_target_write(target, data, sizeof data, zone + at * BLOCK, 0), 0);
    CHECK(ocssd_target_read(target, back, sizeof back, zone), 0);
    CHECK(memcmp(back, data, sizeof back), 0);
    CHECK(ocssd_target_discard(target, BLOCK, zone), -EOPNOTSUPP);
    CHECK(ocssd_target_reset_zone(target, zone), 0);
    CHECK(ocssd_target_reset_zone(target, zone + BLOCK), -EINVAL);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

/* Two targets and raw commands on one drive: what is leased is protected, the rest is free. */
static void beside_raw_commands(void)
{
    ocssd_drive *drive = NULL;
    ocssd_target *a, *b = NULL;
    ocssd_command command;
    static uint8_t data[64 * BLOCK];
    uint64_t leased, unleased;
    ocssd_geometry geometry;

    CHECK(ocssd_drive_open("qemu", NULL, &drive), 0);
    CHECK(ocssd_drive_geometry(drive, &geometry), 0);
    CHECK(geometry.groups * geometry.pus_per_group >= 4, 1);
    a = pblk(drive, "pu:0-1");
    CHECK(ocssd_target_open(drive, "pblk", "pu:1-2", &b), -EBUSY);
    CHECK(ocssd_target_open(drive, "pblk:mode=none", "pu:2", &b), -EINVAL);
    CHECK(ocssd_target_open(drive, "linear", "pu:2", &b), 0);
    leased = lba_of(drive, 0, 0, 0, 0);
    unleased = lba_of(drive, 3 / geometry.pus_per_group, 3 % geometry.pus_per_group, 0, 0);
    CHECK(ocssd_prepare_vector(&command, 0x90, &leased, 1, NULL, 0), 0);
    CHECK(ocssd_io(drive, &command, NULL), -EBUSY);
    CHECK_SAYS("unit 0");
    CHECK(ocssd_prepare_scalar(&command, 0x01, leased, geometry.ws_opt, data, geometry.ws_opt * BLOCK), 0);
    CHECK(ocssd_io(drive, &command, NULL), -EBUSY);
    CHECK(ocssd_prepare_copy(&command, &unleased, &leased, 1), 0);
    CHECK(ocssd_io(drive, &command, NULL), -EBUSY);
    /* Dataset Management with AD: a range is 4 bytes of attributes, 4 of length and the first LBA. */
    memset(&command, 0, sizeof command);
    command.entry[0] = 0x09;
    command.entry[4] = 1;
    command.entry[44] = 4;
    memcpy(data + 4, &geometry.sectors_per_chunk, 4);
    memcpy(data + 8, &leased, 8);
    command.data = data;
    command.data_bytes = 16;
    CHECK(ocssd_io(drive, &command, NULL), -EBUSY);
    CHECK(ocssd_prepare_scalar(&command, 0x02, leased, 1, data, BLOCK), 0);
    CHECK(ocssd_io(drive, &command, NULL), 0);
    CHECK(ocssd_prepare_scalar(&command, 0x01, unleased, geometry.ws_opt, data, geometry.ws_opt * BLOCK), 0);
    CHECK(ocssd_io(drive, &command, NULL), 0);
    memset(memory[0], 3, BLOCK);
    CHECK(ocssd_target_write(a, memory[0], BLOCK, 0, OCSSD_FUA), 0);
    CHECK(ocssd_target_close(&b), 0);
    /* The place of the closed one is used again, and the other goes on. */
    CHECK(ocssd_target_open(drive, "linear", "pu:2-2", &b), 0);
    CHECK(ocssd_target_read(a, memory[1], BLOCK, 0), 0);
    all_of(memory[1], 3, __LINE__);
    CHECK(ocssd_target_close(&a), 0);
    CHECK(ocssd_target_close(&b), 0);
    CHECK(ocssd_prepare_vector(&command, 0x90, &leased, 1, NULL, 0), 0);
    CHECK(ocssd_io(drive, &command, NULL) >= 0, 1);
    CHECK(ocssd_drive_close(&drive), 0);
}

int main(void)
{
    waited_for(OCSSD_CLOCK_VIRTUAL);
    waited_for(OCSSD_CLOCK_WALL);
    submitted();
    zones();
    beside_raw_commands();
    return 0;
}
