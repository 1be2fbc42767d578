/* Tables and logs: written, published, read in parts, described, deleted, listed, changed together; what is refused; and requests
 * that are submitted. */

#include "check.h"

struct told {
    int count;
    ocssd_reply replies[64];
    char words[256];
};

static uint8_t content[1 << 20], back[1 << 20];

static void ended(void *context, const ocssd_reply *reply)
{
    struct told *told = (struct told *)context;

    told->replies[told->count++] = *reply;
    if (reply->result < 0)
        snprintf(told->words, sizeof told->words, "%s", ocssd_last_error());
}

static ocssd_target *tables(ocssd_drive **drive, const char *what, uint32_t clock, ocssd_tables_limits *limits)
{
    ocssd_drive_options options = {0};
    ocssd_target *target = NULL;
    ocssd_info info;

    options.clock = clock;
    CHECK(ocssd_drive_open_toml("preset = \"tiny\"\nchunks_per_pu = 128\nsectors_per_chunk = 64", &options, drive), 0);
    CHECK(ocssd_target_open(*drive, what, NULL, &target), 0);
    CHECK(ocssd_target_info(target, &info), 0);
    CHECK(info.interface, OCSSD_INTERFACE_TABLES);
    CHECK(info.block_bytes, 0);
    CHECK(ocssd_tables_info(target, limits), 0);
    CHECK(limits->capacity_bytes >= 4 * sizeof content && limits->table_bytes_max >= sizeof content, 1);
    CHECK(limits->tables_max >= 8 && limits->edits_max >= 4 && limits->attributes_bytes_max >= 64, 1);
    for (unsigned i = 0; i < sizeof content; i++)
        content[i] = (uint8_t)(i * 2654435761u >> 22);
    return target;
}

static int create(ocssd_target *target, uint64_t table, uint32_t kind)
{
    return ocssd_tables_create(target, table, kind, 1, 0, 0);
}

/* The table or log has these bytes and attributes, or cannot be read. */
static void check_table(ocssd_target *target, uint64_t table, const uint8_t *bytes, uint64_t count, const char *attributes,
                        int line)
{
    uint64_t length = 77, known = 78;
    char found[64] = {0};
    int result = ocssd_tables_read(target, table, 0, back, sizeof back, &length);
    int described = ocssd_tables_attributes(target, table, found, sizeof found, &known);

    if (bytes ? result == 0 && described == 0 && length == count && memcmp(back, bytes, count) == 0 && known == strlen(attributes)
                    && strcmp(found, attributes) == 0
              : result == -ENOENT && described == -ENOENT)
        return;
    fprintf(stderr, "line %d: a read of %llu returned %d, of %llu bytes, described as \"%s\"\n", line, (unsigned long long)table,
            result, (unsigned long long)length, found);
    exit(1);
}

#define CHECK_TABLE(target, table, bytes, count, attributes) check_table(target, table, bytes, count, attributes, __LINE__)

static ocssd_table_edit row(uint32_t op, uint64_t table, const char *attributes)
{
    ocssd_table_edit made = {0};

    made.op = op;
    made.table = table;
    made.attributes = attributes;
    made.attributes_bytes = attributes ? (uint32_t)strlen(attributes) : 0;
    return made;
}

