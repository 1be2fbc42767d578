/* A small LSM tree: puts go to a log that is synced, a full memory table is written as a table, and one edit publishes the table
 * and deletes the log it makes needless; then two tables are merged into one by another edit. No file says which tables there are:
 * the attributes of each do.
 *
 *     cc tables.c $(pkg-config --cflags --libs ocssd) -o tables && ./tables
 */

#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 4096u
#define FLUSHES 8u

struct entry {
    uint32_t key, value;
};

/* What is kept of a table beside its content. */
struct attributes {
    uint32_t level, first, last;
};

static ocssd_target *target;
static uint64_t next_name = 1;

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, ocssd_last_error());
        exit(1);
    }
}

static ocssd_table_edit row(uint32_t op, uint64_t table, const struct attributes *attributes)
{
    ocssd_table_edit row = {0};

    row.op = op;
    row.table = table;
    row.attributes = attributes;
    row.attributes_bytes = attributes ? sizeof *attributes : 0;
    return row;
}

static uint64_t write_table(uint32_t level, const struct entry *entries, uint32_t count)
{
    uint64_t name = next_name++, bytes = (uint64_t)count * sizeof *entries;

    must(ocssd_tables_create(target, name, OCSSD_TABLE, level, level, bytes), "create a table");
    must(ocssd_tables_append(target, name, entries, bytes, NULL), "append to the table");
    return name;
}

/* Puts KEYS keys, each durable before the next, and turns them into a table. */
static void fill(uint32_t round)
{
    static struct entry entries[KEYS];
    struct attributes about = {0, 0, KEYS - 1};
    uint64_t log = next_name++, table;
    ocssd_table_edit edit[2];

    must(ocssd_tables_create(target, log, OCSSD_LOG, 0, 0, 0), "create a log");
    for (uint32_t key = 0; key < KEYS; key++) {
        entries[key].key = key;
        entries[key].value = key * 7 + round;
        must(ocssd_tables_append(target, log, &entries[key], sizeof entries[key], NULL), "append to the log");
        if (key % 64 == 63)
            must(ocssd_tables_sync(target, log), "sync the log");
    }
    table = write_table(0, entries, KEYS);
    edit[0] = row(OCSSD_TABLES_PUBLISH, table, &about);
    edit[1] = row(OCSSD_TABLES_DELETE, log, NULL);
    must(ocssd_tables_edit(target, edit, 2), "flush");
}

/* Merges all tables of level 0, of which the newest has the last word, into one of level 1. */
static void compact(void)
{
    ocssd_table listed[64];
    ocssd_table_edit edit[65];
    static struct entry merged[KEYS], part[KEYS];
    struct attributes about = {1, 0, KEYS - 1};
    int tables = ocssd_tables_list(target, 0, listed, 64, NULL);

    must(tables, "list");
    for (int i = 0; i < tables; i++) {
        must(ocssd_tables_read(target, listed[i].table, 0, part, sizeof part, NULL), "read a table");
        memcpy(merged, part, sizeof merged);
        edit[i + 1] = row(OCSSD_TABLES_DELETE, listed[i].table, NULL);
    }
    edit[0] = row(OCSSD_TABLES_PUBLISH, write_table(1, merged, KEYS), &about);
    must(ocssd_tables_edit(target, edit, (uint32_t)tables + 1), "compact");
    printf("%d tables became one\n", tables);
}

int main(void)
{
    ocssd_drive *drive = NULL;
    ocssd_table listed[4];
    struct attributes about;
    struct entry entry;
    uint64_t start = 0, end = 0;
    int tables;

    must(ocssd_drive_open("cnex-tlc", NULL, &drive), "open the drive");
    must(ocssd_target_open(drive, "lightlsm:placement=level", "pu:0-7", &target), "open lightlsm");
    must(ocssd_drive_now(drive, &start), "time");
    for (uint32_t round = 0; round < FLUSHES; round++)
        fill(round);
    must(ocssd_drive_now(drive, &end), "time");
    printf("%u puts, %u syncs and %u flushes in %.2f ms of the drive's time\n", KEYS * FLUSHES, KEYS / 64 * FLUSHES, FLUSHES,
           (double)(end - start) / 1e6);
    compact();
    /* As after a restart: the list and the attributes say all. */
    must(ocssd_target_close(&target), "close the target");
    must(ocssd_target_open(drive, "lightlsm:placement=level", "pu:0-7", &target), "open lightlsm again");
    tables = ocssd_tables_list(target, 0, listed, 4, NULL);
    must(tables, "list");
    must(ocssd_tables_attributes(target, listed[0].table, &about, sizeof about, NULL), "read attributes");
    printf("%d table: level %u, keys %u to %u, %llu bytes\n", tables, about.level, about.first, about.last,
           (unsigned long long)listed[0].bytes);
    for (uint32_t key = about.first; key <= about.last; key += 321) {
        must(ocssd_tables_read(target, listed[0].table, key * sizeof entry, &entry, sizeof entry, NULL), "get");
        if (entry.key != key || entry.value != key * 7 + FLUSHES - 1) {
            fprintf(stderr, "key %u has the value %u\n", key, entry.value);
            return 1;
        }
    }
    printf("every key has its last value\n");
    must(ocssd_target_close(&target), "close the target");
    must(ocssd_drive_close(&drive), "close the drive");
    return 0;
}
