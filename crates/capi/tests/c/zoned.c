/* Zones: written, appended to, managed and reported; what is refused; and requests that are submitted. */

#include "check.h"

#define BLOCK 4096
#define ALL_ONES UINT64_MAX

static uint8_t data[64][BLOCK], back[64][BLOCK];
static ocssd_zone zones[64];

struct told {
    int count;
    ocssd_reply replies[64];
    char words[256];
};

static void ended(void *context, const ocssd_reply *reply)
{
    struct told *told = (struct told *)context;

    told->replies[told->count++] = *reply;
    if (reply->result < 0)
        snprintf(told->words, sizeof told->words, "%s", ocssd_last_error());
}

/* A drive that has room for zones: as tiny, with 128 chunks, and what else is asked for. */
static ocssd_drive *fresh(const char *more, uint32_t clock)
{
    char settings[256];
    ocssd_drive_options options = {0};
    ocssd_drive *drive = NULL;

    snprintf(settings, sizeof settings, "preset = \"tiny\"\nchunks_per_pu = 32\n%s", more);
    options.clock = clock;
    CHECK(ocssd_drive_open_toml(settings, &options, &drive), 0);
    return drive;
}

static ocssd_target *zns(ocssd_drive *drive, const char *what, ocssd_zones *info)
{
    ocssd_target *target = NULL;
    ocssd_info plain;

    CHECK(ocssd_target_open(drive, what, NULL, &target), 0);
    CHECK(ocssd_zoned_info(target, info), 0);
    CHECK(ocssd_target_info(target, &plain), 0);
    CHECK(plain.interface, OCSSD_INTERFACE_ZONES);
    CHECK(plain.block_bytes, info->block_bytes);
    CHECK(plain.zone_count, info->zone_count);
    CHECK(plain.block_count * plain.block_bytes, info->zone_bytes * info->zone_count);
    CHECK(info->block_bytes, BLOCK);
    CHECK(info->zone_count > 3 && info->capacity_bytes <= info->zone_bytes, 1);
    return target;
}

/* The zone at the offset is in this state, and is written next there. */
static void check_zone(ocssd_target *target, uint64_t offset, uint32_t state, uint64_t write_pointer, int line)
{
    ocssd_zone zone;

    CHECK(ocssd_zoned_report(target, offset, 0, &zone, 1, NULL), 0);
    if (zone.offset == offset && zone.state == state && zone.write_pointer == write_pointer)
        return;
    fprintf(stderr, "line %d: the zone at %llu is in state %u, written next at %llu\n", line, (unsigned long long)zone.offset,
            zone.state, (unsigned long long)zone.write_pointer);
    exit(1);
}

#define CHECK_ZONE(target, offset, state, pointer) check_zone(target, offset, state, pointer, __LINE__)