static void waited_for(const char *what, uint32_t clock)
{
    ocssd_drive *drive = NULL;
    ocssd_tables_limits limits;
    ocssd_target *target = tables(&drive, what, clock, &limits);
    ocssd_table listed[8];
    uint64_t length, offset = 77;

    /* A table is not there before it is published. */
    CHECK(create(target, 7, OCSSD_TABLE), 0);
    CHECK(ocssd_tables_append(target, 7, content, 100000, &offset), 0);
    CHECK(offset, 0);
    CHECK(ocssd_tables_append(target, 7, content + 100000, 23457, &offset), 0);
    CHECK(offset, 100000);
    CHECK(ocssd_tables_append(target, 7, NULL, 0, NULL), 0);
    CHECK(ocssd_tables_read(target, 7, 0, back, 10, NULL), -EBUSY);
    CHECK_SAYS("publish it first");
    CHECK(ocssd_tables_attributes(target, 7, back, 10, NULL), -EBUSY);
    CHECK(ocssd_tables_list(target, 0, listed, 8, NULL), 0);
    CHECK(ocssd_tables_publish(target, 7, "a..m", 4), 0);
    CHECK_TABLE(target, 7, content, 123457, "a..m");
    CHECK(ocssd_tables_append(target, 7, content, 1, NULL), -EROFS);
    CHECK(ocssd_tables_publish(target, 7, NULL, 0), -EROFS);
    /* Parts of it, its end, and what is behind. */
    memset(back, 0xee, 200);
    CHECK(ocssd_tables_read(target, 7, 123401, back, 200, &length), 0);
    CHECK(length, 56);
    CHECK(memcmp(back, content + 123401, 56) == 0 && back[56] == 0xee, 1);
    CHECK(ocssd_tables_read(target, 7, 5000000, back, 200, &length), 0);
    CHECK(length, 0);
    CHECK(ocssd_tables_read(target, 7, 4095, back, 2, NULL), 0);
    CHECK(memcmp(back, content + 4095, 2), 0);
    memset(back, 0xee, 8);
    CHECK(ocssd_tables_attributes(target, 7, back, 2, &length), 0);
    CHECK(length == 4 && memcmp(back, "a.\xee", 3) == 0, 1);
    /* A log is there from the begin. */
    CHECK(create(target, 3, OCSSD_LOG), 0);
    CHECK_TABLE(target, 3, content, 0, "");
    for (unsigned i = 0; i < 5; i++) {
        CHECK(ocssd_tables_append(target, 3, content + i * 1000, 1000, &offset), 0);
        CHECK(offset, i * 1000);
        CHECK(ocssd_tables_sync(target, 3), 0);
    }
    CHECK_TABLE(target, 3, content, 5000, "");
    CHECK(ocssd_tables_publish(target, 3, NULL, 0), -EINVAL);
    CHECK_SAYS("only tables are published");
    CHECK(ocssd_tables_sync(target, 7), -EINVAL);
    /* A list. */
    CHECK(ocssd_tables_list(target, 0, listed, 8, &length), 2);
    CHECK(length, 2);
    CHECK(listed[0].table == 3 && listed[0].kind == OCSSD_LOG && listed[0].bytes == 5000 && listed[0].attributes_bytes == 0, 1);
    CHECK(listed[1].table == 7 && listed[1].kind == OCSSD_TABLE && listed[1].bytes == 123457 && listed[1].attributes_bytes == 4, 1);
    CHECK(ocssd_tables_list(target, 0, listed, 1, &length), 1);
    CHECK(length == 2 && listed[0].table == 3, 1);
    CHECK(ocssd_tables_list(target, 4, NULL, 0, &length), 0);
    CHECK(length, 1);
    CHECK(ocssd_tables_list(target, 8, listed, 8, NULL), 0);
    /* What is kept when the target is closed; what was not published is not. */
    CHECK(create(target, UINT64_MAX, OCSSD_TABLE), 0);
    CHECK(ocssd_tables_append(target, UINT64_MAX, content, 5000, NULL), 0);
    CHECK(ocssd_target_flush(target), 0);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, what, NULL, &target), 0);
    CHECK_TABLE(target, 7, content, 123457, "a..m");
    CHECK_TABLE(target, 3, content, 5000, "");
    CHECK_TABLE(target, UINT64_MAX, NULL, 0, "");
    CHECK(ocssd_tables_delete(target, 7), 0);
    CHECK_TABLE(target, 7, NULL, 0, "");
    CHECK(ocssd_tables_delete(target, 7), -ENOENT);
    CHECK_SAYS("no table or log");
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void edits(void)
{
    ocssd_drive *drive = NULL;
    ocssd_tables_limits limits;
    ocssd_target *target = tables(&drive, "lightlsm:placement=vertical", OCSSD_CLOCK_VIRTUAL, &limits);
    ocssd_table_edit rows[5];
    static ocssd_table_edit many[70000];

    for (uint64_t table = 1; table <= 4; table++) {
        CHECK(create(target, table, table == 4 ? OCSSD_LOG : OCSSD_TABLE), 0);
        CHECK(ocssd_tables_append(target, table, content + table, 40000, NULL), 0);
    }
    rows[0] = row(OCSSD_TABLES_PUBLISH, 1, "level 1: a..f");
    rows[1] = row(OCSSD_TABLES_PUBLISH, 2, NULL);
    rows[2] = row(OCSSD_TABLES_DESCRIBE, 4, "write-ahead log");
    CHECK(ocssd_tables_edit(target, rows, 3), 0);
    CHECK_TABLE(target, 1, content + 1, 40000, "level 1: a..f");
    CHECK_TABLE(target, 2, content + 2, 40000, "");
    CHECK_TABLE(target, 4, content + 4, 40000, "write-ahead log");
    /* All or nothing. */
    rows[0] = row(OCSSD_TABLES_DELETE, 1, NULL);
    rows[1] = row(OCSSD_TABLES_PUBLISH, 3, "new");
    rows[2] = row(OCSSD_TABLES_DELETE, 1, NULL);
    CHECK(ocssd_tables_edit(target, rows, 3), -ENOENT);
    CHECK_SAYS("row 2 of an edit");
    CHECK_TABLE(target, 1, content + 1, 40000, "level 1: a..f");
    CHECK(ocssd_tables_read(target, 3, 0, back, 1, NULL), -EBUSY);
    rows[2] = row(OCSSD_TABLES_DESCRIBE, 2, "level 2: g..k");
    CHECK(ocssd_tables_edit(target, rows, 3), 0);
    CHECK_TABLE(target, 1, NULL, 0, "");
    CHECK_TABLE(target, 2, content + 2, 40000, "level 2: g..k");
    CHECK_TABLE(target, 3, content + 3, 40000, "new");
    CHECK(create(target, 5, OCSSD_TABLE), 0);
    rows[0] = row(OCSSD_TABLES_DESCRIBE, 5, "not yet");
    CHECK(ocssd_tables_edit(target, rows, 1), -EBUSY);
    CHECK(ocssd_tables_edit(target, rows, 0), 0);
    /* What cannot be. */
    CHECK(ocssd_tables_edit(target, NULL, 1), -EINVAL);
    rows[0] = row(OCSSD_TABLES_DELETE, 2, "why");
    CHECK(ocssd_tables_edit(target, rows, 1), -EINVAL);
    CHECK_SAYS("row 0: attributes_bytes is 3, but a deletion has no attributes");
    rows[0] = row(OCSSD_TABLES_LIST, 2, NULL);
    CHECK(ocssd_tables_edit(target, rows, 1), -EINVAL);
    CHECK_SAYS("a row publishes (5), deletes (6) or describes (9)");
    rows[0] = row(OCSSD_TABLES_DESCRIBE, 2, NULL);
    rows[0].attributes_bytes = 1;
    CHECK(ocssd_tables_edit(target, rows, 1), -EINVAL);
    rows[0].attributes = content;
    rows[0].attributes_bytes = limits.attributes_bytes_max + 1;
    CHECK(ocssd_tables_edit(target, rows, 1), -EFBIG);
    CHECK_SAYS("row 0 of an edit");
    rows[0].attributes_bytes = limits.attributes_bytes_max;
    CHECK(ocssd_tables_edit(target, rows, 1), 0);
    CHECK(limits.edits_max < sizeof many / sizeof many[0], 1);
    for (uint32_t i = 0; i <= limits.edits_max; i++)
        many[i] = row(OCSSD_TABLES_DESCRIBE, 2, "many");
    CHECK(ocssd_tables_edit(target, many, limits.edits_max + 1), -EFBIG);
    CHECK_SAYS("an edit has at most");
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void submitted(void)
{
    ocssd_drive *drive = NULL;
    ocssd_tables_limits limits;
    ocssd_target *target = tables(&drive, "lightlsm", OCSSD_CLOCK_VIRTUAL, &limits);
    struct told told = {0};
    ocssd_tables_request request = {0};
    ocssd_table_edit rows[2];
    static ocssd_table listed[4];
    uint8_t part[1000];

    for (uint64_t table = 1; table <= 2; table++) {
        request = (ocssd_tables_request){0};
        request.op = OCSSD_TABLES_CREATE;
        request.table = table;
        request.offset = 10000;
        request.stream = (uint32_t)table;
        CHECK(ocssd_tables_submit(target, &request, ended, &told), 0);
    }
    request = (ocssd_tables_request){0};
    request.op = OCSSD_TABLES_APPEND;
    request.data = part;
    request.bytes = sizeof part;
    for (int i = 0; i < 20; i++) {
        request.table = 1 + (uint64_t)i % 2;
        memset(part, i, sizeof part);
        CHECK(ocssd_tables_submit(target, &request, ended, &told), 0);
    }
    rows[0] = row(OCSSD_TABLES_PUBLISH, 1, "one");
    rows[1] = row(OCSSD_TABLES_PUBLISH, 2, "two");
    request = (ocssd_tables_request){0};
    request.op = OCSSD_TABLES_EDIT;
    request.edits = rows;
    request.edit_count = 2;
    CHECK(ocssd_tables_submit(target, &request, ended, &told), 0);
    memset(rows, 0xee, sizeof rows);
    request = (ocssd_tables_request){0};
    request.op = OCSSD_TABLES_READ;
    request.table = 2;
    request.offset = 9000;
    request.data = back;
    request.bytes = 5000;
    CHECK(ocssd_tables_submit(target, &request, ended, &told), 0);
    request = (ocssd_tables_request){0};
    request.op = OCSSD_TABLES_LIST;
    request.data = listed;
    request.bytes = sizeof listed;
    CHECK(ocssd_tables_submit(target, &request, ended, &told), 0);
    request = (ocssd_tables_request){0};
    request.op = OCSSD_TABLES_CREATE;
    request.table = 2;
    CHECK(ocssd_tables_submit(target, &request, ended, &told), 0);
    CHECK(ocssd_target_close(&target), -EBUSY);
    while (told.count < 26)
        CHECK(ocssd_target_poll(target, 7) >= 0, 1);
    CHECK(back[0] == 19 && back[999] == 19, 1);
    CHECK(listed[0].table == 1 && listed[0].bytes == 10000 && listed[1].table == 2 && listed[1].attributes_bytes == 3, 1);
    for (int i = 0, refusals = 0, offsets[10] = {0}; i < 26; i++) {
        if (told.replies[i].result < 0)
            CHECK(told.replies[i].result == -EEXIST && ++refusals == 1, 1);
        else if (told.replies[i].count > 0)
            CHECK(told.replies[i].count, 2);
        else if (told.replies[i].bytes > 0)
            CHECK(told.replies[i].bytes, 1000);
        else if (told.replies[i].offset > 0)
            CHECK(++offsets[told.replies[i].offset / 1000] <= 2, 1);
    }
    CHECK(strstr(told.words, "creating table 2 was refused: the name is taken") != NULL, 1);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

/* A full drive refuses in words, and takes tables again once others are deleted. */
static void full(void)
{
    ocssd_drive *drive = NULL;
    ocssd_tables_limits limits;
    ocssd_target *target = tables(&drive, "lightlsm", OCSSD_CLOCK_VIRTUAL, &limits);
    uint64_t table = 0;
    int result;

    CHECK(ocssd_tables_create(target, 1, OCSSD_TABLE, 0, 0, limits.table_bytes_max + 1), -EFBIG);
    for (result = 0; result == 0; table += result == 0) {
        result = create(target, table, OCSSD_TABLE);
        for (int part = 0; part < 4 && result == 0; part++)
            result = ocssd_tables_append(target, table, content, sizeof content, NULL);
        if (result == 0)
            CHECK(ocssd_tables_publish(target, table, NULL, 0), 0);
    }
    CHECK(result, -ENOSPC);
    CHECK_SAYS("there is no room: delete tables");
    CHECK(table, limits.capacity_bytes / (4 * sizeof content));
    CHECK(ocssd_tables_delete(target, 0), 0);
    CHECK(ocssd_tables_delete(target, table), 0);
    CHECK(create(target, table, OCSSD_TABLE), 0);
    CHECK(ocssd_tables_append(target, table, content, sizeof content, NULL), 0);
    CHECK(ocssd_tables_publish(target, table, NULL, 0), 0);
    CHECK_TABLE(target, table, content, sizeof content, "");
    for (result = 0, table = 1000; result == 0; table++)
        result = create(target, table, OCSSD_LOG);
    CHECK(result, -EMFILE);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void refused(void)
{
    ocssd_drive *drive = NULL;
    ocssd_tables_limits limits;
    ocssd_target *target = tables(&drive, "lightlsm", OCSSD_CLOCK_VIRTUAL, &limits), *blocks = NULL;
    ocssd_tables_request request = {0};
    uint64_t length;

    CHECK(create(target, 1, OCSSD_TABLE), 0);
    CHECK(create(target, 1, OCSSD_LOG), -EEXIST);
    CHECK(create(target, 2, 2), -EINVAL);
    CHECK_SAYS("kind is 2, but should be 0 (a table) or 1 (a log)");
    CHECK(ocssd_tables_create(target, 2, OCSSD_TABLE, 256, 0, 0), -EINVAL);
    CHECK_SAYS("level is 256");
    CHECK(ocssd_tables_create(target, 2, OCSSD_TABLE, 0, 256, 0), -EINVAL);
    CHECK_SAYS("stream is 256");
    CHECK(create(NULL, 2, OCSSD_TABLE), -EINVAL);
    CHECK(ocssd_tables_append(target, 2, content, 1, NULL), -ENOENT);
    CHECK(ocssd_tables_append(target, 1, NULL, 1, NULL), -EINVAL);
    CHECK(ocssd_tables_append(target, 1, content, 17 << 20, NULL), -EFBIG);
    CHECK_SAYS("ask in parts");
    CHECK(ocssd_tables_sync(target, 2), -ENOENT);
    CHECK(ocssd_tables_read(target, 2, 0, back, 1, NULL), -ENOENT);
    CHECK(ocssd_tables_read(target, 1, 0, NULL, 1, NULL), -EINVAL);
    CHECK(ocssd_tables_publish(target, 1, NULL, 1), -EINVAL);
    CHECK(ocssd_tables_publish(target, 1, content, (uint64_t)limits.attributes_bytes_max + 1), -EFBIG);
    CHECK(ocssd_tables_list(target, 0, NULL, 1, NULL), -EINVAL);
    CHECK(ocssd_tables_list(target, 0, (ocssd_table *)(void *)(back + 1), 1, NULL), -EINVAL);
    /* What belongs to other operations is named, not ignored. */
    request.op = OCSSD_TABLES_SYNC;
    request.bytes = 7;
    CHECK(ocssd_tables_submit(target, &request, NULL, NULL), -EINVAL);
    CHECK_SAYS("operation 2 of tables has no bytes");
    request.op = OCSSD_TABLES_LIST;
    request.data = back;
    CHECK(ocssd_tables_submit(target, &request, NULL, NULL), -EINVAL);
    CHECK_SAYS("whole ocssd_table of 24 bytes");
    request = (ocssd_tables_request){0};
    request.op = OCSSD_TABLES_EDIT;
    request.table = 1;
    CHECK(ocssd_tables_submit(target, &request, NULL, NULL), -EINVAL);
    CHECK_SAYS("has no table");
    request = (ocssd_tables_request){0};
    request.op = OCSSD_TABLES_DESCRIBE;
    CHECK(ocssd_tables_submit(target, &request, NULL, NULL), -EINVAL);
    CHECK_SAYS("the operations of tables are 0 to 8");
    request.op = OCSSD_TABLES_READ;
    request.level = 1;
    CHECK(ocssd_tables_submit(target, &request, NULL, NULL), -EINVAL);
    request.level = 0;
    request.reserved = 1;
    CHECK(ocssd_tables_submit(target, &request, NULL, NULL), -EINVAL);
    CHECK(ocssd_tables_submit(target, NULL, NULL, NULL), -EINVAL);
    CHECK(ocssd_tables_info(target, NULL), -EINVAL);
    /* Calls of others. */
    CHECK(ocssd_target_write(target, content, 4096, 0, 0), -EOPNOTSUPP);
    CHECK_SAYS("tables");
    CHECK(ocssd_kv_exist(target, "key", 3, NULL), -EOPNOTSUPP);
    CHECK(ocssd_pages_stat(target, NULL, NULL), -EOPNOTSUPP);
    CHECK(ocssd_stage_open(target, 0, 100), -EOPNOTSUPP);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, "linear", NULL, &blocks), 0);
    CHECK(ocssd_tables_info(blocks, &limits), -EOPNOTSUPP);
    CHECK(create(blocks, 1, OCSSD_TABLE), -EOPNOTSUPP);
    CHECK(ocssd_tables_list(blocks, 0, NULL, 0, &length), -EOPNOTSUPP);
    CHECK(ocssd_target_close(&blocks), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

int main(void)
{
    waited_for("lightlsm", OCSSD_CLOCK_VIRTUAL);
    waited_for("lightlsm", OCSSD_CLOCK_WALL);
    waited_for("table-block:over=ox-block", OCSSD_CLOCK_VIRTUAL);
    edits();
    submitted();
    full();
    refused();
    return 0;
}
