/* Opening and closing drives, what cannot be opened, shape, settings and time. */

#include "check.h"

static void bad_sources(const char *folder)
{
    ocssd_drive *drive = (ocssd_drive *)&drive;
    ocssd_drive_options options = {0};
    const char *settings[2] = {"media.erase=soon", NULL};
    char path[4096];
    FILE *file;

    CHECK(ocssd_drive_open("no-such-preset", NULL, &drive), -ENOENT);
    CHECK_SAYS("westlake");
    CHECK(drive == NULL, 1);
    CHECK(ocssd_drive_open(NULL, NULL, &drive), -EINVAL);
    CHECK(ocssd_drive_open("tiny", NULL, NULL), -EINVAL);
    CHECK(ocssd_drive_open("\xff", NULL, &drive), -EINVAL);
    CHECK(ocssd_drive_open_toml("groups = \"many\"", NULL, &drive), -EINVAL);
    CHECK_SAYS("groups");
    CHECK(ocssd_drive_open_toml("preset = ", NULL, &drive), -EINVAL);
    options.settings = settings;
    options.settings_count = 1;
    CHECK(ocssd_drive_open("tiny", &options, &drive), -EINVAL);
    CHECK_SAYS("media.erase");
    options.settings_count = 2;
    settings[0] = "media.erase=1ms";
    CHECK(ocssd_drive_open("tiny", &options, &drive), -EINVAL);
    options.settings = NULL;
    CHECK(ocssd_drive_open("tiny", &options, &drive), -EINVAL);
    options.settings_count = 0;
    options.clock = 2;
    CHECK(ocssd_drive_open("tiny", &options, &drive), -EINVAL);
    settings[0] = "payload=stamp";
    options.clock = 0;
    options.settings = settings;
    options.settings_count = 1;
    CHECK(ocssd_drive_open("tiny", &options, &drive), -EINVAL);
    CHECK_SAYS("payload");
    snprintf(path, sizeof path, "%s/foreign.ocssd", folder);
    file = fopen(path, "w");
    for (int line = 0; line < 2000; line++)
        fprintf(file, "this is no image\n");
    fclose(file);
    CHECK(ocssd_drive_open(path, NULL, &drive), -EINVAL);
    CHECK_SAYS("foreign.ocssd");
    CHECK(drive == NULL, 1);
}

static void shape_and_time(void)
{
    ocssd_drive *drive = tiny(OCSSD_CLOCK_VIRTUAL);
    ocssd_geometry geometry;
    uint64_t now = 1;
    char text[64];
    int length = ocssd_drive_settings(drive, NULL, 0);

    CHECK(ocssd_drive_geometry(drive, &geometry), 0);
    CHECK(geometry.groups * geometry.pus_per_group, 4);
    CHECK(geometry.revision, 0x20);
    CHECK(ocssd_drive_geometry(drive, NULL), -EINVAL);
    CHECK(ocssd_drive_geometry(NULL, &geometry), -EINVAL);
    CHECK(length > 63, 1);
    CHECK(ocssd_drive_settings(drive, text, sizeof text), length);
    CHECK(strlen(text), 63);
    CHECK(ocssd_drive_settings(drive, NULL, 5), -EINVAL);
    CHECK(ocssd_drive_now(drive, &now), 0);
    CHECK(now, 0);
    CHECK(ocssd_drive_wait(drive, 12345), 0);
    CHECK(ocssd_drive_now(drive, &now), 0);
    CHECK(now, 12345);
    CHECK(ocssd_drive_close(&drive), 0);
    CHECK(drive == NULL, 1);
    CHECK(ocssd_drive_close(&drive), -EINVAL);
    CHECK(ocssd_drive_close(NULL), -EINVAL);
    CHECK(ocssd_drive_now(drive, &now), -EINVAL);
}

/* Set Bad Block Table (F1h) of the first blocks of lun 0: `count` of them, which `kind` says are bad (2 grown, 8 by the host). */
static void mark(ocssd_command *command, unsigned count, unsigned kind)
{
    memset(command, 0, sizeof *command);
    command->entry[0] = 0xf1;
    command->entry[4] = 1;
    command->entry[48] = (uint8_t)(count - 1);
    command->entry[50] = (uint8_t)kind;
}