static void waited_for(uint32_t clock)
{
    ocssd_drive *drive = fresh("", clock);
    ocssd_zones info;
    ocssd_target *target = zns(drive, "zns:width=1", &info);
    uint64_t second = info.zone_bytes, last = info.zone_bytes * (info.zone_count - 1), landed = 0;
    uint32_t matching = 0;

    CHECK(ocssd_zoned_report(target, 0, OCSSD_ZONE_EMPTY, zones, 2, &matching), 0);
    CHECK(matching, info.zone_count);
    CHECK(zones[1].offset, second);
    CHECK(zones[1].capacity, info.capacity_bytes);
    CHECK(zones[2].capacity, 0);
    for (int i = 0; i < 64; i++)
        memset(data[i], i + 1, BLOCK);
    /* At the write pointer, and not. */
    CHECK(ocssd_target_write(target, data[0], 3 * BLOCK, second, OCSSD_FUA), 0);
    CHECK_ZONE(target, second, OCSSD_ZONE_IMPLICITLY_OPENED, second + 3 * BLOCK);
    CHECK(ocssd_target_write(target, data[0], BLOCK, second, 0), -EINVAL);
    CHECK_SAYS("write pointer");
    CHECK(ocssd_zoned_append(target, data[3], 2 * BLOCK, second, 0, &landed), 0);
    CHECK(landed, second + 3 * BLOCK);
    CHECK(ocssd_target_flush(target), 0);
    memset(back, 0xee, sizeof back);
    CHECK(ocssd_target_read(target, back, 7 * BLOCK, second), 0);
    CHECK(memcmp(back, data, 5 * BLOCK), 0);
    CHECK(back[5][0] == 0 && back[6][BLOCK - 1] == 0 && back[7][0] == 0xee, 1);
    /* States. */
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_CLOSE_ZONE, second, 0), 0);
    CHECK_ZONE(target, second, OCSSD_ZONE_CLOSED, second + 5 * BLOCK);
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_OPEN_ZONE, 0, OCSSD_ALL_ZONES), 0);
    CHECK_ZONE(target, second, OCSSD_ZONE_EXPLICITLY_OPENED, second + 5 * BLOCK);
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_FINISH_ZONE, second, 0), 0);
    CHECK_ZONE(target, second, OCSSD_ZONE_FULL, ALL_ONES);
    CHECK(ocssd_zoned_append(target, data[3], BLOCK, second, 0, &landed), -ENOSPC);
    CHECK(landed == ALL_ONES, 1);
    CHECK_SAYS("Zone Is Full");
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_CLOSE_ZONE, second, 0), -EINVAL);
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_OFFLINE_ZONE, second, 0), -EINVAL);
    CHECK(ocssd_target_write(target, data[0], BLOCK, last, 0), 0);
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_RESET_ZONE, 0, OCSSD_ALL_ZONES), 0);
    CHECK(ocssd_zoned_report(target, second, OCSSD_ZONE_EMPTY, NULL, 0, &matching), -EINVAL);
    CHECK(ocssd_zoned_report(target, second, OCSSD_ZONE_EMPTY, zones, 1, &matching), 0);
    CHECK(matching, info.zone_count - 1);
    /* As much as a zone holds, and a block more. */
    CHECK(ocssd_target_write(target, data, info.capacity_bytes, 0, 0), 0);
    CHECK_ZONE(target, 0, OCSSD_ZONE_FULL, ALL_ONES);
    CHECK(ocssd_target_reset_zone(target, 0), 0);
    CHECK(ocssd_target_write(target, data, info.capacity_bytes + BLOCK, 0, 0), -EINVAL);
    CHECK_ZONE(target, 0, OCSSD_ZONE_EMPTY, 0);
    CHECK(ocssd_zoned_changed(target, &landed), 0);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