/* The tiny drive's blocks have 2 planes of 4 sectors: as its PPA format has it, 1 << 3 is page 1, 1 << 5 is block 1. */
static void bad_blocks(ocssd_drive *drive)
{
    static uint64_t blocks[3] = {1 << 5, 2 << 5, 3 << 5};
    static uint8_t table[64 + 32];
    uint64_t address = (uint64_t)(uintptr_t)blocks;
    ocssd_command command, get;
    ocssd_completion ended;

    memset(&get, 0, sizeof get);
    get.entry[0] = 0xf2;
    get.entry[4] = 1;
    get.data = table;
    get.data_bytes = sizeof table;
    mark(&command, 3, 2);
    memcpy(command.entry + 40, &address, sizeof address);
    CHECK(ocssd_admin(drive, &command, &ended), 0);
    CHECK(ended.status >> 1, 0);
    CHECK(ocssd_admin(drive, &get, &ended), 0);
    CHECK(ended.status >> 1, 0);
    CHECK(table[64] == 0 && table[66] == 2 && table[67] == 0 && table[68] == 2 && table[70] == 2 && table[72] == 0, 1);
    /* Beside the entry, as a list and as data. */
    mark(&command, 3, 8);
    command.lbas = blocks;
    command.lba_count = 3;
    CHECK(ocssd_admin(drive, &command, &ended), 0);
    CHECK(ended.status >> 1, 0);
    mark(&command, 2, 0);
    command.data = blocks + 1;
    command.data_bytes = 16;
    CHECK(ocssd_admin(drive, &command, &ended), 0);
    CHECK(ended.status >> 1, 0);
    CHECK(ocssd_admin(drive, &get, &ended), 0);
    CHECK(table[66] == 8 && table[68] == 0 && table[70] == 0, 1);
    /* A list that is too short, and none at all. */
    mark(&command, 3, 8);
    command.lbas = blocks;
    command.lba_count = 2;
    CHECK(ocssd_admin(drive, &command, &ended), 4);
    mark(&command, 3, 8);
    CHECK(ocssd_admin(drive, &command, &ended), 4);
}

/* The same drive in the words of OCSSD 1.2. */
static void older_revision(void)
{
    ocssd_drive *drive = NULL;
    ocssd_drive_options options = {0};
    const char *settings[] = {"revision=1.2", "capabilities.multiple_resets=true", "capabilities.early_reset=true"};
    ocssd_geometry geometry;
    ocssd_command command;
    static uint8_t page[4096];

    options.settings = settings;
    options.settings_count = 1;
    CHECK(ocssd_drive_open("tiny", &options, &drive), -EINVAL);
    options.settings_count = 3;
    CHECK(ocssd_drive_open("tiny", &options, &drive), 0);
    CHECK(ocssd_drive_geometry(drive, &geometry), 0);
    CHECK(geometry.revision, 0x12);
    CHECK(ocssd_prepare_geometry(&command, page), 0);
    CHECK(ocssd_admin(drive, &command, NULL), 0);
    CHECK(page[0], 1);
    bad_blocks(drive);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void wall_time(void)
{
    ocssd_drive *drive = tiny(OCSSD_CLOCK_WALL);
    uint64_t before = 0, after = 0;

    CHECK(ocssd_drive_now(drive, &before), 0);
    CHECK(ocssd_drive_wait(drive, 2000000), 0);
    CHECK(ocssd_drive_now(drive, &after), 0);
    CHECK(after >= before + 2000000, 1);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void image(const char *folder)
{
    ocssd_drive *drive = NULL, *second = NULL;
    ocssd_target *target = NULL;
    ocssd_drive_options inspect = {0};
    char path[4096], block[4096];

    snprintf(path, sizeof path, "%s/kept.ocssd", folder);
    remove(path);
    CHECK(ocssd_drive_create(path, "qemu", NULL, &drive), 0);
    CHECK(ocssd_drive_open(path, NULL, &second), -EBUSY);
    CHECK(ocssd_target_create(drive, "db", "pblk", "all"), 0);
    CHECK(ocssd_target_create(drive, "db", "pblk", "all"), -EINVAL);
    CHECK(ocssd_target_create(drive, "x", "nothing", NULL), -ENOENT);
    CHECK(ocssd_target_open(drive, "db:over_provisioning_percent=20", NULL, &target), 0);
    CHECK(ocssd_target_remove(drive, "db"), -EBUSY);
    memset(block, 0x5a, sizeof block);
    CHECK(ocssd_target_write(target, block, sizeof block, 8 * sizeof block, OCSSD_FUA), 0);
    CHECK(ocssd_drive_close(&drive), -EBUSY);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
    CHECK(ocssd_drive_create(path, "qemu", NULL, &drive), -EEXIST);
    inspect.access = OCSSD_ACCESS_INSPECT;
    CHECK(ocssd_drive_open(path, &inspect, &drive), 0);
    CHECK(ocssd_target_remove(drive, "db"), -EROFS);
    CHECK(ocssd_drive_close(&drive), 0);
    CHECK(ocssd_drive_open(path, NULL, &drive), 0);
    CHECK(ocssd_target_open(drive, "db:over_provisioning_percent=20", NULL, &target), 0);
    memset(block, 0, sizeof block);
    CHECK(ocssd_target_read(target, block, sizeof block, 8 * sizeof block), 0);
    CHECK(block[0] == 0x5a && block[4095] == 0x5a, 1);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_remove(drive, "db"), 0);
    CHECK(ocssd_target_remove(drive, "db"), -ENOENT);
    CHECK(ocssd_drive_close(&drive), 0);
    remove(path);
}

int main(int count, char **arguments)
{
    CHECK(count, 2);
    bad_sources(arguments[1]);
    shape_and_time();
    older_revision();
    wall_time();
    image(arguments[1]);
    return 0;
}