/* More zones than may be active, an extension, and what is kept when the target is closed. */
static void limits_and_extensions(void)
{
    ocssd_drive *drive = fresh("", OCSSD_CLOCK_VIRTUAL);
    ocssd_zones info;
    ocssd_target *target = zns(drive, "zns:width=1", &info);
    uint8_t extension[OCSSD_EXTENSION_BYTES] = "my own";
    uint64_t offset = 0;
    int result = 0;

    CHECK(info.extension_bytes, sizeof extension);
    CHECK(ocssd_zoned_set_extension(target, 0, extension, sizeof extension), 0);
    CHECK_ZONE(target, 0, OCSSD_ZONE_CLOSED, 0);
    CHECK(ocssd_zoned_set_extension(target, 0, extension, sizeof extension), -EINVAL);
    CHECK_SAYS("Zone State");
    CHECK(ocssd_zoned_set_extension(target, info.zone_bytes, extension, 63), -EINVAL);
    CHECK(ocssd_zoned_set_extension(target, info.zone_bytes, NULL, sizeof extension), -EINVAL);
    CHECK(info.open_max > 0 && info.open_max < info.zone_count, 1);
    for (uint32_t zone = 1; zone < info.zone_count && result == 0; zone++)
        result = ocssd_zoned_manage(target, OCSSD_OP_OPEN_ZONE, offset = zone * info.zone_bytes, 0);
    CHECK(result, -ETOOMANYREFS);
    CHECK(offset, info.zone_bytes * (info.open_max + 1));
    CHECK_SAYS("Too Many Open Zones");
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_CLOSE_ZONE, 0, OCSSD_ALL_ZONES), 0);
    CHECK(ocssd_target_write(target, data, BLOCK, 0, 0), 0);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, "zns", NULL, &target), 0);
    CHECK(ocssd_zoned_report(target, 0, 0, zones, 2, NULL), 0);
    CHECK(zones[0].state, OCSSD_ZONE_CLOSED);
    CHECK(zones[0].write_pointer, BLOCK);
    CHECK(zones[0].has_extension == 1 && zones[1].has_extension == 0, 1);
    CHECK(memcmp(zones[0].extension, extension, sizeof extension), 0);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void areas(void)
{
    ocssd_drive *drive = fresh("", OCSSD_CLOCK_VIRTUAL);
    ocssd_zones info;
    ocssd_target *target = zns(drive, "zns:width=1,area_units=2", &info);
    uint64_t granule = info.area_granularity_bytes, landed;
    ocssd_zone zone;

    CHECK(info.area_bytes, 2 * granule);
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_OPEN_ZONE, 0, OCSSD_WITH_AREA), 0);
    /* Out of order, and again. */
    CHECK(ocssd_target_write(target, data[7], BLOCK, 5 * BLOCK, 0), 0);
    CHECK(ocssd_target_write(target, data[1], BLOCK, BLOCK, OCSSD_FUA), 0);
    CHECK(ocssd_target_write(target, data[9], BLOCK, 5 * BLOCK, 0), 0);
    CHECK_ZONE(target, 0, OCSSD_ZONE_EXPLICITLY_OPENED, 0);
    CHECK(ocssd_target_read(target, back, 6 * BLOCK, 0), 0);
    CHECK(back[1][0] == data[1][0] && back[5][0] == data[9][0] && back[0][0] == 0, 1);
    CHECK(ocssd_zoned_commit_area(target, BLOCK), -EINVAL);
    CHECK(ocssd_zoned_commit_area(target, granule - BLOCK), 0);
    CHECK_ZONE(target, 0, OCSSD_ZONE_EXPLICITLY_OPENED, granule);
    CHECK(ocssd_zoned_report(target, 0, 0, &zone, 1, NULL), 0);
    CHECK(zone.has_area, 1);
    CHECK(ocssd_zoned_append(target, data, BLOCK, 0, 0, &landed), -EINVAL);
    /* A zone whose write pointer is within a granule gets none. */
    CHECK(ocssd_target_write(target, data, BLOCK, info.zone_bytes, 0), 0);
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_OPEN_ZONE, info.zone_bytes, OCSSD_WITH_AREA), -EBUSY);
    CHECK_SAYS("ZRWA");
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void submitted(void)
{
    ocssd_drive *drive = fresh("", OCSSD_CLOCK_VIRTUAL);
    ocssd_zones info;
    ocssd_target *target = zns(drive, "zns:width=1", &info);
    ocssd_request append = {OCSSD_OP_APPEND, 0, 0, BLOCK, NULL}, request = {0};
    struct told told = {0};
    uint64_t seen = 0;

    for (int i = 0; i < 16; i++) {
        append.data = data[i];
        CHECK(ocssd_target_submit_for_reply(target, &append, ended, &told), 0);
        /* What is appended was copied. */
        memset(data[i], 0xee, BLOCK);
    }
    request.op = OCSSD_OP_REPORT_ZONES;
    request.data = zones;
    request.bytes = sizeof zones;
    CHECK(ocssd_target_submit_for_reply(target, &request, ended, &told), 0);
    CHECK(ocssd_target_close(&target), -EBUSY);
    while (told.count < 17)
        CHECK(ocssd_target_poll(target, 5) > 0, 1);
    for (int i = 0; i < 17; i++) {
        CHECK(told.replies[i].result == 0 && told.replies[i].status == 0, 1);
        if (told.replies[i].count == 0)
            seen |= 1ull << told.replies[i].offset / BLOCK;
    }
    CHECK(seen, 0xffff);
    CHECK(zones[0].write_pointer, 16 * BLOCK);
    CHECK(ocssd_target_read(target, back, 16 * BLOCK, 0), 0);
    for (int i = 0; i < 16; i++)
        CHECK(back[i][0] > 0 && back[i][0] <= 16, 1);
    /* A failure that is told has its words in the callback. */
    told.count = 0;
    request = append;
    request.op = OCSSD_OP_WRITE;
    CHECK(ocssd_target_submit_for_reply(target, &request, ended, &told), 0);
    while (told.count < 1)
        CHECK(ocssd_target_poll(target, 1) >= 0, 1);
    CHECK(told.replies[0].result, -EINVAL);
    CHECK(told.replies[0].status, 0x1bc);
    CHECK(strstr(told.words, "Zone Invalid Write") != NULL, 1);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void refused(void)
{
    ocssd_drive *drive = NULL;
    ocssd_target *zoned = NULL, *blocks = NULL;
    ocssd_zones info;
    ocssd_request request = {0};
    uint64_t offset = 7;
    uint32_t matching;

    CHECK(ocssd_drive_open("qemu", NULL, &drive), 0);
    CHECK(ocssd_target_open(drive, "pblk", "pu:0-1", &blocks), 0);
    CHECK(ocssd_target_open(drive, "zns:create=no", "pu:2-3", &zoned), -EINVAL);
    CHECK(ocssd_target_open(drive, "zns", "pu:2-3", &zoned), 0);
    /* Calls of zones on blocks. */
    CHECK(ocssd_zoned_info(blocks, &info), -EOPNOTSUPP);
    CHECK_SAYS("speaks of blocks");
    CHECK(ocssd_zoned_report(blocks, 0, 0, zones, 1, &matching), -EOPNOTSUPP);
    CHECK(ocssd_zoned_append(blocks, data, BLOCK, 0, 0, &offset), -EOPNOTSUPP);
    CHECK(ocssd_zoned_manage(blocks, OCSSD_OP_FINISH_ZONE, 0, 0), -EOPNOTSUPP);
    CHECK(ocssd_zoned_manage(blocks, OCSSD_OP_RESET_ZONE, 0, OCSSD_ALL_ZONES), -EOPNOTSUPP);
    CHECK(ocssd_zoned_set_extension(blocks, 0, data, 64), -EOPNOTSUPP);
    CHECK(ocssd_zoned_commit_area(blocks, 0), -EOPNOTSUPP);
    CHECK(ocssd_zoned_changed(blocks, &offset), -EOPNOTSUPP);
    /* Calls of blocks on zones. */
    CHECK(ocssd_zoned_info(zoned, &info), 0);
    CHECK(ocssd_target_discard(zoned, BLOCK, 0), -EOPNOTSUPP);
    CHECK_SAYS("speaks of zones");
    CHECK(ocssd_target_write_zeroes(zoned, BLOCK, 0), -EOPNOTSUPP);
    /* What cannot be. */
    CHECK(ocssd_zoned_append(zoned, data, 100, 0, 0, &offset), -EINVAL);
    CHECK(ocssd_zoned_append(zoned, data, BLOCK, BLOCK, 0, &offset), -EINVAL);
    CHECK(ocssd_zoned_append(zoned, data, info.append_bytes_max + BLOCK, 0, 0, &offset), -EINVAL);
    CHECK_SAYS("at most");
    CHECK(ocssd_zoned_append(zoned, NULL, BLOCK, 0, 0, &offset), -EINVAL);
    CHECK(ocssd_zoned_append(zoned, data, BLOCK, 0, 0, NULL), -EINVAL);
    CHECK(ocssd_zoned_append(NULL, data, BLOCK, 0, 0, &offset), -EINVAL);
    CHECK(ocssd_zoned_append(zoned, data, BLOCK, info.zone_bytes * info.zone_count, 0, &offset), -EINVAL);
    CHECK(ocssd_target_read(zoned, back, 2 * BLOCK, info.zone_bytes - BLOCK), -EINVAL);
    CHECK_SAYS("more than one zone");
    CHECK(ocssd_zoned_manage(zoned, OCSSD_OP_WRITE, 0, 0), -EINVAL);
    CHECK(ocssd_zoned_manage(zoned, OCSSD_OP_OPEN_ZONE, BLOCK, 0), -EINVAL);
    CHECK(ocssd_zoned_manage(zoned, OCSSD_OP_OPEN_ZONE, 0, OCSSD_ALL_ZONES | OCSSD_WITH_AREA), -EINVAL);
    CHECK(ocssd_zoned_manage(zoned, OCSSD_OP_OPEN_ZONE, 0, OCSSD_WITH_AREA), -EINVAL);
    CHECK_SAYS("Zone Operation");
    CHECK(ocssd_zoned_manage(zoned, OCSSD_OP_FINISH_ZONE, 0, OCSSD_FUA), -EINVAL);
    CHECK(ocssd_zoned_commit_area(zoned, 0), -EINVAL);
    CHECK(ocssd_zoned_report(zoned, 0, 5, zones, 1, NULL), -EINVAL);
    CHECK_SAYS("no state");
    CHECK(ocssd_zoned_report(zoned, 0, 0, NULL, 1, NULL), -EINVAL);
    CHECK(ocssd_zoned_report(zoned, 0, 0, (ocssd_zone *)((uint8_t *)zones + 1), 1, NULL), -EINVAL);
    CHECK(ocssd_zoned_report(zoned, info.zone_bytes * info.zone_count, 0, zones, 1, NULL), -EINVAL);
    CHECK(ocssd_zoned_changed(zoned, NULL), -EINVAL);
    CHECK(ocssd_zoned_info(zoned, NULL), -EINVAL);
    request.op = OCSSD_OP_REPORT_ZONES;
    request.data = zones;
    request.bytes = sizeof zones[0] - 1;
    CHECK(ocssd_target_submit_for_reply(zoned, &request, ended, NULL), -EINVAL);
    request.op = 14;
    CHECK(ocssd_target_submit_for_reply(zoned, &request, ended, NULL), -EINVAL);
    CHECK(ocssd_target_submit_for_reply(zoned, NULL, ended, NULL), -EINVAL);
    /* Nothing of all that changed anything. */
    CHECK(ocssd_zoned_report(zoned, 0, OCSSD_ZONE_EMPTY, zones, 1, &matching), 0);
    CHECK(matching, info.zone_count);
    CHECK(ocssd_target_close(&zoned), 0);
    CHECK(ocssd_target_close(&blocks), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

/* Chunks are lost when they are reset. A zone for which none is left becomes read only, and is told. */
static void zones_that_change(void)
{
    ocssd_drive *drive = fresh("[faults]\nreset_failure = \"40%\"\n", OCSSD_CLOCK_VIRTUAL);
    ocssd_zones info;
    ocssd_target *target = zns(drive, "zns:width=1", &info);
    ocssd_zone zone;
    uint64_t offset = 0;
    int told = 0;

    for (int round = 0; round < 20 && !told; round++) {
        for (uint32_t at = 0; at < info.zone_count && !told; at++) {
            if (ocssd_target_write(target, data, info.capacity_bytes, at * info.zone_bytes, 0) == 0)
                ocssd_target_flush(target);
            told = ocssd_zoned_changed(target, &offset);
        }
        if (!told)
            CHECK(ocssd_zoned_manage(target, OCSSD_OP_RESET_ZONE, 0, OCSSD_ALL_ZONES), 0);
    }
    CHECK(told, 1);
    CHECK(ocssd_zoned_report(target, offset, 0, &zone, 1, NULL), 0);
    CHECK(zone.offset, offset);
    CHECK(zone.state, OCSSD_ZONE_READ_ONLY);
    CHECK(ocssd_target_write(target, data, BLOCK, offset, 0), -EROFS);
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_OFFLINE_ZONE, offset, 0), 0);
    CHECK_ZONE(target, offset, OCSSD_ZONE_OFFLINE, ALL_ONES);
    CHECK(ocssd_target_read(target, back, BLOCK, offset), -EIO);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

int main(void)
{
    waited_for(OCSSD_CLOCK_VIRTUAL);
    waited_for(OCSSD_CLOCK_WALL);
    limits_and_extensions();
    areas();
    submitted();
    refused();
    zones_that_change();
    return 0;
}
